//! Windows that are read from checkpoints, and no further than they reach, show what they show of the whole trace.

use std::path::{Path, PathBuf};

use omptrace_tests::windows::{agree, read_crafted};

/// Traces of devices and of old runtimes, most of which have no checkpoints.
fn recorded_traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer-export/tests");
    let mut traces: Vec<PathBuf> = Vec::new();
    for name in ["historic", "devices"] {
        let entries = std::fs::read_dir(folder.join(name)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        traces.extend(paths.filter(|path| path.extension().is_some_and(|it| it == "omptrace")));
    }
    assert!(traces.len() > 20, "{}", traces.len());
    traces
}

#[test]
fn windows_of_recorded_traces() {
    let mut windows = 0;
    for trace in recorded_traces() {
        windows += agree(&trace, 1, 6).unwrap_or_else(|fault| panic!("{fault}")).windows;
    }
    assert!(windows > 0, "no window began at a checkpoint");
}

#[test]
fn no_checkpoint_is_a_panic() {
    let traces = recorded_traces().into_iter();
    let with = traces.filter(|trace| agree(trace, 1, 1).is_ok_and(|tried| tried.checkpoints > 0));
    let read: usize = with.map(|trace| read_crafted(&trace, 1, 100)).sum();
    assert!(read > 1000, "{read}");
}
