//! The device traces in `tests/devices`, which its README describes.

use std::path::PathBuf;

use omptrace_analysis::check;
use omptrace_trace_format::Reader;

use crate::golden::is_as_reviewed;
use crate::historic::text;

fn path(file: String) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/devices").join(file)
}

/// Opens a trace.
pub(crate) fn open(name: &str) -> Reader {
    Reader::open(&path(format!("{name}.omptrace"))).expect("a trace")
}

/// Checks that the reader reports these findings for a trace, in any order.
#[track_caller]
pub(crate) fn has_findings(name: &str, expected: &[&str]) {
    let findings = check(&open(name));
    let mut found: Vec<_> = findings.iter().map(|finding| finding.name).collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    found.retain(|name| *name != "names_missing");
    assert_eq!(found, expected, "{name}");
}

/// Checks that a trace's timeline has not changed. With `OMPTRACE_BLESS=1`, updates the file; read the difference
/// before you commit it.
#[track_caller]
pub(crate) fn is_as_before(name: &str) {
    is_as_reviewed(&path(format!("{name}.txt")), &text(&open(name)));
}
