//! Parts of runs, several processes, and other ways to the same numbers. Windows, threads and phases are the model's own cuts. Summaries,
//! segments and any number of jobs give the same. Tables have the same sums.
//!
//! `OMPTRACE_TEST_SEED` and `OMPTRACE_TEST_PROGRAMS` try other programs.

mod library;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use omptrace_model::callback::{Callback, Scope};
use omptrace_model::case::Case;
use omptrace_model::checker::{Checker, write_trace};
use omptrace_model::compare::compare_part;
use omptrace_model::program::Ns;
use omptrace_model::random::Random;
use omptrace_model::run::{Activity, Run, team_at};
use omptrace_model::simulate::simulate;
use omptrace_model::truth::accounting::{Accounting, Part, accounting};
use omptrace_model::write::{Dialect, Ending, Process, text};
use omptrace_tests::windows::{self, Divided};
use omptrace_trace_format::Reader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use serde_json::Value;

use library::{number, omptrace};

/// Programs of each test unless the user says otherwise.
const PROGRAMS: u64 = 150;
/// Programs that are analysed in segments: few have a loop whose schedules are compared behind a cut.
const PROGRAMS_IN_SEGMENTS: u64 = 500;

/// Events between two checkpoints, at least: the programs are small.
const CHECKPOINT_DISTANCE: u64 = 4;

fn whole<'r>(run: &'r Run) -> Process<'r> {
    Process { pid: 10, start: 0, run, ending: Ending::Complete }
}

/// The operating system's id of a thread: numbers of the timeline leave out those that never were in a team.
fn os_tid(thread: usize) -> usize {
    10 + thread
}

/// Calls `check` with the runs of many programs. What it returns are failures.
fn each(check: impl Fn(&Checker, &Run, &mut Random) -> Vec<String>) {
    each_of(PROGRAMS, check);
}

