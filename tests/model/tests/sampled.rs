//! Shares of causes that are estimated from windows at random places, as `record` does if the whole analysis would take too long,
//! against those of the whole run. The programs are long: each repeats some random regions, and which of them, and how long they
//! take, changes in the course of the run.
//!
//! `OMPTRACE_TEST_SEED` and `OMPTRACE_TEST_PROGRAMS` try other programs, and show how far each estimate is off.

mod library;

use omptrace_analysis::{Options, Stats};
use omptrace_model::case::Case;
use omptrace_model::checker::write_trace;
use omptrace_model::generate::{FAMILIES, Family, has_calls};
use omptrace_model::program::{Kind, Program, Statement};
use omptrace_model::random::Random;
use omptrace_model::run::Run;
use omptrace_model::simulate::{Machine, simulate};
use omptrace_model::write::{Dialect, Ending, Process, text};
use omptrace_trace_format::Reader;

use library::number;

/// Programs unless the user says otherwise.
const PROGRAMS: u64 = 2;
/// Random programs whose regions one long program repeats.
const SOURCES: u64 = 3;
/// The distance between the code addresses of two of these.
const CODE_DISTANCE: u64 = 1 << 20;
/// Statements of each.
const STATEMENTS: usize = 24;
/// Stages of a run, in which other regions are frequent.
const STAGES: u64 = 4;
/// Regions of a run.
const REGIONS: u64 = 4000;
/// The windows have one of so many events.
const WINDOWS_OF: u64 = 20;
/// Percentage points by which an estimate may be off.
const MOST: f64 = 5.0;
/// Percentage points by which nine of ten estimates may be off.
const MOST_OF_NINE: f64 = 3.0;

/// Families without devices, and without tasks that outlive their region.
fn families() -> Vec<Family> {
    let families = FAMILIES.into_iter();
    families.filter(|family| !(family.devices || family.detached || family.cancellation)).collect()
}

/// Moves the statements to other addresses, and changes the times of their work by a factor in percent.
fn change(body: &mut [Statement], distance: u64, percent: u64) {
    for statement in body {
        statement.code += distance;
        if let Kind::Work(times) | Kind::For { iterations: times, .. } = &mut statement.kind {
            times.iter_mut().for_each(|ns| *ns = (*ns * percent / 100).max(1));
        }
        if let Some(inner) = statement.body_mut() {
            change(inner, distance, percent);
        }
    }
}

/// A long run, and the name of its family. `None` where the program waits for itself.
fn long_run(seed: u64) -> Option<(Run, &'static str)> {
    let families = families();
    let family = families[(seed % families.len() as u64) as usize];
    let seeds = (seed * 1000..).filter(|seed| !has_calls(*seed)).take(SOURCES as usize);
    let cases: Vec<Case> = seeds.map(|seed| Case::of_family(seed, family, STATEMENTS)).collect();
    let threads = cases.iter().map(|case| case.program.widest()).max()?;
    let mut regions = Vec::new();
    for (number, case) in (0..).zip(&cases) {
        let mut body = case.program.body.clone();
        change(&mut body, number * CODE_DISTANCE, 100);
        // Serial work goes with the region before it.
        for statement in body {
            match (&statement.kind, regions.last_mut()) {
                (Kind::Parallel { .. }, _) => regions.push(vec![statement]),
                (_, Some(region)) => region.push(statement),
                (_, None) => {}
            }
        }
    }
    let mut random = Random::new(seed);
    let mut weights = || regions.iter().map(|_| (random.below(10), 20 + random.below(300))).collect();
    let stages: Vec<Vec<(u64, u64)>> = (0..STAGES).map(|_| weights()).collect();
    let mut program = Program::default();
    for number in 0..REGIONS {
        let stage = &stages[(number * STAGES / REGIONS) as usize];
        let all: u64 = stage.iter().map(|(weight, _)| weight + 1).sum();
        let mut left = random.below(all);
        let index = stage.iter().position(|(weight, _)| {
            let is_it = left <= *weight;
            left = left.saturating_sub(weight + 1);
            is_it
        });
        let index = index.unwrap_or(0);
        let mut region = regions[index].clone();
        change(&mut region, 0, stage[index].1 * (50 + random.below(100)) / 100);
        program.body.extend(region);
    }
    let machine = Machine {
        threads: threads.max(cases[0].machine.threads),
        reports_ends_late: true,
        has_outsider: false,
        ..cases[0].machine.clone()
    };
    Some((simulate(&program, &machine)?, family.name))
}

/// By how many points the estimate of a cause's share is off, for the cause for which that is most, and the cause's name. `None` if
/// the trace cannot be sampled.
fn off(reader: &Reader) -> Option<(f64, &'static str)> {
    let (whole, _) = Stats::with(&[reader], &Options::default()).expect("nothing is selected");
    let sampled = Stats::of_sample(reader, reader.summary().event_bytes / WINDOWS_OF)?;
    let share = |stats: &Stats, ns: u64| ns as f64 * 100.0 / stats.answers.accounting.total().max(1) as f64;
    let causes = whole.answers.accounting.iter().map(|(cause, ns)| {
        let estimated = share(&sampled, sampled.answers.accounting[cause]);
        ((estimated - share(&whole, ns)).abs(), cause.name())
    });
    causes.max_by(|a, b| a.0.total_cmp(&b.0))
}

#[test]
fn random_windows_are_like_the_whole_run() {
    let first = number("OMPTRACE_TEST_SEED").unwrap_or(1);
    let programs = number("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS);
    println!("{programs} programs from OMPTRACE_TEST_SEED={first}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.omptrace");
    let mut distances = Vec::new();
    for seed in first..first + programs {
        let Some((run, family)) = long_run(seed) else {
            println!("seed {seed}: waits for itself");
            continue;
        };
        let process = Process { pid: 10, start: 0, run: &run, ending: Ending::Complete };
        write_trace(&text(&process, Dialect::Llvm), &path).expect("a writable folder");
        let reader = Reader::open(&path).expect("a trace");
        let events = run.callbacks.len();
        match off(&reader) {
            Some((points, cause)) => {
                println!("seed {seed}, {family}, {events} events: {cause} is {points:.1} points off");
                distances.push(points);
            }
            None => println!("seed {seed}, {family}, {events} events: not sampled"),
        }
    }
    distances.sort_by(f64::total_cmp);
    let nine_of_ten = distances.len() * 9 / 10;
    let (nine, one) = distances.split_at(nine_of_ten);
    assert!(distances.len() as u64 * 2 > programs, "too few could be sampled");
    assert!(nine.iter().all(|points| *points < MOST_OF_NINE), "{distances:?}");
    assert!(one.iter().all(|points| *points < MOST), "{distances:?}");
}
