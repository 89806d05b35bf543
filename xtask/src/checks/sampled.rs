//! Samples of programs for aarch64, by qemu's user mode: what they weigh, and that their stacks are those that there were.
//!
//! qemu delivers the signals of timers, but knows no `perf_event_open`. So this is the clock of `--sample=cpu`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::emulated::{clang, gcc, llvm, on_aarch64};
use crate::omptrace::omptrace;
use crate::process::{output, run};
use crate::result::Result;

/// Divides its time among [`FUNCTIONS`].
const SHARES: &str = "tests/programs/shares.c";
/// Threads, and milliseconds of each.
const ARGUMENTS: [&str; 2] = ["2", "1500"];
const FUNCTIONS: [&str; 3] = ["sixty", "thirty", "ten"];
/// How many hundredths the share of a function may differ: of all programs together, and of one, which has a quarter of the samples.
const TOLERANCE: f64 = 4.0;
const TOLERANCE_OF_ONE: f64 = 10.0;
/// The part of the samples in [`FUNCTIONS`] whose stack must be right.
const RIGHT: f64 = 0.98;

/// Prints the stacks that libgcc finds where it asks for samples.
const STACKS: &str = "tests/programs/stacks.c";

/// How programs are made: by GCC or Clang, for which kind of code.
struct Build {
    name: &'static str,
    is_gcc: bool,
    flags: &'static [&'static str],
}

const BUILDS: [Build; 5] = [
    Build { name: "gcc", is_gcc: true, flags: &["-O2"] },
    Build { name: "gcc-no-frame-pointer", is_gcc: true, flags: &["-O2", "-fomit-frame-pointer"] },
    Build { name: "gcc-signed", is_gcc: true, flags: &["-O2", "-mbranch-protection=standard"] },
    Build { name: "clang", is_gcc: false, flags: &["-O2"] },
    Build { name: "clang-no-frame-pointer", is_gcc: false, flags: &["-O2", "-fomit-frame-pointer"] },
];

/// Runs all of it, with the libraries in `built`.
///
/// # Errors
/// A program cannot be made or run, or its samples are wrong.
pub(super) fn check(built: &Path, folder: &Path) -> Result<()> {
    let (mut sampled, mut worked) = (Times::new(), Times::new());
    for build in &BUILDS {
        let (of_samples, by_itself) =
            shares(build, built, folder).map_err(|error| format!("shares, {}: {error}", build.name))?;
        let apart = apart(&of_samples, &by_itself);
        if apart > TOLERANCE_OF_ONE {
            return Err(differs(build.name, &of_samples, &by_itself).into());
        }
        add(&mut sampled, &of_samples);
        add(&mut worked, &by_itself);
    }
    if apart(&sampled, &worked) > TOLERANCE {
        return Err(differs("all programs", &sampled, &worked).into());
    }
    // libgcc does not unwind LLVM's runtime: its function that calls the program's has no unwind information.
    let mut compared = 0;
    for build in BUILDS.iter().filter(|build| build.is_gcc) {
        compared +=
            stacks(build, built, folder).map_err(|error| format!("stacks, {}: {error}", build.name))?;
    }
    println!(
        "samples on aarch64: {}, of {} programs; {compared} stacks as libgcc finds them",
        differs("shares", &sampled, &worked),
        BUILDS.len()
    );
    Ok(())
}

/// Nanoseconds of each function.
type Times = BTreeMap<String, f64>;

fn add(sum: &mut Times, times: &Times) {
    for (name, ns) in times {
        *sum.entry(name.clone()).or_default() += ns;
    }
}

/// A function's hundredths of the time.
fn share(times: &Times, name: &str) -> f64 {
    100.0 * times.get(name).unwrap_or(&0.0) / times.values().sum::<f64>()
}

/// By how many hundredths the shares differ at most; infinitely many where there is no time at all.
fn apart(sampled: &Times, worked: &Times) -> f64 {
    let differences = FUNCTIONS.iter().map(|name| (share(sampled, name) - share(worked, name)).abs());
    differences
        .map(|difference| if difference.is_nan() { f64::INFINITY } else { difference })
        .fold(0.0, f64::max)
}

