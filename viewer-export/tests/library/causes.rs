//! The causal links of a timeline: which thread waits for which.

use omptrace_timeline::model::*;
use omptrace_timeline::replay;

use crate::fixture;

/// Collects waits and their causes.
#[derive(Default)]
struct Causes {
    meetings: Vec<ThreadEvent>,
    regions: Vec<Construct>,
    enters: Vec<(Construct, Part, Option<Awaited>)>,
    links: Vec<Link>,
}

impl Sink for Causes {
    fn wants(&self) -> Wants {
        Wants::ALL
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Region(region) => self.regions.push(region.construct),
            Item::Enter(enter) => {
                let construct = self.regions[enter.region.0 as usize];
                self.enters.push((construct, enter.part, enter.awaited));
            }
            Item::ThreadEvent(_, event) => self.meetings.push(*event),
            Item::Link(link) => self.links.push(*link),
            _ => {}
        }
    }
}

impl Causes {
    /// The links of a kind, each by the locations and times of its ends.
    fn links(&self, kind: LinkKind) -> Vec<[(u32, Ns); 2]> {
        let of_kind = self.links.iter().filter(|link| link.kind == kind);
        let ends = of_kind.map(|link| [link.from, link.to].map(|at| (at.location.0, at.time)));
        ends.collect()
    }
}

/// The causes in the timeline of the trace that `text` describes.
fn causes(text: &str) -> Causes {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let mut found = Causes::default();
    replay(&[&readers[0]], &mut found, &mut |_| {});
    found
}

/// The thread events in the trace that `text` describes.
fn meetings(text: &str) -> Vec<ThreadEvent> {
    causes(text).meetings
}

