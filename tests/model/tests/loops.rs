//! `loops[]`: the times of loops with other `schedule` clauses, compared with those of the same iterations divided again one by one.
//!
//! `OMPTRACE_TEST_SEED` and `OMPTRACE_TEST_PROGRAMS` try other programs.

mod library;

use omptrace_model::checker::{Checker, write_trace};
use omptrace_model::compare::place_of;
use omptrace_model::program::{CODE_STEP, Code, Kind, Ns, Program, Schedule, Statement};
use omptrace_model::random::Random;
use omptrace_model::simulate::{Machine, simulate};
use omptrace_model::truth::clauses::{CHUNK_COST, as_recorded, chunks, loop_time, spelled};
use omptrace_model::write::{Dialect, Ending, Process, text};
use serde_json::Value;

use library::{number, omptrace};

const PROGRAMS: u64 = 150;

/// What is tried, in no order.
const TRIED: [usize; 7] = [1, 4, 16, 64, 256, 1024, 4096];

/// Analysis and model may round each chunk's time, and take a loop that is even but for 2 % for even.
const SLACK: f64 = 0.03;

/// Of more chunks for each thread, the analysis takes the mean.
const MAX_CHUNKS: usize = 64;

/// The error of that: a long iteration may come last.
const SLACK_OF_MEAN: f64 = 0.12;

/// Loops of a region, each with a barrier behind it.
struct Loop {
    code: Code,
    schedule: Schedule,
    iterations: Vec<Ns>,
}

fn random_loop(random: &mut Random, code: Code) -> Loop {
    let size = 1 + random.below(8) as usize;
    let schedule = match random.below(4) {
        0 | 1 => Schedule::Static,
        2 => Schedule::Dynamic(size),
        _ => Schedule::Dynamic(1),
    };
    let count = 1 + random.below(200);
    let (base, slope) = (1_000 + random.below(20_000), random.below(500));
    let peak = random.below(count);
    let iterations = (0..count).map(|i| match random.chance(3) {
        true => base * 20,
        false => base + slope * i.abs_diff(peak) + random.below(base),
    });
    Loop { code, schedule, iterations: iterations.collect() }
}

/// What is wrong with the row of a loop that `executions` of a team of `threads` had.
fn judge(of_loop: &Loop, row: &Value, threads: usize, executions: u64) -> Vec<String> {
    let count = of_loop.iterations.len();
    let is_of_blocks = of_loop.schedule == Schedule::Static;
    let pieces = chunks(of_loop.schedule, count, threads);
    let cost = if is_of_blocks { 0.0 } else { CHUNK_COST };
    let iterations = as_recorded(&of_loop.iterations, &pieces, cost);
    let mut wrong = Vec::new();
    let mut near = |name: &str, schedule: Schedule, shown: &Value| {
        let expected = loop_time(&iterations, schedule, threads);
        let is_of_mean = chunks(schedule, count, threads).len() > MAX_CHUNKS * threads;
        let slack = if is_of_mean { SLACK_OF_MEAN } else { SLACK };
        let expected = expected * executions as f64;
        let shown = shown.as_u64().unwrap_or(0) as f64;
        let slack = slack * expected + (count as u64 * executions) as f64;
        if (shown - expected).abs() > slack {
            wrong.push(format!("{name}: expected {expected:.0}, shown {shown}"));
        }
    };
    near("recorded_ns", of_loop.schedule, &row["recorded_ns"]);
    let all = TRIED.iter().flat_map(|size| [Schedule::Dynamic(*size), Schedule::StaticChunks(*size)]);
    let all: Vec<Schedule> = all.chain([Schedule::Static, Schedule::Guided]).collect();
    let mut unknown = Vec::new();
    let shown = row["schedules"].as_array().expect("a list");
    for of_clause in shown {
        let clause = of_clause["clause"].as_str().expect("a clause");
        let Some(schedule) = all.iter().find(|schedule| spelled(**schedule) == clause) else {
            unknown.push(format!("{clause} is none of those that are tried"));
            continue;
        };
        near(clause, *schedule, &of_clause["duration_ns"]);
    }
    wrong.append(&mut unknown);
    // Where each iteration is known, all of them can be said.
    if pieces.len() == count && shown.len() != all.len() {
        wrong.push(format!("{} of {} clauses", shown.len(), all.len()));
    }
    wrong
}

#[test]
fn loops_take_as_long_with_other_clauses_as_their_iterations_do() {
    let first = number("OMPTRACE_TEST_SEED").unwrap_or(1);
    let programs = number("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS);
    println!("{programs} programs from OMPTRACE_TEST_SEED={first}");
    let folder = tempfile::tempdir().expect("a folder");
    let checker = Checker { omptrace: omptrace(), folder: folder.path().to_owned() };
    let (mut failures, mut judged, mut clauses) = (Vec::new(), 0, 0);
    for seed in first..first + programs {
        let mut random = Random::new(seed);
        let threads = 2 + random.below(5) as usize;
        let executions = 1 + random.below(3);
        let loops = 1 + random.below(3);
        let loops: Vec<Loop> = (0..loops).map(|n| random_loop(&mut random, 0x1000 + n * CODE_STEP)).collect();
        let of_loop = |of_loop: &Loop| {
            let (schedule, iterations) = (of_loop.schedule, of_loop.iterations.clone());
            let kind = Kind::For { schedule, iterations, nowait: false, reduction: None };
            Statement { code: of_loop.code, kind }
        };
        let body: Vec<Statement> = (0..executions).flat_map(|_| loops.iter().map(of_loop)).collect();
        let region = Statement { code: 0x2000, kind: Kind::Parallel { threads, body } };
        let machine = Machine {
            seed,
            threads,
            max_wake_up: 0,
            is_first_come: true,
            reports_ends_late: true,
            shares_sections: false,
            has_outsider: false,
            helpers: 0,
        };
        let run = simulate(&Program { body: vec![region] }, &machine).expect("it ends");
        let process = Process { pid: 10, start: 0, run: &run, ending: Ending::Complete };
        let trace = folder.path().join("loops.omptrace");
        write_trace(&text(&process, Dialect::Llvm), &trace).expect("a trace");
        let shown = checker.stats(&[&trace], &[]).expect("an answer");
        for of_loop in &loops {
            let mut rows = shown["loops"].as_array().expect("a list").iter();
            let Some(row) = rows.find(|row| place_of(row) == Some(of_loop.code)) else {
                failures.push(format!("seed {seed}: no row of the loop at {:#x}", of_loop.code));
                continue;
            };
            if row["executions"] != executions {
                failures.push(format!("seed {seed}: {row}"));
            }
            judged += 1;
            clauses += row["schedules"].as_array().map_or(0, Vec::len);
            let wrong = judge(of_loop, row, threads, executions);
            failures.extend(wrong.into_iter().map(|wrong| {
                let Loop { code, schedule, iterations } = of_loop;
                format!(
                    "seed {seed}: {threads} threads, {schedule:?}, {} iterations at {code:#x}: {wrong}",
                    iterations.len()
                )
            }));
        }
    }
    println!("{judged} loops, {clauses} clauses");
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures[..failures.len().min(20)].join("\n")
    );
}