fn differs(what: &str, sampled: &Times, worked: &Times) -> String {
    let of = |name: &&str| format!("{name} {:.1} % of {:.1}", share(sampled, name), share(worked, name));
    format!("{what}: {}", FUNCTIONS.iter().map(of).collect::<Vec<_>>().join(", "))
}

/// Makes the program, and records a run; its output.
fn record(build: &Build, source: &str, arguments: &[&str], built: &Path, folder: &Path) -> Result<Recorded> {
    let name = format!("{}-{}", Path::new(source).file_stem().unwrap_or_default().display(), build.name);
    let program = folder.join(&name);
    let compiler = if build.is_gcc { gcc } else { clang };
    compiler(source, build.flags, &program).iter_mut().try_for_each(run)?;
    let trace = folder.join(format!("{name}.omptrace"));
    if trace.exists() {
        fs::remove_file(&trace)?;
    }
    let library = |name: &str| built.join(name).display().to_string();
    let mut variables = vec![
        ("OMP_TOOL_LIBRARIES", library("libomptrace.so")),
        ("OMPTRACE_OUTPUT", trace.display().to_string()),
        ("OMPTRACE_SAMPLE", "cpu".to_owned()),
    ];
    variables.push(match build.is_gcc {
        true => ("LD_PRELOAD", library("libomptgomp.so")),
        false => ("LD_LIBRARY_PATH", llvm().display().to_string()),
    });
    let said = output(on_aarch64(&program, &variables).args(arguments))?;
    Ok(Recorded { name, trace: trace.display().to_string(), said: String::from_utf8(said)? })
}

struct Recorded {
    name: String,
    trace: String,
    said: String,
}

/// What the samples of a run say of the functions, and what the program says itself.
fn shares(build: &Build, built: &Path, folder: &Path) -> Result<(Times, Times)> {
    let recorded = record(build, SHARES, &ARGUMENTS, built, folder)?;
    let worked: Times = recorded
        .said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, ns)| Ok((name.to_owned(), ns.parse()?)))
        .collect::<Result<_>>()?;
    let path = folder.join(format!("{}.folded", recorded.name));
    run(omptrace(&["convert", "--to", "folded", "-o"]).arg(&path).arg(&recorded.trace))?;
    let (times, right) = of_stacks(&fs::read_to_string(path)?)?;
    if right < RIGHT {
        return Err(format!(
            "{:.1} % of the time in the program's functions has the right stack",
            right * 100.0
        )
        .into());
    }
    Ok((times, worked))
}

/// The time in each function and what it calls, and the part of it whose stack is the one that there was: from `main` on.
fn of_stacks(folded: &str) -> Result<(Times, f64)> {
    let (mut times, mut all, mut right) = (Times::new(), 0.0, 0.0);
    for line in folded.lines() {
        let (stack, ns) = line.rsplit_once(' ').ok_or("a line without a weight")?;
        let ns: f64 = ns.parse()?;
        let stack: Vec<&str> = stack.split(';').collect();
        let Some((at, name)) = stack
            .iter()
            .enumerate()
            .find_map(|(at, frame)| Some((at, FUNCTIONS.iter().find(|name| *name == frame)?)))
        else {
            // Time of other code; but none of theirs, whose callers are missing.
            let is_theirs = stack.iter().any(|frame| ["inner", "down"].contains(frame));
            all += if is_theirs { ns } else { 0.0 };
            continue;
        };
        all += ns;
        *times.entry((*name).to_owned()).or_default() += ns;
        let inside = &stack[at + 1..];
        let is_inside = match *name {
            "sixty" => inside.is_empty(),
            "thirty" => inside.is_empty() || inside == ["inner"],
            _ => inside.len() <= 6 && inside.iter().all(|frame| *frame == "down"),
        };
        right += if stack[..at].ends_with(&["main", "work"]) && is_inside { ns } else { 0.0 };
    }
    Ok((times, if all > 0.0 { right / all } else { 0.0 }))
}

