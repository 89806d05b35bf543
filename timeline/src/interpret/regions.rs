//! Parallel regions, implicit tasks, worksharing regions and barriers.

use super::*;

impl Interpreter<'_, '_> {
    #[inline(never)]
    pub(super) fn parallel_begin(&mut self, thread: usize, time: Ns, e: &ParallelBegin) {
        if self.is_reported_again(thread, time, e.parallel_data.0) {
            return;
        }
        self.in_task(thread, time, Id::NULL, e.encountering_task_data);
        if self.is_body_of_league(thread, e) {
            return;
        }
        self.note_base(thread, e.encountering_task_data);
        self.count_thread(thread, time);
        if !self.selection.regions {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        let construct =
            if e.flags.contains(ompt::ompt_parallel_league) { Construct::Teams } else { Construct::Parallel };
        let region = self.region(thread, construct, e.codeptr_ra);
        let frame = Frame::new(construct, e.parallel_data.0, region)
            .with(Meaning::Team { team: TeamId(e.parallel_data.0), requested: e.requested_parallelism });
        let arguments = arguments![
            "parallel_data": id(e.parallel_data),
            "requested_parallelism": uint(e.requested_parallelism),
        ];
        self.threads[thread].open(self.stage, time, frame, arguments);
        if let Some(parallel) = e.parallel_data.known() {
            if !self.dialect.ids_of_runtime {
                self.given_ids.insert(parallel);
            }
            let team = Team {
                begin: time,
                encountering_task: e.encountering_task_data,
                construct,
                thread,
                codeptr_ra: e.codeptr_ra,
                region,
                label: self.threads[thread].label,
                actual_parallelism: 0,
                members: std::mem::take(&mut self.spare_members),
                numbers: Vec::new(),
            };
            self.teams.insert(parallel, team);
        }
    }

    /// Whether the runtime, not the program, encountered this region. For the code that each member of a league
    /// executes, LLVM forks a region of a single thread without a code address (llvm-project #64894). The member's own
    /// task executes that code.
    fn is_body_of_league(&mut self, thread: usize, e: &ParallelBegin) -> bool {
        if !self.dialect.region_in_league || e.codeptr_ra != Address(0) || e.requested_parallelism != 1 {
            return false;
        }
        let is_it = self.threads[thread].stack().last().is_some_and(|top| {
            let team = top.team().and_then(|team| self.teams.get(&team.0));
            top.construct == Construct::InitialTask
                && top.key == e.encountering_task_data.0
                && team.is_some_and(|team| team.construct == Construct::Teams)
        });
        if is_it && let Some(region) = e.parallel_data.known() {
            self.given_ids.insert(region);
            self.bodies_of_leagues.insert(region, None);
        }
        is_it
    }

    /// Ends all members: those that have reported their end, and those that will do so late, or never.
    #[inline(never)]
    pub(super) fn parallel_end(&mut self, thread: usize, time: Ns, e: &ParallelEnd) {
        if let Some(task) = self.bodies_of_leagues.remove(&e.parallel_data.0) {
            // The task has ended, whether or not that was reported.
            if let Some(task) = task {
                self.tasks_of_leagues.remove(&task);
            }
            return;
        }
        if !self.selection.regions {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        let key = self.region_that_ends(thread, e);
        if key != e.parallel_data.0 && !self.dialect.joins_without_region {
            self.repair(thread, time, Cause::MisnamedRegion);
        }
        if !self.waits_for_tasks(thread, time, key) {
            self.end_region(thread, time, key);
        }
    }

    pub(super) fn end_region(&mut self, thread: usize, time: Ns, key: u64) {
        self.context_ends(thread, key);
        let Some(mut team) = self.teams.remove(&key) else {
            return self.close(thread, time, Construct::Parallel, key);
        };
        if self.dialect.task_ends_unreported {
            self.end_tasks_of(thread, time, &team.members);
        }
        if self.dialect.tasks_created_when_they_run {
            self.end_untied_tasks_of(thread, time, &team.members);
        }
        if self.stage.wants_causes() {
            self.join(thread, time, TeamId(key), &team.members);
        }
        for &(member, task) in &team.members {
            self.dependences.forget_children(task);
            self.threads[member].region_ended(self.stage, time, task);
            self.count_thread(member, time);
        }
        // Ensures that a reader that starts at the region's end continues with the same counters.
        if self.teams.is_empty() && self.stage.wants_counts {
            self.counters.show(self.stage);
        }
        let size = arguments!["actual_parallelism": uint(team.actual_parallelism)];
        let known = if team.members.is_empty() { &[] } else { &size[..] };
        if !self.threads[thread].close(self.stage, time, team.construct, key, known) {
            self.repair(thread, time, Cause::EndWithoutBegin);
        }
        team.members.clear();
        self.spare_members = team.members;
    }

    /// The region that `thread` encountered ends at `time`, after all its members.
    #[cold]
    fn join(&mut self, thread: usize, time: Ns, team: TeamId, members: &[Member]) {
        let to = self.threads[thread].point_ahead(time);
        for &(member, task) in members {
            let member = &self.threads[member];
            let end = member.reported_end(task).unwrap_or(to.time);
            self.stage.cause(LinkKind::Join, member.at(end), to);
        }
        let tasks = members.iter().map(|(_, task)| TaskId(*task));
        self.stage.team_ended(team, tasks);
    }

    /// The region that the event names; if that region is not open on this thread, the innermost one, provided that the
    /// event's task encountered it.
    #[inline]
    fn region_that_ends(&self, thread: usize, e: &ParallelEnd) -> u64 {
        let named = e.parallel_data.0;
        let is_region = |frame: &&Frame| matches!(frame.construct, Construct::Parallel | Construct::Teams);
        let mut open = self.threads[thread].stack().iter().rev().filter(is_region);
        let Some(innermost) = open.next().map(|frame| frame.key) else {
            return named;
        };
        if self.dialect.joins_without_region {
            return innermost;
        }
        let is_of_task = |team: &Team| team.encountering_task == e.encountering_task_data;
        let is_misnamed = innermost != named
            && open.all(|frame| frame.key != named)
            && self.teams.get(&innermost).is_some_and(is_of_task);
        if is_misnamed { innermost } else { named }
    }

    #[inline(never)]
    pub(super) fn implicit_task_begin(&mut self, thread: usize, time: Ns, e: &ImplicitTaskBegin) {
        let construct = if e.flags.contains(ompt::ompt_task_initial) {
            Construct::InitialTask
        } else {
            Construct::ImplicitTask
        };
        let is_it = |frame: &Frame| frame.construct == construct && frame.key == e.task_data.0;
        if construct == Construct::InitialTask
            && self.dialect.initial_task_created
            && self.threads[thread].stack().iter().any(is_it)
        {
            return;
        }
        if let Some(task) = e.task_data.known() {
            self.given_ids.insert(task);
        }
        if let Some(task) = self.bodies_of_leagues.get_mut(&e.parallel_data.0) {
            *task = e.task_data.known();
            self.tasks_of_leagues.extend(*task);
            return;
        }
        let mut index = e.index;
        let mut is_numbered = true;
        let mut forked = None;
        let frame = match self.teams.get_mut(&e.parallel_data.0) {
            Some(team) => {
                if self.dialect.members_without_index {
                    is_numbered = thread == team.thread;
                    index = team.number(thread, &mut self.usual_numbers);
                }
                team.members.push((thread, e.task_data.0));
                team.actual_parallelism = e.actual_parallelism;
                let (codeptr_ra, around) = (team.codeptr_ra, team.region);
                self.stage.names.label = team.label;
                self.threads[thread].label = team.label;
                let (begin, wake_up) = (team.begin, wake_up(team.construct));
                forked = Some((team.thread, begin));
                let mut region = |construct| {
                    let around = std::iter::once(around);
                    self.stage.region(construct, codeptr_ra, around)
                };
                let (wake_up, task) = (Frame::new(wake_up, 0, region(wake_up)), region(construct));
                self.woken_up(thread, begin, time, wake_up, e.parallel_data);
                Frame::member(construct, e.task_data.0, task).with(Meaning::Member {
                    team: TeamId(e.parallel_data.0),
                    index,
                    size: e.actual_parallelism,
                })
            }
            None => {
                // The process's initial task belongs to a region that no runtime reports.
                if construct != Construct::InitialTask && self.selection.regions {
                    self.repair(thread, time, Cause::UnannouncedRegion);
                }
                self.stage.names.label = 0;
                let region = self.stage.region(construct, Address(0), std::iter::empty());
                Frame::new(construct, e.task_data.0, region)
            }
        };
        let all = arguments![
            "parallel_data": id(e.parallel_data),
            "task_data": id(e.task_data),
            "index": uint(index),
            "actual_parallelism": uint(e.actual_parallelism),
        ];
        let without_index = [all[0], all[1], all[3]];
        let arguments = if is_numbered { all } else { &without_index[..] };
        self.threads[thread].open(self.stage, time, frame, arguments);
        self.count_thread(thread, time);
        if self.stage.wants_causes()
            && let Some((by, begin)) = forked
        {
            let from = self.threads[by].at(begin);
            let to = self.threads[thread].point_ahead(time);
            self.stage.cause(LinkKind::Fork, from, to);
        }
    }

    /// Updates whether the thread counts as being in a parallel region or as waiting.
    #[inline(always)]
    fn count_thread(&mut self, thread: usize, time: Ns) {
        if !self.stage.wants_counts {
            return;
        }
        let is_active = self.threads[thread].is_in_parallel_region();
        self.counters.active(self.stage, thread, time, is_active);
        let wait = self.threads[thread].wait();
        self.counters.wait(self.stage, thread, time, wait);
    }

    /// The member was not running yet: the runtime started or woke its thread, and assigned work to it.
    #[inline(always)]
    fn woken_up(&mut self, thread: usize, begin: Ns, end: Ns, frame: Frame, region: Id) {
        let (construct, thread) = (frame.construct, &mut self.threads[thread]);
        thread.await_no_more(self.stage, end);
        // A thread may join the next team before its previous region has ended.
        thread.close_overdue(self.stage, end);
        if begin < end && thread.last() < end {
            let frame = frame.with(Meaning::Wait(Awaited::Team { team: TeamId(region.0) }));
            let region = arguments!["parallel_data": id(region)];
            thread.open(self.stage, begin, frame, region);
            thread.close(self.stage, end, construct, 0, &[]);
        }
    }

    /// Uses only the task's id: runtimes pass no region, and the index and team size of a later region.
    #[inline(never)]
    pub(super) fn implicit_task_end(&mut self, thread: usize, time: Ns, e: &ImplicitTaskEnd) {
        if self.dialect.league_tasks_without_begin && e.task_data == Id::UNSET {
            return;
        }
        if self.tasks_of_leagues.remove(&e.task_data.0) {
            return;
        }
        let is_it = |frame: &&Frame| frame.is_task() && frame.key == e.task_data.0;
        let open = self.threads[thread].stack().iter().rev().find(is_it);
        let construct = open.map_or(Construct::ImplicitTask, |frame| frame.construct);
        if self.threads[thread].end_before_region(self.stage, time, e.task_data.0) {
            return;
        }
        self.close(thread, time, construct, e.task_data.0);
    }

    /// A loop reports its schedule at its start, and the numbers of chunks and iterations that the thread received at
    /// its end.
    #[inline(never)]
    pub(super) fn work(&mut self, thread: usize, time: Ns, e: &Work) {
        let construct = Construct::Work(e.work_type);
        if e.endpoint == ompt::ompt_scope_begin {
            self.in_task(thread, time, e.parallel_data, e.task_data);
            if is_worksharing(e.work_type) {
                self.end_single(thread, time);
            }
        } else {
            self.end_chunk(thread, time);
            let is_it = |top: &&Frame| top.construct == construct && top.chunks > 0;
            if let Some(top) = self.threads[thread].stack().last().filter(is_it) {
                let (chunks, iterations) = (top.chunks, top.iterations);
                let got = arguments!["chunks": uint(chunks), "iterations": uint(iterations)];
                // The loop may have ended before `time`; the region is left at that earlier time.
                let before = self.threads[thread].last();
                self.thread_event(thread, before, ThreadEvent::Chunks { chunks, iterations });
                self.threads[thread].close(self.stage, time, construct, 0, got);
                return;
            }
        }
        let all = arguments![
            "count": uint(e.count),
            "task_data": id(e.task_data),
            "schedule": Value::Text(schedule(e.work_type).unwrap_or_default()),
        ];
        let arguments = match schedule(e.work_type) {
            Some(_) => &all[..],
            None => &all[..2],
        };
        if e.endpoint == ompt::ompt_scope_begin && is_loop(e.work_type) {
            let schedule = e.work_type;
            let region = self.region(thread, construct, e.codeptr_ra);
            let frame = Frame::new(construct, 0, region).with(Meaning::Loop { schedule });
            return self.threads[thread].open(self.stage, time, frame, arguments);
        }
        let scope = Scope::new(e.endpoint, construct).at(e.codeptr_ra);
        self.scope(thread, time, scope, arguments);
    }

    /// A worksharing region or barrier starts: a single region of the same task must have ended, because neither may be
    /// closely nested in it.
    fn end_single(&mut self, thread: usize, time: Ns) {
        let stack = self.threads[thread].stack();
        let single = Construct::Work(ompt::ompt_work_single_executor);
        if self.dialect.single_without_end && stack.last().is_some_and(|top| top.construct == single) {
            let depth = stack.len() - 1;
            self.threads[thread].close_unended(self.stage, time, depth);
        }
    }

    /// An event occurs on a thread in a single region that another thread executes. Nothing happens in such a region,
    /// so unless the event is the region's end, that end is missing.
    pub(super) fn event_in_single_other(&mut self, thread: usize, event: &Event<'_>) {
        let construct = Construct::Work(ompt::ompt_work_single_other);
        let is_end = match event {
            Event::Work(e) => Construct::Work(e.work_type) == construct,
            Event::BufferFlush(_) | Event::Lost(_) | Event::Module(_) => true,
            Event::Monitoring(_) | Event::ThreadInfo(_) | Event::ThreadState(_) => true,
            Event::Counters(_) => true,
            _ => false,
        };
        if self.dialect.single_others_without_end && !is_end {
            let last = self.threads[thread].last();
            self.threads[thread].close(self.stage, last, construct, 0, &[]);
        }
    }

    pub(super) fn dispatch(&mut self, thread: usize, time: Ns, e: &Dispatch) {
        self.end_chunk(thread, time);
        let chunk = arguments!["start": uint(e.start), "iterations": uint(e.iterations)];
        match e.kind {
            ompt::ompt_dispatch_section => {
                let construct = Construct::Dispatch(e.kind);
                self.instant(thread, time, construct, e.instance, &[]);
            }
            ompt::ompt_dispatch_ws_loop_chunk if self.chunk(thread, e.iterations) => {
                if self.stage.chunks {
                    let region = self.region(thread, Construct::Chunk, Address(0));
                    let frame = Frame::new(Construct::Chunk, 0, region);
                    self.threads[thread].open(self.stage, time, frame, chunk);
                }
            }
            _ => self.instant(thread, time, Construct::Dispatch(e.kind), Address(0), chunk),
        }
    }

    /// Counts a chunk of the innermost loop. False if the runtime does not report when the thread receives the next
    /// one: outside of loops, and in static loops, of which runtimes report only the first chunk.
    fn chunk(&mut self, thread: usize, iterations: u64) -> bool {
        match self.threads[thread].innermost() {
            Some(top) if reports_all_chunks(top.construct) => {
                top.further = self.stage.event;
                top.chunks += 1;
                top.iterations = top.iterations.saturating_add(iterations);
                true
            }
            _ => false,
        }
    }

    /// The thread has finished its chunk.
    fn end_chunk(&mut self, thread: usize, time: Ns) {
        let top = self.threads[thread].stack().last();
        if top.is_some_and(|top| top.construct == Construct::Chunk) {
            self.threads[thread].close(self.stage, time, Construct::Chunk, 0, &[]);
        }
    }

    #[inline(never)]
    pub(super) fn sync_region(&mut self, thread: usize, time: Ns, e: &SyncRegion) {
        if e.endpoint == ompt::ompt_scope_begin {
            self.in_task(thread, time, e.parallel_data, e.task_data);
            if is_barrier(e.kind) {
                self.end_single(thread, time);
            }
        }
        let scope = Scope::new(e.endpoint, Construct::SyncRegion(e.kind))
            .at(e.codeptr_ra)
            .with(tasks_awaited(e.kind, e.task_data));
        self.frequent_scope(thread, time, scope, &[task_argument(e.task_data)]);
    }

    #[inline(never)]
    pub(super) fn sync_region_wait(&mut self, thread: usize, time: Ns, e: &SyncRegionWait) {
        let scope = Scope::new(e.endpoint, Construct::SyncRegionWait(e.kind))
            .at(e.codeptr_ra)
            .with(tasks_awaited(e.kind, e.task_data));
        self.frequent_scope(thread, time, scope, &[task_argument(e.task_data)]);
    }
}

/// The construct between the start of such a region and its implicit tasks.
fn wake_up(construct: Construct) -> Construct {
    match construct {
        Construct::Teams => Construct::TeamsWakeUp,
        _ => Construct::ParallelWakeUp,
    }
}

/// Whether threads of this kind of loop report each chunk. Runtimes that do not distinguish schedules report the plain
/// kind.
fn reports_all_chunks(construct: Construct) -> bool {
    matches!(
        construct,
        Construct::Work(
            ompt::ompt_work_loop
                | ompt::ompt_work_loop_dynamic
                | ompt::ompt_work_loop_guided
                | ompt::ompt_work_loop_other
        )
    )
}

fn is_loop(kind: ompt::ompt_work_t) -> bool {
    kind == ompt::ompt_work_loop || schedule(kind).is_some()
}

/// The schedule of a loop, if the runtime reports it.
pub fn schedule(kind: ompt::ompt_work_t) -> Option<&'static str> {
    match kind {
        ompt::ompt_work_loop_static => Some("static"),
        ompt::ompt_work_loop_dynamic => Some("dynamic"),
        ompt::ompt_work_loop_guided => Some("guided"),
        ompt::ompt_work_loop_other => Some("other"),
        _ => None,
    }
}

/// Whether the construct must not be closely nested in a single region (OpenMP 5.2, 17.1). A taskloop may be; a
/// distribute region is strictly nested in a teams region.
fn is_worksharing(kind: ompt::ompt_work_t) -> bool {
    !matches!(kind, ompt::ompt_work_taskloop | ompt::ompt_work_distribute)
}

/// The tasks for which a taskwait or taskgroup waits. Those of a barrier are determined when it is entered.
#[inline(always)]
fn tasks_awaited(kind: ompt::ompt_sync_region_t, task: Id) -> Meaning {
    let task = task.known().map(TaskId);
    match (kind, task) {
        (ompt::ompt_sync_region_taskwait, Some(task)) => Meaning::Wait(Awaited::Taskwait { task }),
        (ompt::ompt_sync_region_taskgroup, Some(task)) => Meaning::Wait(Awaited::Taskgroup { task }),
        _ => Meaning::Alone,
    }
}

fn is_barrier(kind: ompt::ompt_sync_region_t) -> bool {
    !matches!(
        kind,
        ompt::ompt_sync_region_taskwait | ompt::ompt_sync_region_taskgroup | ompt::ompt_sync_region_reduction
    )
}
