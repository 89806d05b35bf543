//! Explicit tasks. A suspended task stays open under the one that runs on top of it.

use super::*;
use crate::tasks::state::Links;

/// The wait of `taskwait depend`, which runtimes report as an empty task.
const TASKWAIT: Construct = Construct::SyncRegionWait(ompt::ompt_sync_region_taskwait);

impl Interpreter<'_, '_> {
    #[inline(never)]
    pub(super) fn task_create(&mut self, thread: usize, time: Ns, e: &TaskCreate) {
        let flags = e.flags;
        if flags.contains(ompt::ompt_task_initial) {
            return self.initial_task_create(thread, time, e);
        }
        let runs_now = self.dialect.tasks_created_when_they_run;
        if !runs_now {
            self.creates_task(thread, time, e.encountering_task_data);
            self.note_base(thread, e.encountering_task_data);
        }
        if !self.selection.tasks {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        let construct = if flags.contains(ompt::ompt_task_target) {
            Construct::TargetTask
        } else if flags.contains(ompt::ompt_task_taskwait) {
            Construct::TaskwaitTask
        } else if flags.contains(ompt::ompt_task_untied) {
            Construct::UntiedTask
        } else {
            Construct::Task
        };
        let is_undeferred = flags.contains(ompt::ompt_task_undeferred);
        self.has_proxy_tasks |= construct == Construct::TargetTask && !is_undeferred;
        self.delayed_tasks += usize::from(is_undeferred);
        let at = self.threads[thread].point(time);
        let new_task = match e.new_task_data {
            Id::UNSET if construct == Construct::TaskwaitTask => {
                let taskwait = self.name_of_unset();
                self.threads[thread].taskwaits.push(taskwait);
                taskwait
            }
            other => match other.known() {
                Some(new_task) => new_task,
                None => return,
            },
        };
        if runs_now && self.goes_on_in_parts(thread, e) {
            if self.dialect.tasks_without_switch {
                self.run_task(thread, time, Id::NULL, e.new_task_data);
            }
            return;
        }
        let task = Task {
            event: self.stage.event,
            construct,
            region: self.region(thread, construct, e.codeptr_ra),
            flags,
            parent: e.encountering_task_data.0,
            implicit_task: self.threads[thread].innermost_implicit_task(),
            state: TaskState::Created,
            // An undeferred task runs immediately at the same place.
            created: (!runs_now && !is_undeferred).then_some(at),
            links: None,
            is_known_untied: false,
        };
        let region = task.region;
        self.given_ids.insert(new_task);
        self.note_creation(thread, new_task, e.codeptr_ra);
        self.count_unfinished(task.implicit_task, true);
        if let Some(old) = self.tasks.insert(new_task, task) {
            self.delayed_tasks -= usize::from(old.is_delayed());
            self.forget_links(old.links);
        }
        let created = ThreadEvent::TaskCreate {
            task: TaskId(new_task),
            region,
            parent: e.encountering_task_data.known().map(TaskId),
            is_undeferred,
            is_final: flags.contains(ompt::ompt_task_final),
            has_dependences: e.has_dependences != 0,
        };
        self.stage.thread_event(at, created);
        if construct == Construct::TaskwaitTask && is_undeferred {
            let task = TaskId(new_task);
            let wait = Frame::new(TASKWAIT, new_task, self.region(thread, TASKWAIT, e.codeptr_ra))
                .with(Meaning::Wait(Awaited::Dependences { task }));
            self.threads[thread].open(self.stage, time, wait, arguments!["task_data": hex(new_task)]);
        }
        if self.dialect.tasks_without_switch {
            self.created_unswitched(thread, time, e.new_task_data);
        }
    }

    fn initial_task_create(&mut self, thread: usize, time: Ns, e: &TaskCreate) {
        if self.dialect.initial_task_created {
            let construct = Construct::InitialTask;
            let frame = Frame::new(construct, e.new_task_data.0, self.region(thread, construct, Address(0)));
            let task = arguments!["task_data": id(e.new_task_data)];
            self.threads[thread].open(self.stage, time, frame, task);
        }
    }

    #[inline(never)]
    pub(super) fn task_schedule(
        &mut self,
        thread: usize,
        time: Ns,
        prior: Id,
        status: ompt::ompt_task_status_t,
        next: Id,
    ) {
        // If creations are not recorded, no task has an id: each switch is to a new task, on top of the interrupted
        // one.
        let is_nameless =
            next == Id::UNSET && !self.selection.tasks && !self.dialect.tasks_beneath_unannounced;
        self.note_base(thread, prior);
        match status {
            // These statuses are not switches: the thread continues what it does.
            ompt::ompt_task_early_fulfill => self.task_fulfilled(thread, time, prior, false),
            ompt::ompt_task_late_fulfill => {
                self.task_fulfilled(thread, time, prior, true);
                self.task_is_done(thread, time, prior, Anchor::Moment);
            }
            ompt::ompt_taskwait_complete => {
                let taskwait = self.taskwait_if_unset(thread, prior);
                self.threads[thread].taskwaits.retain(|open| *open != taskwait.0);
                let is_wait = |frame: &Frame| frame.construct == TASKWAIT && frame.key == taskwait.0;
                if self.threads[thread].stack().iter().any(is_wait) {
                    self.close(thread, time, TASKWAIT, taskwait.0);
                }
                self.task_is_done(thread, time, taskwait, Anchor::Moment);
            }

            ompt::ompt_task_complete | ompt::ompt_task_cancel => {
                let cancelled = status == ompt::ompt_task_cancel;
                if self.dialect.tasks_without_switch {
                    self.completed_unswitched(thread, time, prior);
                }
                let is_it = |frame: &Frame| frame.is_explicit_task() && frame.key == prior.0;
                let end = self.threads[thread].anchor_of_end(self.stage, time, is_it);
                let ran = self.leave_task(thread, time, prior, cancelled);
                let anchor = match ran {
                    true => end,
                    false => Anchor::Moment,
                };
                self.task_is_done(thread, time, prior, anchor);
                if !is_nameless {
                    self.run_around(thread, time, prior, next);
                }
            }
            // The task's code has ended; the task is complete when its event is fulfilled.
            ompt::ompt_task_detach => {
                self.has_proxy_tasks = true;
                self.detach_task(thread, time, prior);
                if !is_nameless {
                    self.run_around(thread, time, prior, next);
                }
            }
            _ if is_nameless => self.start_unannounced(thread, time, next),
            _ if self.is_beneath(thread, next) => self.suspend_task(thread, time, prior),
            _ => self.run_task(thread, time, prior, next),
        }
        self.end_joins(time);
    }

    /// The task that an event means, if the task of a taskwait has no id. The tracer does not set an id, because LLVM's
    /// runtime has one data field per thread for all such tasks, and aborts if a tool writes to it. A thread may be in
    /// several taskwaits, because it runs tasks while it waits; events are about the innermost one.
    fn taskwait_if_unset(&self, thread: usize, task: Id) -> Id {
        let is_alive = |task: &&u64| self.tasks.contains_key(*task);
        let mut open = self.threads[thread].taskwaits.iter().rev();
        match open.find(is_alive) {
            Some(taskwait) if task == Id::UNSET => Id(*taskwait),
            _ => task,
        }
    }

    fn task_fulfilled(&mut self, thread: usize, time: Ns, task: Id, is_late: bool) {
        self.instant(thread, time, Construct::TaskFulfill, Address(0), arguments!["task_data": id(task)]);
        self.thread_event(thread, time, ThreadEvent::TaskFulfill { task: TaskId(task.0), is_late });
    }

    /// The code of `task` ends on this thread. Returns true if the task was the innermost region.
    #[inline]
    fn leave_task(&mut self, thread: usize, time: Ns, task: Id, cancelled: bool) -> bool {
        let is_it = |frame: &&Frame| frame.is_explicit_task() && frame.key == task.0;
        let stack = self.threads[thread].stack();
        let found = stack.iter().rev().enumerate().find(|(_, frame)| is_it(frame));
        let Some((above, construct)) = found.map(|(above, frame)| (above, frame.construct)) else {
            // A task that was cancelled before it ran has no open region.
            let is_expected =
                cancelled || self.dialect.tasks_end_when_left || self.threads[thread].end_hidden();
            if !is_expected && task.known().is_some() {
                self.repair(thread, time, Cause::EndWithoutBegin);
            }
            return false;
        };
        let arguments: &[_] = if cancelled { arguments!["cancelled": Value::Text("yes")] } else { &[] };
        self.threads[thread].close(self.stage, time, construct, task.0, arguments);
        above == 0
    }

    /// The code of `task` ends on this thread. A later event will complete the task.
    fn detach_task(&mut self, thread: usize, time: Ns, task: Id) {
        if let Some(detached) = self.tasks.get_mut(&task.0) {
            self.threads[thread].detach(task.0);
            detached.state = TaskState::Detached;
        }
        self.leave_task(thread, time, task, false);
    }

    /// `task` is complete: its id may be reused, and dependent tasks may start. `anchor`: the anchor of links that
    /// start at its end.
    #[inline]
    fn task_is_done(&mut self, thread: usize, time: Ns, task: Id, anchor: Anchor) {
        if self.dialect.tasks_created_when_they_run && self.may_go_on(task.0) {
            return;
        }
        let Some(done) = self.tasks.remove(&task.0) else {
            return;
        };
        self.delayed_tasks -= usize::from(done.is_delayed());
        self.count_unfinished(done.implicit_task, false);
        self.dependences.forget_children(task.0);
        self.forget_creation(task.0);
        let at = self.threads[thread].point(time);
        self.stage.task_ended(TaskId(task.0), TaskId(done.parent), at);
        // A task that is still on a thread completes when its frame is closed.
        if !matches!(done.state, TaskState::OnThread(_)) {
            let task = TaskId(task.0);
            self.stage.thread_event(at, ThreadEvent::TaskComplete { task });
        }
        let Some(links) = done.links else {
            return;
        };
        if let Some(node) = links.node {
            self.dependences.release(node, Some((at, anchor)));
        }
        // The dependences of a taskwait, which never starts.
        for from in links.predecessors {
            let to = (at, Anchor::Moment);
            self.stage.link(LinkKind::TaskDependence, from, to);
        }
        for successor in links.successors {
            if let Some(successor) = self.tasks.get_mut(&successor) {
                successor.links().predecessors.push((at, anchor));
            }
        }
    }

    /// A cancellation discards a task (OpenMP 5.2, 19.5.2.18). If the task never ran, no other event reports its end.
    pub(super) fn task_discarded(&mut self, thread: usize, time: Ns, task: Id) {
        let never_ran = |task: &Task| matches!(task.state, TaskState::Created);
        if self.tasks.get(&task.0).is_some_and(never_ran) {
            self.task_is_done(thread, time, task, Anchor::Moment);
        }
    }

    /// The region of `members` ends, and all tasks that they created with it. If the end of a task is missing, the task
    /// was cancelled before it ran, or its last part ended unreported.
    pub(super) fn end_tasks_of(&mut self, thread: usize, time: Ns, members: &[Member]) {
        let is_of_member = |task: &Task| {
            let mut implicit = members.iter().map(|(_, task)| *task);
            implicit.any(|id| Some(id) == task.implicit_task)
        };
        let of_members = self.tasks.iter().filter(|(_, task)| is_of_member(task));
        let mut unfinished: Vec<(u64, bool)> = of_members
            .filter_map(|(id, task)| match task.state {
                TaskState::Created => Some((*id, false)),
                TaskState::Suspended(_) => Some((*id, true)),
                TaskState::OnThread(_) | TaskState::Hidden | TaskState::Detached => None,
            })
            .collect();
        unfinished.sort_unstable();
        for (task, ran) in unfinished {
            if ran {
                self.repair(thread, time, Cause::MissingEnd);
            }
            self.task_is_done(thread, time, Id(task), Anchor::Moment);
        }
    }

    /// The thread is done with `prior`, and continues with the task around it. When a thread at the last barrier of its
    /// region drops a cancelled task, LLVM names no task, and none starts.
    fn run_around(&mut self, thread: usize, time: Ns, prior: Id, task: Id) {
        let is_it = |frame: &Frame| frame.is_task() && frame.key == task.0;
        let is_named = || self.task_of_join(thread, task) != Id::UNSET;
        if is_named() || self.threads[thread].stack().iter().any(is_it) {
            self.run_task(thread, time, prior, task);
        }
    }

    /// The thread switches from `prior` to `task`.
    pub(super) fn run_task(&mut self, thread: usize, time: Ns, prior: Id, task: Id) {
        if task == Id::NULL {
            return;
        }
        let task = self.task_of_join(thread, task);
        // An announced task that has not run yet is on no stack.
        let is_new = |task: &&mut Task| matches!(task.state, TaskState::Created);
        if self.unannounced_tasks == 0
            && let Some(alive) = self.tasks.get_mut(&task.0).filter(is_new)
        {
            let on = &mut self.threads[thread];
            self.delayed_tasks -= usize::from(alive.is_delayed());
            alive.state = state_on(thread, on);
            return start_task(self.stage, on, time, task.0, alive);
        }
        let is_it = |frame: &Frame| frame.is_task() && frame.key == task.0;
        if let Some(index) = self.threads[thread].stack().iter().rposition(is_it) {
            return self.suspend_above(thread, time, index);
        }
        let Some(alive) = self.tasks.get_mut(&task.0) else {
            if self.given_ids.contains(task.0) {
                return self.run_ended(thread, time, prior);
            }
            if !self.selection.implicit_tasks {
                return self.suspend_all(thread, time);
            }
            return self.start_unannounced(thread, time, task);
        };
        self.delayed_tasks -= usize::from(alive.is_delayed());
        match std::mem::replace(&mut alive.state, TaskState::OnThread(thread)) {
            TaskState::Created => {
                let on = &mut self.threads[thread];
                alive.state = state_on(thread, on);
                start_task(self.stage, on, time, task.0, alive);
            }
            TaskState::Suspended(frames) => self.threads[thread].resume(self.stage, time, frames),
            TaskState::OnThread(other) => {
                let frames = self.take_from(other, time, task.0);
                self.threads[thread].resume(self.stage, time, frames);
            }
            kept @ (TaskState::Hidden | TaskState::Detached) => alive.state = kept,
        }
    }

    /// The task to which the thread switches has ended. When LLVM runs tasks of a former team, it keeps naming the task
    /// that the thread ran before. So the thread is in the task around `prior`.
    #[cold]
    fn run_ended(&mut self, thread: usize, time: Ns, prior: Id) {
        self.repair(thread, time, Cause::EndedTask);
        let is_it = |frame: &Frame| frame.is_explicit_task() && frame.key == prior.0;
        if let Some(depth) = self.threads[thread].stack().iter().rposition(is_it) {
            self.suspend_from(thread, time, depth);
        }
    }

    /// A task runs whose creation was not reported or was lost.
    fn start_unannounced(&mut self, thread: usize, time: Ns, task: Id) {
        if task.known().is_some() {
            self.unannounced_tasks += 1;
            if self.selection.tasks {
                self.repair(thread, time, Cause::UnannouncedTask);
            }
        }
        let construct = Construct::Task;
        let region = self.region(thread, construct, Address(0));
        let name = task.known().unwrap_or_else(|| self.name_of_unset());
        let frame = Frame::new(construct, task.0, region)
            .with(Meaning::Task { task: TaskId(name), has_id: task.known().is_some() });
        self.threads[thread].open(self.stage, time, frame, arguments!["task_data": id(task)]);
    }

    /// A unique number for a task without an id, because several threads may run such tasks at once.
    pub(super) fn name_of_unset(&mut self) -> u64 {
        self.unset_tasks += 1;
        Id::NULL.0 - self.unset_tasks
    }

    /// The task at `index` of the thread's stack continues. Tasks above it are suspended and leave the stack, because
    /// they would prevent it from ending.
    fn suspend_above(&mut self, thread: usize, time: Ns, index: usize) {
        let depth = self.threads[thread].task_end(index);
        self.suspend_from(thread, time, depth);
    }

    /// `task` is suspended, and the regions above it with it.
    fn suspend_task(&mut self, thread: usize, time: Ns, task: Id) {
        let is_it = |frame: &Frame| frame.is_explicit_task() && frame.key == task.0;
        let place = self.threads[thread].stack().iter().rposition(is_it);
        if let Some(depth) = place {
            self.suspend_from(thread, time, depth);
        }
    }

    /// The implicit task, which is not on the stack, continues: all explicit tasks inside the innermost parallel region
    /// are suspended.
    fn suspend_all(&mut self, thread: usize, time: Ns) {
        let stack = self.threads[thread].stack();
        let is_region = |frame: &Frame| matches!(frame.construct, Construct::Parallel | Construct::Teams);
        let inside = stack.iter().rposition(is_region).map_or(0, |index| index + 1);
        let first = stack[inside..].iter().position(Frame::is_task);
        if let Some(distance) = first {
            self.suspend_from(thread, time, inside + distance);
        }
    }

    /// Suspends the tasks from `depth` of the thread's stack on.
    fn suspend_from(&mut self, thread: usize, time: Ns, depth: usize) {
        let top = self.threads[thread].stack().len();
        if depth == top {
            return;
        }
        let mut frames = self.threads[thread].cut(self.stage, time, depth, top, &[]);
        while let Some(bottom) = frames.iter().rposition(Frame::is_task) {
            let task = frames.split_off(bottom);
            if let Some(alive) = self.tasks.get_mut(&task[0].key) {
                alive.state = TaskState::Suspended(task);
            } else if task[0].key == Id::UNSET.0 {
                // When such a task is resumed, it cannot be told from others, so its next part counts as another task.
                self.repair(thread, time, Cause::PartOfTask);
                if let Some(complete) = task[0].end_of_event() {
                    self.thread_event(thread, time, complete);
                }
            } else {
                self.repair(thread, time, Cause::MissingEnd);
            }
        }
    }

    /// Takes `task` from the stack of the thread on which it was suspended.
    fn take_from(&mut self, thread: usize, time: Ns, task: u64) -> Vec<Frame> {
        let is_it = |frame: &Frame| frame.is_explicit_task() && frame.key == task;
        match self.threads[thread].stack().iter().rposition(is_it) {
            Some(from) => {
                let to = self.threads[thread].task_end(from);
                self.threads[thread].cut(self.stage, time, from, to, &[])
            }
            None => Vec::new(),
        }
    }

    /// A dependence that the lists of dependences may lack, because the runtime does not report lists or a list was
    /// cut.
    pub(super) fn task_dependence(&mut self, thread: usize, e: &TaskDependence) {
        let sink = self.taskwait_if_unset(thread, e.sink_task_data).0;
        let source = e.src_task_data.0;
        let Some(task) = self.tasks.get_mut(&source) else {
            return;
        };
        let links = task.links();
        if links.node.is_none_or(|node| self.dependences.precedes(node, sink)) {
            links.successors.push(sink);
            if source != sink {
                self.depends(thread, source, sink);
            }
        }
    }

    /// Forgets a task whose end was not seen.
    pub(super) fn forget_links(&mut self, links: Option<Box<Links>>) {
        if let Some(node) = links.and_then(|links| links.node) {
            self.dependences.release(node, None);
        }
    }

    /// Reports a dependence. It takes no time, so it counts as a part of the thread's latest item.
    fn depends(&mut self, thread: usize, from: u64, to: u64) {
        let time = self.threads[thread].last();
        let (from, to) = (TaskId(from), TaskId(to));
        self.thread_event(thread, time, ThreadEvent::TaskDependence { from, to });
    }

    /// Reports dependences: the number of a task's dependences, or those of a doacross loop at the time they occur.
    pub(super) fn dependences(&mut self, thread: usize, time: Ns, e: &Dependences<'_>) {
        let kind = e.deps.first().map(|dependence| dependence.dependence_type);
        let is_doacross =
            matches!(kind, Some(ompt::ompt_dependence_type_source | ompt::ompt_dependence_type_sink));
        if !is_doacross {
            let task = self.taskwait_if_unset(thread, e.task_data);
            return self.task_depends(thread, task, e);
        }
        let kind = kind.and_then(|kind| kind.name()).unwrap_or("unknown");
        let arguments = arguments!["dependence_type": Value::Text(kind), "task_data": id(e.task_data)];
        self.instant(thread, time, Construct::Doacross, Address(0), arguments);
    }

    /// Finds the tasks on which this one depends. Arrows from these lead to the task's start.
    fn task_depends(&mut self, thread: usize, task: Id, e: &Dependences<'_>) {
        let id = task.0;
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let links = task.links();
        links.ndeps = u32::try_from(e.ndeps).unwrap_or(0);
        let new_node = || self.dependences.new_node(id);
        let (node, parent) = (*links.node.get_or_insert_with(new_node), task.parent);
        let stays = task.construct != Construct::TaskwaitTask;
        for predecessor in self.dependences.add(parent, node, &e.deps, stays) {
            self.depends(thread, predecessor.task, id);
            match predecessor.end {
                Some(end) => {
                    if let Some(task) = self.tasks.get_mut(&id) {
                        task.links().predecessors.push(end);
                    }
                }
                None => {
                    if let Some(predecessor) = self.tasks.get_mut(&predecessor.task) {
                        predecessor.links().successors.push(id);
                    }
                }
            }
        }
    }
}

/// The state of a task that starts on `thread`, which has this number.
#[inline]
fn state_on(number: usize, thread: &Thread) -> TaskState {
    match thread.is_full() {
        false => TaskState::OnThread(number),
        true => TaskState::Hidden,
    }
}

/// The task `id` runs for the first time.
#[inline]
fn start_task(stage: &mut Stage<'_>, thread: &mut Thread, time: Ns, id: u64, task: &mut Task) {
    let frame =
        Frame::new(task.construct, id, task.region).with(Meaning::Task { task: TaskId(id), has_id: true });
    let ndeps = task.links.as_ref().map_or(0, |links| links.ndeps);
    let flags = stage.lend_task_flags(task.flags);
    let all = arguments![
        "task_data": hex(id),
        "flags": Value::Text(&flags.words),
        "ndeps": uint(ndeps),
    ];
    let arguments = if ndeps > 0 { &all[..] } else { &all[..2] };
    let created = task.created.take();
    let links = task.links.as_mut();
    let predecessors = links.map(|links| std::mem::take(&mut links.predecessors));
    thread.open(stage, time, frame, arguments);
    stage.take_back(flags);
    let to = (thread.point(time), Anchor::Begin);
    if let Some(from) = created {
        stage.link(LinkKind::TaskCreate, (from, Anchor::Inside), to);
    }
    for from in predecessors.into_iter().flatten() {
        stage.link(LinkKind::TaskDependence, from, to);
    }
}