/// Compares the stacks of samples at places where libgcc unwinds, too; how many are the same.
fn stacks(build: &Build, built: &Path, folder: &Path) -> Result<usize> {
    let recorded = record(build, STACKS, &[], built, folder)?;
    let stack =
        |line: &str| -> Option<Vec<u64>> { line.strip_prefix("stack ")?.split(' ').map(number).collect() };
    let truth: BTreeSet<Vec<u64>> = recorded.said.lines().filter_map(stack).collect();
    // Those that the program has asked for lie in the function that calls `syscall`. Others are the timer's.
    let mut callers: BTreeMap<u64, Vec<Vec<u64>>> = BTreeMap::new();
    for sample in samples(&recorded.trace)? {
        if let [_, point, outer @ ..] = &sample[..] {
            callers.entry(*point).or_default().push(outer.to_vec());
        }
    }
    let asked = callers.into_values().max_by_key(Vec::len).unwrap_or_default();
    let found: BTreeSet<&Vec<u64>> = asked.iter().filter(|stack| truth.contains(*stack)).collect();
    let wrong = asked.iter().filter(|stack| !truth.contains(*stack)).count();
    // A sample of the timer may come there, too.
    let is_right = truth.len() >= 40 && found.len() * 3 >= truth.len() * 2 && wrong * 50 <= asked.len();
    match is_right {
        true => Ok(asked.len() - wrong),
        false => Err(format!(
            "of {} stacks, {} were found; of {} samples, {wrong} have another",
            truth.len(),
            found.len(),
            asked.len()
        )
        .into()),
    }
}

/// The frames of each sample.
fn samples(trace: &str) -> Result<Vec<Vec<u64>>> {
    let events = String::from_utf8(output(&mut dump(trace))?)?;
    let mut samples = Vec::new();
    for line in events.lines().filter(|line| line.contains("\"omptrace_sample\"")) {
        let event: Value = serde_json::from_str(line)?;
        let frames = event["stack"].as_array().ok_or("a sample without a stack")?;
        samples.push(frames.iter().filter_map(|frame| number(frame.as_str()?)).collect());
    }
    Ok(samples)
}

fn dump(trace: &str) -> Command {
    omptrace(&["dump", "--json", trace])
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folded: &str) -> (Times, f64) {
        of_stacks(folded).unwrap()
    }

    #[test]
    fn times_are_those_of_functions_and_what_they_call() {
        let (times, right) = of("_start;main;work;sixty 600\n\
            _start;main;work;thirty;inner 300\n\
            main;work;ten;down;down 100\nmain;work;clock_gettime 50\n");
        let expected = [("sixty", 600.0), ("thirty", 300.0), ("ten", 100.0)];
        assert_eq!(times, expected.map(|(name, ns)| (name.to_owned(), ns)).into());
        assert_eq!(right, 1.0);
    }

    #[test]
    fn stacks_that_end_early_or_skip_a_frame_are_wrong() {
        assert_eq!(of("main;work;sixty 50\n<truncated>;sixty 50\n").1, 0.5);
        assert_eq!(of("main;work;thirty;inner 50\nmain;work;inner 50\n").1, 0.5);
        assert_eq!(of("main;sixty 50\nmain;work;sixty;down 50\n").1, 0.0);
        assert_eq!(of("").1, 0.0);
    }

    #[test]
    fn shares_that_differ_are_apart() {
        let times = |ns: [f64; 3]| -> Times { FUNCTIONS.map(str::to_owned).into_iter().zip(ns).collect() };
        let truth = times([60.0, 30.0, 10.0]);
        assert_eq!(apart(&times([120.0, 60.0, 20.0]), &truth), 0.0);
        assert!((apart(&times([55.0, 35.0, 10.0]), &truth) - 5.0).abs() < 1e-9);
        assert_eq!(apart(&Times::new(), &truth), f64::INFINITY);
    }
}
