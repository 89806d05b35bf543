//! Traces from OpenUH's runtime, which has the Collector API and can no longer be installed: `tests/historic/openuh_*`,
//! recorded with the real runtime. A program of known structure, two repetitions on three threads, calls it as OpenUH's
//! compiler does.

use std::collections::BTreeMap;
use std::path::PathBuf;

use omptrace_analysis::{Stats, check};
use omptrace_symbols as symbols;
use omptrace_trace_format::{Reader, Severity};

const REPETITIONS: u64 = 2;

fn open(name: &str) -> Reader {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/historic");
    Reader::open(&folder.join(format!("{name}.omptrace"))).expect("a trace")
}

/// Number of occurrences of each construct.
fn counts(name: &str) -> BTreeMap<String, u64> {
    let stats = Stats::of(&[&open(name)], &symbols::Options::default()).0;
    let constructs = stats.constructs.into_iter();
    constructs.map(|construct| (construct.name, construct.times.count)).collect()
}

/// The repairs, none of which is more than a note.
fn repairs(name: &str) -> Vec<&'static str> {
    let findings = check(&open(name));
    let is_note = |finding: &omptrace_trace_format::Finding| finding.severity == Severity::Note;
    assert!(findings.iter().all(is_note), "{findings:?}");
    let mut names: Vec<_> = findings.iter().map(|finding| finding.name).collect();
    names.sort_unstable();
    names
}

#[test]
fn threads_that_were_idle_before_are_no_reason_for_a_warning() {
    assert_eq!(counts("openuh_par")["!$omp parallel"], REPETITIONS);
    // The two other threads are idle at the end of the trace.
    assert_eq!(repairs("openuh_par"), ["end_alone", "missing_end"]);
}

#[test]
fn ordered_regions_are_as_many_as_iterations() {
    let counts = counts("openuh_ordered");
    assert_eq!(counts["!$omp ordered"], 20 * REPETITIONS);
    assert!(counts["!$omp ordered wait"] <= 20 * REPETITIONS, "{counts:?}");
    let expected = ["end_alone", "missing_end", "reported_again"];
    assert_eq!(repairs("openuh_ordered"), expected);
}

#[test]
fn nested_regions_are_apart_though_their_ids_are_not() {
    // Each of two threads has a nested region.
    assert_eq!(counts("openuh_nested")["!$omp parallel"], 3 * REPETITIONS);
    assert_eq!(repairs("openuh_nested"), ["end_alone", "missing_end"]);
}
