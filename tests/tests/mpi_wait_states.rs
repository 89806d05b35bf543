//! Wait states of ranks, planted one by one: each has the time that the program is late, and is charged to what was late.

use std::path::PathBuf;

use omptrace_tests::env::compile;
use omptrace_tests::mpi::{LIBRARIES, launched, trace};
use omptrace_tests::trace::{Traces, omptrace};
use serde_json::Value;

const RANKS: usize = 3;
/// How late ranks are, in seconds.
const DELAY: f64 = 0.8;
/// Planted times are found as exactly as this, and as a busy machine wakes threads.
const TOLERANCE: f64 = 0.05;

/// The seconds of the rows whose `place` is in this function.
fn seconds(rows: &Value, place: &str, function: &str, is_it: impl Fn(&Value) -> bool) -> f64 {
    let rows = rows.as_array().expect("rows").iter();
    let rows = rows.filter(|row| row[place]["function"] == function && is_it(row));
    rows.filter_map(|row| row["ns"].as_u64()).sum::<u64>() as f64 / 1e9
}

fn is_near(found: f64, expected: f64, what: &str, waits: &Value) {
    let difference = (found - expected).abs();
    assert!(difference <= TOLERANCE * expected, "{what}: {found} s, not {expected}\n{waits:#}");
}

#[test]
fn each_wait_state_has_the_time_that_was_planted_and_is_charged_to_who_was_late() {
    for (compiler, launcher, family) in LIBRARIES {
        let program = compile("tests/programs/mpi_wait_states.c", compiler, &[]);
        let traces = Traces::folder();
        let folder = traces.path();
        let delay = DELAY.to_string();
        let output = launched(folder, (launcher, RANKS), &program, Some(&["--quiet"]), &[&delay]);
        assert!(output.status.success(), "{output:?}");
        let all: Vec<PathBuf> = (0..RANKS).map(|rank| trace(folder, rank)).collect();
        let words = ["stats", "--json", "--all"].map(PathBuf::from);
        let output = omptrace(words.iter().chain(&all));
        assert!(output.status.success(), "{output:?}");
        let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let waits = &stats["rank_waits"];

        let total = stats["accounting"]["mpi_wait_ns"].as_u64().expect("waits");
        assert_eq!(waits["total_ns"], total);
        for rows in ["states", "waits", "charged", "first_causes"] {
            let sum: u64 =
                waits[rows].as_array().expect("rows").iter().filter_map(|row| row["ns"].as_u64()).sum();
            assert_eq!(sum, total, "{family}: {rows}");
        }

        // State, and the ranks that wait for rank 1.
        for (state, ranks) in [
            ("late_sender", &[0][..]),
            ("late_receiver", &[0]),
            ("wrong_order", &[0]),
            ("wait_at_barrier", &[0, 2]),
            ("wait_at_nxn", &[0, 2]),
            ("late_broadcast", &[0, 2]),
            ("early_scan", &[2]),
            ("completion", &[0]),
        ] {
            for rank in ranks {
                let is_it =
                    |row: &Value| row["state"] == state && row["rank"] == *rank && row["waits_for"] == 1;
                let found = seconds(&waits["waits"], "place", state, is_it);
                is_near(found, DELAY, &format!("{family}: {state}, rank {rank}"), waits);
            }
            // Rank 1 did nothing else: its serial code is why.
            let is_it = |row: &Value| row["rank"] == 1 && row["cause"] == "useful" && row["state"] == state;
            let found = seconds(&waits["first_causes"], "waits_at", state, is_it);
            let all = DELAY * ranks.len() as f64;
            is_near(found, all, &format!("{family}: {state}, charged"), waits);
        }
        // Whichever of the two comes first.
        let found = seconds(&waits["waits"], "place", "early_reduce", |row| row["state"] == "early_reduce");
        is_near(found, DELAY, &format!("{family}: early_reduce"), waits);

        let is_it = |row: &Value| row["state"] == "wrong_order" && row["rank"] == 0 && row["waits_for"] == 1;
        let found = seconds(&waits["waits"], "place", "wrong_source", is_it);
        is_near(found, DELAY, &format!("{family}: wrong order of ranks"), waits);

        let of_imbalance = |row: &Value| row["rank"] == 1 && row["cause"] == "imbalance";
        let found = seconds(&waits["charged"], "waits_at", "hybrid", of_imbalance);
        is_near(found, DELAY, &format!("{family}: imbalance in rank 1"), waits);
        let is_wait = |row: &Value| row["rank"] == 1 && row["cause"] == "mpi_wait";
        let found = seconds(&waits["charged"], "waits_at", "passed_on", is_wait);
        is_near(found, DELAY, &format!("{family}: rank 1 waits itself"), waits);
        let is_first = |row: &Value| row["rank"] == 2 && row["cause"] == "useful";
        let found = seconds(&waits["first_causes"], "waits_at", "passed_on", is_first);
        is_near(found, 2.0 * DELAY, &format!("{family}: rank 2 is the first cause"), waits);
    }
}
