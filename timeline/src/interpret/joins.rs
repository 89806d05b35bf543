//! Regions of one thread that report their end, and then wait for their tasks.
//!
//! LLVM's runtime ends the region of a team of one, then waits for its detached and offloaded tasks, and runs the tasks
//! that depend on them. According to OpenMP, a region ends only when all its tasks are complete (OpenMP 5.2, 10.1), and
//! the timeline follows that. Until then, the thread is in the barrier at the region's end.

use super::*;

const BARRIER: ompt::ompt_sync_region_t = ompt::ompt_sync_region_barrier_implicit_parallel;

/// A region that has reported its end and waits for its tasks.
pub(super) struct Join {
    thread: usize,
    region: u64,
    implicit_task: u64,
    /// Number of tasks that are not complete.
    unfinished: usize,
}

impl Interpreter<'_, '_> {
    /// `region` has reported its end. Returns true if the region waits for its tasks, so that it ends with the last of
    /// them.
    pub(super) fn waits_for_tasks(&mut self, thread: usize, time: Ns, region: u64) -> bool {
        let may_wait = self.has_proxy_tasks || self.delayed_tasks > 0;
        if !may_wait || self.dialect.task_ends_unreported {
            return false;
        }
        let Some([(member, implicit_task)]) = self.teams.get(&region).map(|team| &team.members[..]) else {
            return false;
        };
        let (member, implicit_task) = (*member, *implicit_task);
        let is_of_team = |task: &&Task| task.implicit_task == Some(implicit_task);
        let unfinished = self.tasks.values().filter(is_of_team).count();
        if member != thread || unfinished == 0 || !self.threads[thread].end_with_tasks(implicit_task) {
            return false;
        }
        self.repair(thread, time, Cause::EndBeforeTasks);
        for construct in [Construct::SyncRegion(BARRIER), Construct::SyncRegionWait(BARRIER)] {
            self.scope(thread, time, Scope::new(ompt::ompt_scope_begin, construct), &[]);
        }
        self.joins.push(Join { thread, region, implicit_task, unfinished });
        true
    }

    /// The task to which the thread switches. While its region waits for tasks, the implicit task may have no id,
    /// because the runtime has already ended it.
    #[inline]
    pub(super) fn task_of_join(&self, thread: usize, task: Id) -> Id {
        let mut joins = self.joins.iter().rev();
        match joins.find(|join| join.thread == thread) {
            Some(join) if task == Id::UNSET => Id(join.implicit_task),
            _ => task,
        }
    }

    /// The region of `implicit_task` has one unfinished task more, or less.
    #[inline]
    pub(super) fn count_unfinished(&mut self, implicit_task: Option<u64>, created: bool) {
        for join in &mut self.joins {
            if Some(join.implicit_task) == implicit_task {
                join.unfinished = match created {
                    true => join.unfinished + 1,
                    false => join.unfinished.saturating_sub(1),
                };
            }
        }
    }

    /// Ends the waiting regions whose tasks are all complete.
    #[inline]
    pub(super) fn end_joins(&mut self, time: Ns) {
        if !self.joins.is_empty() {
            self.end_complete_joins(time);
        }
    }

    #[cold]
    fn end_complete_joins(&mut self, time: Ns) {
        let is_complete = |join: &mut Join| join.unfinished == 0;
        let complete: Vec<Join> = self.joins.extract_if(.., is_complete).collect();
        for join in complete {
            for construct in [Construct::SyncRegionWait(BARRIER), Construct::SyncRegion(BARRIER)] {
                self.threads[join.thread].close(self.stage, time, construct, 0, &[]);
            }
            self.end_region(join.thread, time, join.region);
        }
    }
}
