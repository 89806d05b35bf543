//! A thread and its open regions.

use super::*;

/// A location: a thread with its open regions, or a device queue.
pub(super) enum LocationState {
    Thread(Box<ThreadState>),
    Queue { process: u32, device_num: i32, host_observed: bool, name: String, work: BTreeMap<String, Times> },
    Other,
}

pub(super) struct ThreadState {
    pub(super) process: u32,
    pub(super) is_selected: bool,
    pub(super) stats: ThreadStats,
    pub(super) account: Account,
    pub(super) role: ThreadRole,
    /// The thread has appeared in the trace.
    pub(super) has_begun: bool,
    /// The number of explicit tasks that the thread started, or of parts of tasks without ids.
    pub(super) tasks: u64,
    /// Some of the tasks had no id.
    pub(super) lacks_ids: bool,
    pub(super) open: Vec<Open>,
    pub(super) just_left: JustLeft,
    pub(super) next: Upcoming<Next>,
    /// Chunks and iterations of the loop whose end comes next.
    pub(super) chunks: Option<(u64, u64)>,
}

/// Facts about the region whose start comes next.
#[derive(Clone, Copy, Default)]
pub(super) struct Next {
    /// The region is this explicit task.
    pub(super) task: Option<TaskId>,
    /// The region is an explicit task without an id.
    pub(super) lacks_id: bool,
    /// The region is the parallel region of this team, which has existed since this time.
    pub(super) forked: Option<(TeamId, Ns)>,
    /// The region is the implicit task of a member of this team, which has this size.
    pub(super) joined: Option<(TeamId, u32)>,
    /// The region is a loop with this schedule.
    pub(super) schedule: Option<ompt::ompt_work_t>,
    /// The region is this critical or atomic region.
    pub(super) held: Option<LockId>,
}

/// An open region.
pub(super) struct Open {
    pub(super) region: usize,
    pub(super) begin: Ns,
    /// The first part of a region, not the continuation of one that is counted already.
    pub(super) is_new: bool,
    /// At least a part of the region is in the window.
    pub(super) is_inside: bool,
    /// The region is a wait.
    pub(super) is_wait: bool,
    /// The thread's state while this region is the innermost one.
    pub(super) doing: Doing,
    pub(super) in_parallel: bool,
    /// The region belongs to the program, and to a selected thread.
    pub(super) is_counted: bool,
    /// Time in inner regions.
    pub(super) inside: u64,
    /// Time that the thread waited in this region.
    pub(super) waited: u64,
    /// For an implicit task that has ended: the time of its end, and `inside` at that time.
    pub(super) done: Option<(Ns, u64)>,
    /// Time in this region during which events were lost.
    pub(super) lost: u64,
    /// Time in inner regions that was not observed.
    pub(super) unobserved: u64,
    /// Duration of the earlier parts.
    pub(super) before: u64,
    /// The wait in this region. After a task interrupts a barrier or taskwait, the next wait in it continues the same
    /// wait.
    pub(super) wait: Option<resumed_regions::Wait>,
    /// The explicit task that this region is.
    pub(super) task: Option<TaskId>,
    /// The team, and its size, whose implicit task this region is.
    pub(super) team: Option<(TeamId, u32)>,
    /// The team whose parallel region this region is.
    pub(super) forked: Option<TeamId>,
    pub(super) of_loop: Option<OpenLoop>,
    pub(super) lock: Option<(LockId, bool)>,
}

impl ThreadState {
    /// Ends a region.
    pub(super) fn leave(
        &mut self,
        constructs: &mut [Collected],
        tasks: &mut Tasks,
        gaps: &Gaps,
        end: Ns,
    ) -> Option<EndedRegion> {
        let (open, regions_around) = self.open.split_last_mut()?;
        let construct = &mut constructs[open.region];
        let ns = end.abs_diff(open.begin);
        let own = ns.saturating_sub(open.inside);
        let off = gaps.between(open.begin, end);
        let lost = match construct.kind {
            Kind::Lost => ns.saturating_sub(off),
            _ => open.lost,
        };
        let unobserved = off.saturating_add(lost).min(ns);
        let awaits_end = open.done.map_or(0, |(since, inside)| {
            let all = end.abs_diff(since).saturating_sub(gaps.between(since, end));
            all.saturating_sub(open.inside - inside)
        });
        let waited = open.waited.saturating_add(match open.is_wait {
            true => own.saturating_sub(unobserved.saturating_sub(open.unobserved)),
            false => awaits_end,
        });
        let is_counted = open.is_counted && open.is_inside;
        // A loop that is cut or not counted must not leave its chunks to the next loop.
        let chunks = self.chunks.take();
        if is_counted {
            let stats = &mut construct.sums.stats;
            stats.times.add_part(ns, open.is_new);
            add(&mut stats.self_ns, own.saturating_sub(awaits_end));
            add(stats.waiting_ns.get_or_insert(0), waited);
            if let Some(mut of_loop) = open.of_loop.take() {
                (of_loop.chunks, of_loop.iterations) = chunks.unwrap_or_default();
                construct.sums.add_loop(&of_loop, ns);
            }
        }
        let is_wait = construct.category == Category::Wait;
        let mut around = regions_around.last_mut();
        if let Some(around) = &mut around {
            add(&mut around.inside, ns);
            add(&mut around.waited, waited);
            add(&mut around.lost, lost);
            add(&mut around.unobserved, unobserved);
        }
        let part = Part {
            region: open.region,
            ns: open.before.saturating_add(ns),
            wait: open.wait,
            is_counted: is_counted || !open.is_new,
        };
        let around = around.filter(|around| is_wait && constructs[around.region].may_wait_on());
        match (around, open.task) {
            (Some(around), _) => {
                if let Some(other) = around.wait.take_if(|wait| wait.region != part.region)
                    && other.is_counted
                {
                    constructs[other.region].sums.add_whole(other.ns);
                }
                let before = around.wait.map_or(0, |wait| wait.ns);
                around.wait = Some(resumed_regions::Wait {
                    region: part.region,
                    ns: before.saturating_add(part.ns),
                    is_counted: part.is_counted,
                });
            }
            (None, Some(task)) => {
                let inside = std::mem::take(&mut self.just_left);
                tasks.left(self.process, task, part, inside);
            }
            (None, None) => self.just_left.push(part),
        }
        let ended = EndedRegion {
            begin: open.begin,
            forked: open.forked,
            member_of: open.team,
            working: ns.saturating_sub(waited).saturating_sub(unobserved),
            waited,
        };
        self.open.truncate(self.open.len() - 1);
        Some(ended)
    }
}

/// A region that has ended.
pub(super) struct EndedRegion {
    pub(super) begin: Ns,
    /// The team whose parallel region it was.
    pub(super) forked: Option<TeamId>,
    /// The team, and its size, whose implicit task it was.
    pub(super) member_of: Option<(TeamId, u32)>,
    pub(super) working: u64,
    pub(super) waited: u64,
}
