//! The order of records on which Scalasca and Vampir rely: that of Score-P.

use std::collections::{BTreeMap, BTreeSet};

use omptrace_tests::otf2::{events, number, printed, rows, text};

use crate::{OFFLOAD, PROGRAMS, Program, archive, traced};
use omptrace_timeline::model::split_place;

/// A record of a location as the reference library prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    kind: String,
    time: u64,
    /// The rest of the line: the region's name, the team, the task.
    what: String,
}

impl Record {
    fn is(&self, kind: &str, construct: &str) -> bool {
        let own = split_place(&self.what).0;
        self.kind == kind && own == construct
    }
}

/// The records of each location, in their order.
fn records(program: Program) -> Vec<Vec<Record>> {
    let traced = traced(program);
    let mut locations: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for line in printed(&archive(&traced, &[]), &[]).lines() {
        let mut words = line.split_whitespace();
        let (kind, location, time) = (words.next(), words.next(), words.next());
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        let (Some(kind), Some(location), Some(time)) = (kind, number(location), number(time)) else {
            continue;
        };
        let is_region = line.contains("Region: \"");
        let what = match line.split('"').nth(1) {
            Some(region) if is_region => region.to_owned(),
            _ => words.collect::<Vec<_>>().join(" "),
        };
        let kind = kind.to_owned();
        locations.entry(location).or_default().push(Record { kind, time, what });
    }
    locations.into_values().collect()
}

/// The places of the records of a kind, which is to be there in some of the programs.
fn places(records: &[Record], kind: &str) -> Vec<usize> {
    let is_it = |place: &usize| records[*place].kind == kind;
    (0..records.len()).filter(is_it).collect()
}

const TEAMS: [&str; 2] = ["!$omp parallel", "!$omp teams"];

#[test]
fn a_member_begins_its_team_then_enters_the_region_and_ends_them_the_other_way_round() {
    let mut seen = 0;
    for program in PROGRAMS {
        for records in records(program) {
            for begin in places(&records, "THREAD_TEAM_BEGIN") {
                let entered = &records[begin + 1];
                let is_it = |construct: &&str| entered.is("ENTER", construct);
                assert!(TEAMS.iter().any(is_it), "{program:?}: {entered:?}");
                assert_eq!(entered.time, records[begin].time, "{program:?}");
                seen += 1;
            }
            for end in places(&records, "THREAD_TEAM_END") {
                let left = &records[end - 1];
                let is_it = |construct: &&str| left.is("LEAVE", construct);
                assert!(TEAMS.iter().any(is_it), "{program:?}: {left:?}");
                assert_eq!(left.time, records[end].time, "{program:?}");
            }
        }
    }
    assert!(seen > 500, "{seen}");
}

/// From a region's Enter on the thread that forks, Scalasca looks backwards for the fork; from its Leave, forwards for
/// the join.
#[test]
fn the_forking_thread_forks_before_its_part_and_joins_behind_it() {
    // Of a league on a device, runtimes do not report the members.
    for program in PROGRAMS.into_iter().filter(|program| program.1 != OFFLOAD) {
        let mut forks = 0;
        for records in records(program) {
            let mut open: Vec<bool> = Vec::new();
            for record in &records {
                match &record.kind[..] {
                    "THREAD_FORK" => {
                        open.push(false);
                        forks += 1;
                    }
                    // The first team that begins behind a fork is its own, and ends before the join.
                    "THREAD_TEAM_BEGIN" if open.last() == Some(&false) => {
                        *open.last_mut().expect("a fork") = true;
                    }
                    "THREAD_JOIN" => {
                        assert_eq!(open.pop(), Some(true), "{program:?}: {record:?}");
                    }
                    _ => {}
                }
            }
            assert!(open.is_empty(), "{program:?}");
        }
        assert!(forks > 0, "{program:?}");
    }
}

