//! The phases in which a sample was taken, as outermost frames of its stack, for sinks that
//! [want](crate::model::Wants::PHASE_FRAMES) them.
//!
//! ```text
//! thread 0    step ( assemble ( parallel (              its own phases, outermost first
//! thread 1                       member ( ...           the phases around its team's region, then its own
//! ```

use super::*;
use crate::model::RegionId;

impl Interpreter<'_, '_> {
    /// A phase starts, as this region.
    pub(in crate::interpret) fn note_phase(&mut self, region: RegionId, name: &str) {
        if self.stage.wants_phase_frames() && !self.samples.phases.contains_key(&region.0) {
            let frame = self.stage.marker(name, FunctionKind::Phase);
            self.samples.phases.insert(region.0, frame);
        }
    }

    /// The phases in which a thread is, outermost first.
    pub(super) fn phases_of(&self, thread: usize) -> Vec<StackFrame> {
        let mut phases = Vec::new();
        if !self.samples.phases.is_empty() {
            self.add_phases(thread, self.threads[thread].stack().len(), 0, &mut phases);
        }
        phases
    }

    /// The phases among the `depth` outermost regions of a thread.
    fn add_phases(&self, thread: usize, depth: usize, nesting: usize, phases: &mut Vec<StackFrame>) {
        let open = &self.threads[thread].stack()[..depth];
        let mut teams = open.iter().filter_map(Frame::team_of_member);
        let outermost = teams.find(|(_, index)| *index != 0);
        let team = outermost.and_then(|(team, _)| Some((team.0, self.teams.get(&team.0)?)));
        if let Some((id, team)) = team.filter(|(_, team)| team.thread != thread && nesting < MAX_NESTING) {
            let around = self.threads[team.thread].stack();
            let is_it = |frame: &Frame| frame.key == id && self.place_of_region(frame).is_some();
            if let Some(depth) = around.iter().rposition(is_it) {
                self.add_phases(team.thread, depth, nesting + 1, phases);
            }
        }
        phases.extend(open.iter().filter_map(|frame| self.samples.phases.get(&frame.region.0)));
    }
}
