//! Parallel regions, the implicit tasks of their members, worksharing and barriers.

use super::*;

impl Interpreter<'_, '_> {
    pub(super) fn parallel_begin(&mut self, thread: usize, time: Ns, e: &ParallelBegin) {
        self.in_task(thread, time, e.encountering_task_data);
        let construct = if e.flags.contains(ompt::ompt_parallel_league) {
            Construct::Teams
        } else {
            Construct::Parallel
        };
        let region = self.region(thread, construct, e.codeptr_ra);
        let frame = Frame::new(construct, e.parallel_data.0, region);
        let arguments = arguments![
            "parallel_data": id(e.parallel_data),
            "requested_parallelism": uint(e.requested_parallelism),
        ];
        self.threads[thread].open(self.stage, time, frame, arguments);
        if e.parallel_data.known().is_some() {
            let team = Team {
                codeptr_ra: e.codeptr_ra,
                region,
                members: Vec::new(),
            };
            self.teams.insert(e.parallel_data.0, team);
        }
    }

    /// Members that are still open report their ends late, or never: they end now.
    pub(super) fn parallel_end(&mut self, thread: usize, time: Ns, e: &ParallelEnd) {
        let key = e.parallel_data.0;
        if let Some(team) = self.teams.remove(&key)
            && self.dialect.late_worker_ends
        {
            for (member, task) in team.members {
                if member != thread {
                    self.threads[member].set_limit(task, time);
                }
            }
        }
        let is_teams = |frame: &Frame| frame.construct == Construct::Teams && frame.key == key;
        let construct = if self.threads[thread].stack().iter().any(is_teams) {
            Construct::Teams
        } else {
            Construct::Parallel
        };
        self.close(thread, time, construct, key);
    }

    pub(super) fn implicit_task_begin(&mut self, thread: usize, time: Ns, e: &ImplicitTaskBegin) {
        let team = self.teams.get_mut(&e.parallel_data.0);
        let (codeptr_ra, around) = match &team {
            Some(team) => (team.codeptr_ra, Some(team.region)),
            None => (Address(0), None),
        };
        let construct = if e.flags.contains(ompt::ompt_task_initial) {
            Construct::InitialTask
        } else {
            Construct::ImplicitTask
        };
        match team {
            Some(team) => team.members.push((thread, e.task_data.0)),
            // The process's initial task belongs to a region that no runtime announces.
            None if construct == Construct::InitialTask => {}
            None => self.repair(thread, time, Cause::UnannouncedRegion),
        }
        let already_open = self.threads[thread]
            .stack()
            .iter()
            .any(|frame| frame.construct == construct && frame.key == e.task_data.0);
        if construct == Construct::InitialTask && self.dialect.initial_task_created && already_open
        {
            return;
        }
        let region = self.stage.region(construct, codeptr_ra, around.into_iter());
        let frame = Frame::new(construct, e.task_data.0, region);
        let arguments = arguments![
            "parallel_data": id(e.parallel_data),
            "task_data": id(e.task_data),
            "index": uint(e.index),
            "actual_parallelism": uint(e.actual_parallelism),
        ];
        self.threads[thread].open(self.stage, time, frame, arguments);
    }

    /// Only the task's id counts: runtimes pass no region, and the index and team size of a later one.
    pub(super) fn implicit_task_end(&mut self, thread: usize, time: Ns, e: &ImplicitTaskEnd) {
        let is_it = |frame: &&Frame| frame.is_task() && frame.key == e.task_data.0;
        let open = self.threads[thread].stack().iter().rev().find(is_it);
        let construct = open.map_or(Construct::ImplicitTask, |frame| frame.construct);
        self.close(thread, time, construct, e.task_data.0);
    }

    pub(super) fn work(&mut self, thread: usize, time: Ns, e: &Work) {
        if e.endpoint == ompt::ompt_scope_begin {
            self.in_task(thread, time, e.task_data);
            self.end_single(thread, time);
        }
        let arguments = arguments!["count": uint(e.count), "task_data": id(e.task_data)];
        self.scope(
            thread,
            time,
            e.endpoint,
            Construct::Work(e.work_type),
            0,
            e.codeptr_ra,
            arguments,
        );
    }

    /// A worksharing region or barrier begins: a single region in the same task has ended, for neither may be closely
    /// nested in it.
    fn end_single(&mut self, thread: usize, time: Ns) {
        let stack = self.threads[thread].stack();
        let single = Construct::Work(ompt::ompt_work_single_executor);
        if self.dialect.single_without_end
            && stack.last().is_some_and(|top| top.construct == single)
        {
            let depth = stack.len() - 1;
            self.threads[thread].close_unended(self.stage, time, depth);
        }
    }

    pub(super) fn dispatch(&mut self, thread: usize, time: Ns, e: &Dispatch) {
        let construct = Construct::Dispatch(e.kind);
        if e.kind == ompt::ompt_dispatch_section {
            self.instant(thread, time, construct, e.instance, &[]);
        } else {
            let chunk = arguments!["start": hex(e.start), "iterations": uint(e.iterations)];
            self.instant(thread, time, construct, Address(0), chunk);
        }
    }

    pub(super) fn sync_region(&mut self, thread: usize, time: Ns, e: &SyncRegion) {
        if e.endpoint == ompt::ompt_scope_begin {
            self.in_task(thread, time, e.task_data);
            if is_barrier(e.kind) {
                self.end_single(thread, time);
            }
        }
        let task = task_argument(e.task_data);
        self.scope(
            thread,
            time,
            e.endpoint,
            Construct::SyncRegion(e.kind),
            0,
            e.codeptr_ra,
            &[task],
        );
    }
}

fn is_barrier(kind: ompt::ompt_sync_region_t) -> bool {
    !matches!(
        kind,
        ompt::ompt_sync_region_taskwait
            | ompt::ompt_sync_region_taskgroup
            | ompt::ompt_sync_region_reduction
    )
}
