//! Teams: forks, joins, and members.

use super::Checker;
use super::seen::Task;
use crate::check::faults::Fault;
use crate::encoding::CommRef;

impl Checker<'_> {
    pub(super) fn join(&mut self, index: usize, time: u64) {
        match self.sources[index].forks.checked_sub(1) {
            Some(forks) => self.sources[index].forks = forks,
            None => self.fault(Fault::ForkJoin, index, time),
        }
    }

    pub(super) fn members(&mut self, team: CommRef) -> &Option<Vec<u64>> {
        let definitions = self.definitions;
        self.members.entry(team).or_insert_with(|| definitions.members(team))
    }

    pub(super) fn team_begin(&mut self, index: usize, time: u64, team: CommRef) {
        let source = &mut self.sources[index];
        source.teams.push((team, source.task));
        source.implicit.push(Vec::new());
        source.task = Task::Implicit(source.implicit.len() - 1);
        let location = source.location;
        let is_member = |members: &Vec<u64>| members.contains(&location);
        if !self.members(team).as_ref().is_some_and(is_member) {
            self.fault(Fault::NotAMember, index, time);
        }
    }

    pub(super) fn team_end(&mut self, index: usize, time: u64, team: CommRef) {
        let source = &mut self.sources[index];
        if source.teams.len() == 1 {
            return self.fault(Fault::Team, index, time);
        }
        let open = source.implicit.pop().unwrap_or_default();
        let (begun, task) = source.teams.pop().unwrap_or((team, Task::Implicit(0)));
        let ends = source.task == Task::Implicit(source.teams.len());
        source.task = task;
        if begun != team || !ends {
            self.fault(Fault::Team, index, time);
        }
        if !open.is_empty() {
            self.fault(Fault::NotLeft, index, time);
        }
    }
}