/// The same, of so many programs unless the user says otherwise.
fn each_of(programs: u64, check: impl Fn(&Checker, &Run, &mut Random) -> Vec<String>) {
    let first = number("OMPTRACE_TEST_SEED").unwrap_or(1);
    let programs = number("OMPTRACE_TEST_PROGRAMS").unwrap_or(programs);
    println!("{programs} programs from OMPTRACE_TEST_SEED={first}");
    let folder = tempfile::tempdir().expect("a folder");
    let checker = Checker { omptrace: omptrace(), folder: folder.path().to_owned() };
    let mut failures = vec![];
    for index in 0..programs {
        // Programs of all sizes.
        let mut case = Case::new(first + index * 13);
        // What prompt ends differ in is known.
        case.machine.reports_ends_late = true;
        let run = simulate(&case.program, &case.machine).filter(|run| run.end > 10);
        let Some(run) = run else { continue };
        let found = check(&checker, &run, &mut Random::new(case.seed));
        failures.extend(found.into_iter().map(|failure| format!("{failure}\n{case}")));
    }
    assert!(
        failures.is_empty(),
        "{} differ, the first three:\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}

/// What differs between a part of `run` and what `stats` says with `options`.
fn differs(checker: &Checker, run: &Run, part: &Part, options: &[&str]) -> Vec<String> {
    let trace = checker.folder.join("part.omptrace");
    write_trace(&text(&whole(run), Dialect::Llvm), &trace).expect("a writable folder");
    match checker.stats(&[&trace], options) {
        Ok(shown) => {
            let differences = compare_part(run, part, &shown);
            differences.iter().map(|difference| format!("{options:?}: {difference}")).collect()
        }
        Err(message) => vec![format!("{options:?}: {message}")],
    }
}

/// A random time within `run`.
fn window(run: &Run, random: &mut Random) -> (Ns, Ns) {
    let begin = random.below(run.end - 1);
    (begin, begin + 1 + random.below(run.end - begin))
}

#[test]
fn windows_are_cuts_of_the_model() {
    each(|checker, run, random| {
        let window = window(run, random);
        let option = format!("{}ns..{}ns", window.0, window.1);
        differs(checker, run, &Part { window, threads: vec![] }, &["--window", &option])
    });
}

#[test]
fn threads_are_cuts_of_the_model() {
    each(|checker, run, random| {
        let thread = random.below(run.spans.len() as u64) as usize;
        let part = Part { threads: vec![thread], ..Part::whole(run) };
        differs(checker, run, &part, &["--thread", &os_tid(thread).to_string()])
    });
}

/// Whether the initial thread runs the program's code, which alone begins and ends phases, outside of explicit tasks: a phase that
/// begins in a task goes with it.
fn runs_code(run: &Run, time: Ns) -> bool {
    let mut spans = run.spans[0].iter().filter(|span| (span.begin..span.end).contains(&time));
    spans.any(|span| span.doing.activity == Activity::Useful && !span.doing.in_task)
}

fn has_untied_tasks(run: &Run) -> bool {
    let is_untied =
        |callback: &Callback| matches!(callback, Callback::TaskCreate { flags, .. } if flags.untied);
    run.callbacks.iter().any(|(_, _, callback)| is_untied(callback))
}

#[test]
fn phases_are_cuts_of_the_model() {
    each(|checker, run, random| {
        let mut windows = (0..20).map(|_| window(run, random));
        let Some(window) = windows.find(|window| runs_code(run, window.0) && runs_code(run, window.1)) else {
            return vec![];
        };
        let mut with_phase = run.clone();
        for (time, scope) in [(window.0, Scope::Begin), (window.1, Scope::End)] {
            // Behind what happens at that time.
            with_phase.callbacks.push((time, 0, Callback::Phase { scope, name: "part" }));
        }
        // The last events of the initial thread end its stream. And a phase that begins in an untied task goes with it.
        if window.1 == run.end || has_untied_tasks(run) {
            return vec![];
        }
        differs(checker, &with_phase, &Part { window, threads: vec![] }, &["--phase", "part"])
    });
}

#[test]
fn killed_processes_have_what_was_before() {
    each(|checker, run, random| {
        let (_, last) = window(run, random);
        let before = run.callbacks.iter().map(|(time, ..)| *time).filter(|time| *time <= last);
        let Some(end) = before.max().filter(|end| *end > 0) else {
            return vec![];
        };
        let trace = checker.folder.join("killed.omptrace");
        let process = Process { ending: Ending::Killed(last), ..whole(run) };
        write_trace(&text(&process, Dialect::Llvm), &trace).expect("a writable folder");
        let shown = match checker.stats(&[&trace], &[]) {
            Ok(shown) => shown,
            Err(message) => return vec![message],
        };
        let part = Part { window: (0, end), threads: vec![] };
        let differences = compare_part(run, &part, &shown);
        // Whether a barrier that was open is the last of its region, and when its tasks end, is known only later.
        let is_sure = |field: &str| !["join", "barrier", "starvation"].iter().any(|end| field.ends_with(end));
        let sure = differences.iter().filter(|of| is_sure(&of.field) && !of.field.starts_with("efficiency"));
        sure.map(|difference| format!("killed at {last}: {difference}")).collect()
    });
}

/// What `stats` says of `run` in a dialect differs from `truth` by cause.
fn accounted(checker: &Checker, run: &Run, dialect: Dialect, truth: &Accounting) -> Vec<String> {
    let trace = checker.folder.join("accounted.omptrace");
    write_trace(&text(&whole(run), dialect), &trace).expect("a writable folder");
    let shown = match checker.stats(&[&trace], &[]) {
        Ok(shown) => shown,
        Err(message) => return vec![message],
    };
    let mut failures = vec![];
    let fields = shown["accounting"].as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| *name != "total_ns") {
        let expected = truth.of(name.trim_end_matches("_ns"));
        if value.as_u64().is_none_or(|shown| shown.abs_diff(expected) > 3) {
            failures.push(format!("{name}: expected {expected}, shown {value}"));
        }
    }
    failures
}

/// A time within the serial code at the begin of a run, in which no event is.
fn serial_time(run: &Run, random: &mut Random) -> Option<(Ns, Ns)> {
    let first = run.spans[0].first()?;
    let begin = 1 + random.below(first.end / 2);
    let end = begin + 1 + random.below(first.end.checked_sub(begin + 3)?);
    Some((begin, end))
}

#[test]
fn pauses_are_unobserved_on_all_threads() {
    each(|checker, run, random| {
        let Some((begin, end)) = serial_time(run, random) else {
            return vec![];
        };
        let mut paused = run.clone();
        paused.callbacks.push((begin, 0, Callback::Pause { stops: true }));
        paused.callbacks.push((end, 0, Callback::Pause { stops: false }));
        let mut truth = accounting(run, &Part::whole(run));
        let ns = end - begin;
        *truth.causes.entry("useful").or_default() -= ns;
        if truth.threads > 1 {
            *truth.causes.entry("serial").or_default() -= ns * (truth.threads - 1);
        }
        truth.causes.insert("unobserved", ns * truth.threads);
        let failures = accounted(checker, &paused, Dialect::Llvm, &truth);
        failures.into_iter().map(|failure| format!("paused {begin}..{end}: {failure}")).collect()
    });
}

#[test]
fn time_of_lost_events_is_unobserved() {
    each(|checker, run, random| {
        let Some((begin, end)) = serial_time(run, random) else {
            return vec![];
        };
        let mut lossy = run.clone();
        lossy.callbacks.push((end, 0, Callback::Lost { since: begin, events: 3 }));
        let mut truth = accounting(run, &Part::whole(run));
        *truth.causes.entry("useful").or_default() -= end - begin;
        truth.causes.insert("unobserved", end - begin);
        let failures = accounted(checker, &lossy, Dialect::Llvm, &truth);
        failures.into_iter().map(|failure| format!("lost {begin}..{end}: {failure}")).collect()
    });
}

#[test]
fn what_libgomp_hides_counts_for_the_code_around() {
    each(|checker, run, _| {
        let mut truth = accounting(run, &Part::whole(run));
        let reduction = truth.causes.remove("reduction").unwrap_or(0);
        *truth.causes.entry("useful").or_default() += reduction;
        accounted(checker, run, Dialect::Libgomp, &truth)
    });
}

#[test]
fn processes_in_turn_and_at_once_add_up() {
    each(|checker, run, random| {
        let start = if random.chance(50) { run.end } else { random.below(run.end) };
        let traces = ["first", "second"].map(|name| checker.folder.join(format!("{name}.omptrace")));
        for (trace, (pid, start)) in traces.iter().zip([(10, 0), (20, start)]) {
            let process = Process { pid, start, ..whole(run) };
            write_trace(&text(&process, Dialect::Llvm), trace).expect("a writable folder");
        }
        let shown = match checker.stats(&[&traces[0], &traces[1]], &[]) {
            Ok(shown) => shown,
            Err(message) => return vec![message],
        };
        let one = accounting(run, &Part::whole(run));
        let threads = if start < run.end { 2 * one.threads } else { one.threads };
        let duration = start + run.end;
        let mut failures = vec![];
        let mut check = |name: &str, expected: Ns, shown: &Value| {
            if shown.as_u64().is_none_or(|shown| shown.abs_diff(expected) > 6) {
                failures.push(format!(
                    "the second starts at {start}: {name}: expected {expected}, shown {shown}"
                ));
            }
        };
        check("threads", threads, &shown["threads"]);
        check("duration_ns", duration, &shown["duration_ns"]);
        for (name, value) in shown["accounting"].as_object().into_iter().flatten() {
            let Some(cause) = name.strip_suffix("_ns").filter(|cause| *cause != "total") else {
                continue;
            };
            let expected = match cause {
                "unobserved" => threads * duration - 2 * one.threads * run.end,
                _ => 2 * one.of(cause),
            };
            check(name, expected, value);
        }
        failures
    });
}

#[test]
fn segments_give_the_same() {
    let segments = Cell::new(Divided::default());
    each_of(PROGRAMS_IN_SEGMENTS, |checker, run, random| {
        let trace = checker.folder.join("in_one.omptrace");
        let mut with_phase = run.clone();
        let mut windows = (0..20).map(|_| window(run, random));
        let is_serial = |time| runs_code(run, time) && team_at(run, 0, time) == 0;
        // A phase that began outside of a region and ended inside would cut the region in two.
        let phase = windows.find(|(begin, end)| is_serial(*begin) && is_serial(*end) && *end < run.end);
        if let Some((begin, end)) = phase {
            for (time, scope) in [(begin, Scope::Begin), (end, Scope::End)] {
                with_phase.callbacks.push((time, 0, Callback::Phase { scope, name: "part" }));
            }
        }
        write_trace(&text(&whole(&with_phase), Dialect::Llvm), &trace).expect("a writable folder");
        let folder = checker.folder.join("in_segments");
        fs::create_dir_all(&folder).expect("a writable folder");
        let (copy, ..) = windows::with_checkpoints(&trace, &folder, CHECKPOINT_DISTANCE);
        match windows::numbers_agree(&Reader::open(&copy).expect("a trace")) {
            Ok(of_run) => {
                let Divided { whole, windows } = segments.get();
                segments.set(Divided { whole: whole + of_run.whole, windows: windows + of_run.windows });
                vec![]
            }
            Err(difference) => vec![difference],
        }
    });
    let segments = segments.get();
    println!("{segments:?}");
    assert!(segments.whole > 0 && segments.windows > 0, "no run or no window has segments");
}

#[test]
fn summaries_and_jobs_give_the_same() {
    each(|checker, run, _| {
        let trace = checker.folder.join("same.omptrace");
        write_trace(&text(&whole(run), Dialect::Llvm), &trace).expect("a writable folder");
        let mut failures = vec![];
        let one = checker.stats(&[&trace], &["--jobs", "1"]);
        if one != checker.stats(&[&trace], &["--jobs", "8"]) {
            failures.push("eight jobs give other numbers than one".to_owned());
        }
        let recovered = Command::new(&checker.omptrace).arg("recover").arg(&trace).output().expect("it runs");
        if !recovered.status.success() {
            failures.push(String::from_utf8_lossy(&recovered.stderr).into_owned());
        }
        if one != checker.stats(&[&trace], &[]) {
            failures.push("the summary gives other numbers".to_owned());
        }
        failures
    });
}

/// The rows of a table: what `of` makes of each, by the position of its columns.
fn rows<T>(table: &Path, columns: [&str; 3], of: impl Fn(&Row, [usize; 3]) -> T) -> Vec<T> {
    let reader = SerializedFileReader::new(File::open(table).expect("a table")).expect("a table");
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let position = |name: &str| fields.iter().position(|field| field.name() == name).expect("a column");
    let positions = columns.map(position);
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| of(&row.expect("a row"), positions)).collect()
}