#[test]
fn tasks_are_created_in_a_region_and_entered_behind_their_first_switch() {
    let (mut created, mut completed) = (0, 0);
    for program in PROGRAMS {
        let mut entered = BTreeSet::new();
        let mut all = BTreeSet::new();
        for records in records(program) {
            for create in places(&records, "THREAD_TASK_CREATE") {
                let [enter, create, leave] = &records[create - 1..create + 2] else {
                    unreachable!("three records");
                };
                assert!(enter.is("ENTER", "!$omp create task"), "{program:?}: {enter:?}");
                assert!(leave.is("LEAVE", "!$omp create task"), "{program:?}: {leave:?}");
                assert_eq!([enter.time, leave.time], [create.time; 2], "{program:?}");
                all.insert(create.what.clone());
                created += 1;
            }
            for switch in places(&records, "THREAD_TASK_SWITCH") {
                let next = records.get(switch + 1);
                let is_task = |next: &Record| next.kind == "ENTER" && next.what.contains(" task");
                if next.is_some_and(is_task) {
                    entered.insert(records[switch].what.clone());
                }
            }
            for complete in places(&records, "THREAD_TASK_COMPLETE") {
                let before = &records[complete - 1];
                let ran = entered.contains(&records[complete].what);
                assert!(!ran || before.kind == "LEAVE", "{program:?}: {before:?}");
                completed += 1;
            }
        }
        let unknown: Vec<&String> =
            entered.difference(&all).filter(|task| !task.ends_with("Generation Number: 0")).collect();
        assert_eq!(unknown, [""; 0], "{program:?}: entered and not created");
    }
    assert_eq!(created, completed);
    assert!(created > 500, "{created}");
}

#[test]
fn a_critical_region_is_acquired_between_its_two_enters_and_released_between_its_leaves() {
    let mut seen = 0;
    for program in PROGRAMS {
        for records in records(program) {
            for acquire in places(&records, "THREAD_ACQUIRE_LOCK") {
                if !records[acquire - 1].is("ENTER", "!$omp critical") {
                    continue;
                }
                let sblock = &records[acquire + 1];
                assert!(sblock.is("ENTER", "!$omp critical sblock"), "{program:?}: {sblock:?}");
                seen += 1;
            }
            for release in places(&records, "THREAD_RELEASE_LOCK") {
                if !records[release - 1].is("LEAVE", "!$omp critical sblock") {
                    continue;
                }
                let left = &records[release + 1];
                assert!(left.is("LEAVE", "!$omp critical"), "{program:?}: {left:?}");
                seen -= 1;
            }
        }
    }
    assert_eq!(seen, 0, "as many are acquired so as are released so");
}

/// Scalasca executes a barrier wherever the threads of a team enter one, so all must do so in the same order. It knows
/// constructs by their names.
#[test]
fn members_of_a_team_enter_the_same_regions_and_barriers() {
    let traced = traced(("examples/stencil.c", &[], &["400", "20"]));
    let answer = events(&archive(&traced, &["--host-only"]));
    let mut entered: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for row in rows(&answer["intervals"]) {
        let name = text(&row[3]);
        let construct = split_place(&name).0;
        if ["!$omp parallel", "!$omp barrier", "!$omp implicit barrier"].contains(&construct) {
            let of_thread = entered.entry(text(&row[0])).or_default();
            of_thread.push((number(&row[1]), name));
        }
    }
    let mut sequences = entered.into_values().map(|mut entered| {
        entered.sort();
        entered.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    });
    let main = sequences.next().expect("the main thread");
    assert!(main.len() > 40, "{}", main.len());
    let worker = sequences.next().expect("a worker");
    assert_eq!(main, worker);
}

#[test]
fn acquisitions_of_a_lock_count_up_from_1() {
    let traced = traced(("examples/lock_fight.c", &[], &["2000"]));
    let answer = events(&archive(&traced, &[]));
    let mut orders: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for row in rows(&answer["locks"]) {
        orders.entry(number(&row[2])).or_default().push(number(&row[3]));
    }
    assert!(!orders.is_empty());
    for mut orders in orders.into_values() {
        orders.sort_unstable();
        let expected: Vec<u64> = (1..=orders.len() as u64).collect();
        assert_eq!(orders, expected, "without gaps");
    }
}
