//! A thread and its open regions.

use super::*;

/// A location: a thread with its open regions, a device's queue.
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
    /// Something was seen of the thread.
    pub(super) has_begun: bool,
    /// Explicit tasks that it began, or parts of those without ids.
    pub(super) tasks: u64,
    /// Some had no id.
    pub(super) lacks_ids: bool,
    pub(super) open: Vec<Open>,
    pub(super) just_left: JustLeft,
    pub(super) next: Next,
    /// Chunks and iterations of the loop that is left next.
    pub(super) chunks: Option<(u64, u64)>,
}

/// The facts about the region that is entered next.
#[derive(Clone, Copy, Default)]
pub(super) struct Next {
    /// The explicit task that it is.
    pub(super) task: Option<TaskId>,
    /// The trace gives that task no id.
    pub(super) lacks_id: bool,
    /// The team that it is the parallel region of, and since when that is formed.
    pub(super) forked: Option<(TeamId, Ns)>,
    /// The team, and its size, that it is the implicit task of.
    pub(super) joined: Option<(TeamId, u32)>,
    /// The schedule of the loop that it is.
    pub(super) schedule: Option<ompt::ompt_work_t>,
    /// The critical or atomic region that it is.
    pub(super) held: Option<LockId>,
}

/// An open region.
pub(super) struct Open {
    pub(super) region: usize,
    pub(super) begin: Ns,
    /// The first part of a region, not the continuation of one that is counted already.
    pub(super) is_new: bool,
    /// It lies in the window, at least in part.
    pub(super) is_inside: bool,
    /// It is a wait.
    pub(super) is_wait: bool,
    /// The thread's state while it is the innermost.
    pub(super) doing: Doing,
    pub(super) in_parallel: bool,
    /// It is the program's, and on a thread that was selected; else the runtime's own or another thread's.
    pub(super) is_counted: bool,
    /// Time of the regions inside.
    pub(super) inside: u64,
    /// Time of waiting inside.
    pub(super) waited: u64,
    /// Since when the implicit task that this is has ended, and the time of the regions inside until then.
    pub(super) done: Option<(Ns, u64)>,
    /// Time inside in which events were lost.
    pub(super) lost: u64,
    /// Time of the regions inside of which nothing is known.
    pub(super) unobserved: u64,
    /// Time of the parts before.
    pub(super) before: u64,
    /// The wait in it: a further one in a barrier or taskwait goes on where a task interrupted it.
    pub(super) wait: Option<resumed_regions::Wait>,
    /// The explicit task that this is.
    pub(super) task: Option<TaskId>,
    /// The team that this is the implicit task of, and its size.
    pub(super) team: Option<(TeamId, u32)>,
    /// The team that this is the parallel region of.
    pub(super) forked: Option<TeamId>,
    pub(super) of_loop: Option<OpenLoop>,
    pub(super) lock: Option<(LockId, bool)>,
}

impl ThreadState {
    /// Takes note of a region's end.
    pub(super) fn leave(
        &mut self,
        constructs: &mut [Collected],
        tasks: &mut Tasks,
        gaps: &Gaps,
        end: Ns,
    ) -> Option<EndedRegion> {
        let open = self.open.pop()?;
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
        // Those of this loop: a loop that is cut, or that is not counted, leaves none for the next.
        let chunks = self.chunks.take();
        if is_counted {
            let stats = &mut construct.sums.stats;
            stats.times.add_part(ns, open.is_new);
            add(&mut stats.self_ns, own.saturating_sub(awaits_end));
            add(stats.waiting_ns.get_or_insert(0), waited);
            if let Some(mut of_loop) = open.of_loop {
                (of_loop.chunks, of_loop.iterations) = chunks.unwrap_or_default();
                construct.sums.add_loop(&of_loop, ns);
            }
        }
        let is_wait = construct.category == Category::Wait;
        if let Some(around) = self.open.last_mut() {
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
        let around = self.open.last_mut();
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
        Some(EndedRegion {
            begin: open.begin,
            forked: open.forked,
            member_of: open.team,
            working: ns.saturating_sub(waited).saturating_sub(unobserved),
            waited,
        })
    }
}

/// A region that was left.
pub(super) struct EndedRegion {
    pub(super) begin: Ns,
    /// The team that it was the parallel region of.
    pub(super) forked: Option<TeamId>,
    /// The team, and its size, that it was the implicit task of.
    pub(super) member_of: Option<(TeamId, u32)>,
    pub(super) working: u64,
    pub(super) waited: u64,
}