/// The sums of the tables by the model's thread and cause; those without a thread are those of thread -1.
fn sums(tables: &Path) -> BTreeMap<(i64, String), i64> {
    let table = |name: &str| tables.join(format!("table={name}/run=r/process=0/part-0.parquet"));
    let tids = rows(&table("threads"), ["thread", "os_tid", "kind"], |row, [thread, tid, _]| {
        (row.get_int(thread).expect("a number"), row.get_long(tid).unwrap_or(0))
    });
    let tids: BTreeMap<i32, i64> = tids.into_iter().collect();
    let accounted = rows(&table("accounting"), ["thread", "cause", "ns"], |row, [thread, cause, ns]| {
        let thread = row.get_int(thread).ok().map_or(-1, |thread| tids[&thread] - os_tid(0) as i64);
        let cause = row.get_string(cause).expect("a cause").clone();
        ((thread, cause), row.get_long(ns).expect("nanoseconds"))
    });
    let mut sums = BTreeMap::new();
    for (key, ns) in accounted {
        *sums.entry(key).or_default() += ns;
    }
    sums
}

#[test]
fn tables_have_the_time_of_each_thread_by_cause() {
    each(|checker, run, random| {
        // A fifth of the programs: a conversion writes many files.
        if !random.chance(20) {
            return vec![];
        }
        let (trace, tables) = (checker.folder.join("table.omptrace"), checker.folder.join("tables"));
        write_trace(&text(&whole(run), Dialect::Llvm), &trace).expect("a writable folder");
        let _ = std::fs::remove_dir_all(&tables);
        let mut convert = Command::new(&checker.omptrace);
        convert.args(["convert", "--to", "parquet", "--run", "r", "-o"]).args([&tables, &trace]);
        let output = convert.output().expect("it runs");
        if !output.status.success() {
            return vec![String::from_utf8_lossy(&output.stderr).into_owned()];
        }
        let shown = sums(&tables);
        let truth = accounting(run, &Part::whole(run));
        let mut failures = vec![];
        for (thread, causes) in truth.by_thread.iter().enumerate() {
            let shown = |cause: &str| shown.get(&(thread as i64, cause.to_owned())).copied().unwrap_or(0);
            for (cause, expected) in causes {
                // The moment at which the last task has ended and the barrier is over.
                if shown(cause).abs_diff(*expected as i64) > 3 {
                    failures.push(format!(
                        "thread {thread}: {cause}: expected {expected}, in the table {}",
                        shown(cause)
                    ));
                }
            }
        }
        let whole: i64 = shown.values().sum();
        if whole != (truth.threads * truth.duration) as i64 {
            failures
                .push(format!("N x T: expected {}, in the table {whole}", truth.threads * truth.duration));
        }
        failures
    });
}