/// The dependences between tasks, each with whether the second task had already started.
fn dependences(meetings: &[ThreadEvent]) -> Vec<(u64, u64, bool)> {
    let mut started = Vec::new();
    let mut found = Vec::new();
    for event in meetings {
        match *event {
            ThreadEvent::TaskSwitch { task, .. } => started.push(task),
            ThreadEvent::TaskDependence { from, to } => {
                found.push((from.0, to.0, started.contains(&to)));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn dependences_name_both_tasks_before_the_second_starts() {
    let meetings = meetings(include_str!("../fixtures/dependences.trace"));
    let expected = [(2, 3), (2, 4), (3, 5), (4, 5), (5, 6)];
    assert_eq!(dependences(&meetings), expected.map(|(from, to)| (from, to, false)));
}

#[test]
fn dependences_that_only_the_runtime_reports_name_both_tasks() {
    let meetings = meetings(
        "0  1 implicit_task begin task=1 flags=1\n\
         10 1 task_create task=1 new=2\n\
         20 1 task_create task=1 new=3\n\
         21 1 task_dependence src=2 sink=3\n\
         22 1 task_dependence src=3 sink=3\n\
         30 1 task_schedule prior=1 status=switch next=2\n\
         40 1 task_schedule prior=2 status=complete next=3\n\
         50 1 task_schedule prior=3 status=complete next=1\n",
    );
    assert_eq!(dependences(&meetings), [(2, 3, false)]);
}

#[test]
fn creation_of_a_task_says_who_creates_it_and_whether_it_is_deferred() {
    let meetings = meetings(
        "0  1 implicit_task begin task=1 flags=1\n\
         1  1 parallel_begin task=1 parallel=100 team=1\n\
         2  1 implicit_task begin parallel=100 task=101 team=1 index=0\n\
         10 1 task_create task=101 new=2\n\
         20 1 task_schedule prior=101 status=switch next=2\n\
         30 1 task_create task=2 new=3 flags=0x28000004\n\
         31 1 task_schedule prior=2 status=switch next=3\n\
         32 1 task_schedule prior=3 status=complete next=2\n\
         40 1 task_schedule prior=2 status=complete next=101\n\
         50 1 task_create task=- new=4\n",
    );
    let created: Vec<_> = meetings
        .iter()
        .filter_map(|event| match *event {
            ThreadEvent::TaskCreate { task, parent, is_undeferred, is_final, .. } => {
                Some((task.0, parent.map(|task| task.0), is_undeferred, is_final))
            }
            _ => None,
        })
        .collect();
    let expected = [(2, Some(101), false, false), (3, Some(2), true, true), (4, None, false, false)];
    assert_eq!(created, expected);
    let members: Vec<_> = meetings
        .iter()
        .filter_map(|event| match *event {
            ThreadEvent::TeamBegin { team, task, .. } => Some((team, task)),
            _ => None,
        })
        .collect();
    assert_eq!(members, [(TeamId(100), Some(TaskId(101)))]);
}

/// A team of two threads with two barriers. The other member is late at the first and early at the second.
const TWO_BARRIERS: &str = "\
    0   1 thread_info os_tid=10 name=app\n\
    0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
    100 1 parallel_begin task=1 parallel=100 team=2 code=0x1234\n\
    110 1 implicit_task begin parallel=100 task=101 team=2 index=0\n\
    120 2 implicit_task begin parallel=100 task=102 team=2 index=1\n\
    200 1 sync_region begin kind=barrier_explicit parallel=100 task=101\n\
    200 1 sync_region_wait begin kind=barrier_explicit parallel=100 task=101\n\
    300 2 sync_region begin kind=barrier_explicit parallel=100 task=102\n\
    301 2 sync_region_wait begin kind=barrier_explicit parallel=100 task=102\n\
    310 2 sync_region_wait end kind=barrier_explicit parallel=100 task=102\n\
    311 2 sync_region end kind=barrier_explicit parallel=100 task=102\n\
    320 1 sync_region_wait end kind=barrier_explicit parallel=100 task=101\n\
    321 1 sync_region end kind=barrier_explicit parallel=100 task=101\n\
    400 2 sync_region begin kind=barrier_implicit_parallel parallel=100 task=102\n\
    400 2 sync_region_wait begin kind=barrier_implicit_parallel parallel=100 task=102\n\
    500 1 sync_region begin kind=barrier_implicit_parallel parallel=100 task=101\n\
    500 1 sync_region_wait begin kind=barrier_implicit_parallel parallel=100 task=101\n\
    510 1 sync_region_wait end kind=barrier_implicit_parallel parallel=100 task=101\n\
    510 1 sync_region end kind=barrier_implicit_parallel parallel=100 task=101\n\
    511 1 implicit_task end task=101 team=2 index=0\n\
    520 2 sync_region_wait end kind=barrier_implicit_parallel parallel=100 task=102\n\
    521 2 sync_region end kind=barrier_implicit_parallel parallel=100 task=102\n\
    522 2 implicit_task end task=102 team=2 index=1\n\
    600 1 parallel_end parallel=100 task=1\n\
    700 1 implicit_task end task=1 flags=1\n";

#[test]
fn all_members_have_the_same_number_at_a_barrier() {
    let waits = causes(TWO_BARRIERS).enters.into_iter();
    let numbers: Vec<_> = waits
        .filter_map(|(construct, part, awaited)| match awaited? {
            Awaited::Barrier { team, number } => {
                let is_wait = matches!(construct, Construct::SyncRegionWait(_));
                Some((is_wait, part, team.0, number))
            }
            _ => None,
        })
        .collect();
    let each = |number| [false, true].map(|is_wait| (is_wait, Part::First, 100, number));
    let expected = [each(1), each(1), each(2), each(2)].concat();
    assert_eq!(numbers, expected);
}

#[test]
fn the_last_member_that_arrives_releases_the_others() {
    let found = causes(TWO_BARRIERS);
    let expected = [[(1, 301), (0, 320)], [(0, 500), (1, 520)]];
    assert_eq!(found.links(LinkKind::BarrierRelease), expected);
}

#[test]
fn a_region_forks_and_joins_other_threads() {
    let found = causes(TWO_BARRIERS);
    assert_eq!(found.links(LinkKind::Fork), [[(0, 100), (1, 120)]]);
    assert_eq!(found.links(LinkKind::Join), [[(1, 522), (0, 600)]]);
}

#[test]
fn a_wait_that_a_task_interrupts_goes_on_and_a_task_that_moves_is_further_parts() {
    let found = causes(include_str!("../fixtures/tasks_in_barrier.trace"));
    let barrier = ompt_sys::ompt_sync_region_barrier_implicit_parallel;
    let waits = found.enters.iter();
    let waits = waits.filter(|enter| enter.0 == Construct::SyncRegionWait(barrier));
    let parts: Vec<_> = waits.map(|(_, part, awaited)| (*part, *awaited)).collect();
    let team = TeamId(100);
    let awaited = Some(Awaited::Barrier { team, number: 1 });
    let expected = [(Part::First, awaited), (Part::Resumed, awaited), (Part::Resumed, awaited)];
    assert_eq!(parts, expected);

    let found = causes(include_str!("../fixtures/untied_migration.trace"));
    let is_task = |construct: &Construct| *construct == Construct::UntiedTask;
    let parts = found.enters.iter().filter(|(construct, ..)| is_task(construct));
    let parts: Vec<_> = parts.map(|(_, part, _)| *part).collect();
    assert_eq!(parts[..2], [Part::First, Part::Further], "{parts:?}");
}

#[test]
fn a_taskwait_ends_with_the_last_child_on_another_thread() {
    let found = causes(
        "0   1 implicit_task begin task=1 flags=1\n\
         1   1 parallel_begin task=1 parallel=100 team=2\n\
         2   1 implicit_task begin parallel=100 task=101 team=2 index=0\n\
         3   2 implicit_task begin parallel=100 task=102 team=2 index=1\n\
         10  1 task_create task=101 new=2\n\
         11  1 task_create task=101 new=3\n\
         20  2 task_schedule prior=102 status=switch next=2\n\
         30  2 task_schedule prior=2 status=complete next=102\n\
         40  1 sync_region begin kind=taskwait parallel=100 task=101\n\
         40  1 sync_region_wait begin kind=taskwait parallel=100 task=101\n\
         50  2 task_schedule prior=102 status=switch next=3\n\
         60  2 task_schedule prior=3 status=complete next=102\n\
         70  1 sync_region_wait end kind=taskwait parallel=100 task=101\n\
         70  1 sync_region end kind=taskwait parallel=100 task=101\n\
         80  1 sync_region begin kind=taskwait parallel=100 task=101\n\
         80  1 sync_region_wait begin kind=taskwait parallel=100 task=101\n\
         90  1 sync_region_wait end kind=taskwait parallel=100 task=101\n\
         90  1 sync_region end kind=taskwait parallel=100 task=101\n",
    );
    assert_eq!(found.links(LinkKind::Taskwait), [[(1, 60), (0, 70)]]);
    let taskwait = Construct::SyncRegionWait(ompt_sys::ompt_sync_region_taskwait);
    let wait = found.enters.iter().find(|enter| enter.0 == taskwait);
    let task = TaskId(101);
    let awaited = wait.expect("a wait").2;
    assert_eq!(awaited, Some(Awaited::Taskwait { task }));
}

#[test]
fn a_wait_for_a_lock_says_which_acquisition_it_waits_for() {
    let found = causes(
        "0  1 implicit_task begin task=1 flags=1\n\
         0  2 implicit_task begin task=2 flags=1\n\
         10 1 mutex_acquire kind=critical wait_id=7\n\
         11 1 mutex_acquired kind=critical wait_id=7\n\
         20 2 mutex_acquire kind=critical wait_id=7\n\
         30 1 mutex_released kind=critical wait_id=7\n\
         31 2 mutex_acquired kind=critical wait_id=7\n\
         40 2 mutex_released kind=critical wait_id=7\n",
    );
    let waits = found.enters.iter().filter_map(|enter| match enter.2? {
        Awaited::Mutex { lock, held } => Some((lock, held.map(|order| order.get()))),
        _ => None,
    });
    let waits: Vec<_> = waits.collect();
    assert_eq!(waits, [(LockId(7), None), (LockId(7), Some(1))]);
}
