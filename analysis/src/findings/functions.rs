//! Rules about functions, by samples. Their times are processor time, which says nothing of how busy the machine was. So they are
//! compared with that of all samples, and not with the wall time.

use super::case::{Candidate, Case, finding};
use crate::model::answers::{Finding, FunctionName};
use crate::model::place::Place;
use crate::model::state_sums::SerialTimes;

/// A function of serial code must have at least this share of the time of all samples.
const MIN_SERIAL: f64 = 0.1;

/// Less may be a few samples, or the loader's.
const MIN_SERIAL_NS: u64 = 250_000_000;

/// A function of serial code may have this share of its time elsewhere: a sample may fall on the begin of a region.
const MAX_PARALLEL: f64 = 0.01;

/// Spinning must take at least this share of the time of all samples.
const MIN_SPINNING: f64 = 0.05;

/// Less may be a few samples.
const MIN_SPINNING_NS: u64 = 50_000_000;

/// What could be improved.
pub(super) fn candidates(case: &Case<'_>) -> Vec<Candidate> {
    if case.threads < 2 {
        return Vec::new();
    }
    let times = case.part.functions.times.values();
    let all: u64 = times.map(SerialTimes::all).fold(0, u64::saturating_add);
    let least = |share: f64, ns: u64| ns.max((share * all as f64) as u64);
    let least_serial = least(MIN_SERIAL, MIN_SERIAL_NS);
    let times = case.part.functions.times.iter();
    let serial = times.filter(|(name, times)| {
        let is_alone = times.other_ns as f64 <= MAX_PARALLEL * times.all() as f64;
        times.serial_ns >= least_serial && is_alone && name.is_of_program()
    });
    let serial = serial.map(|(name, times)| serial_function(case, name, *times));
    let least_spinning = least(MIN_SPINNING, MIN_SPINNING_NS);
    let spins = case.part.functions.spins.iter();
    let spins = spins.filter(|(_, ns)| **ns >= least_spinning);
    let spins = spins.map(|((name, is_flush), ns)| spinning(case, name, *is_flush, *ns));
    serial.chain(spins).collect()
}

/// A function that no other thread ever helps.
fn serial_function(case: &Case<'_>, name: &FunctionName, times: SerialTimes) -> Candidate {
    let serial_ns = times.serial_ns;
    let evidence = [("serial_ns", serial_ns), ("parallel_ns", times.other_ns), ("threads", case.threads)];
    let text = format!(
        "the function {} runs only in serial code: divide its work among threads, or run it in parallel with other work",
        name.function
    );
    let finding = finding("serial_function", place("serial code", name), 0, text, &evidence);
    candidate(finding, serial_ns - case.gain(serial_ns))
}

/// A function that waits for other threads in a loop of its own, which no event shows.
fn spinning(case: &Case<'_>, name: &FunctionName, is_flush: bool, ns: u64) -> Candidate {
    let does = match is_flush {
        false => "tests repeatedly whether a lock is free",
        true => "flushes memory repeatedly, as a loop that spins on a flag does",
    };
    let text = format!(
        "the function {} {does}: wait with a barrier, a task dependence or a lock instead",
        name.function
    );
    let evidence = [("spinning_ns", ns), ("threads", case.threads)];
    let finding = finding("user_spinning", place("loop of the program", name), 0, text, &evidence);
    candidate(finding, case.gain(ns))
}

fn place(construct: &str, name: &FunctionName) -> Place {
    Place::at(construct, name.file.as_deref(), None, Some(&name.function))
}

fn candidate(finding: Finding, gain_ns: u64) -> Candidate {
    Candidate { min_gain: 0.0, ..Candidate::of(Finding { gain_ns, ..finding }, None) }
}
