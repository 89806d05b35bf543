//! The viewers that check an exported trace: Perfetto's trace processor, the Perfetto UI, Catapult, Speedscope and the Firefox
//! profiler.
//!
//! Each runs a script of `tests/tools`, which says what the answer means. As in [`env`](crate::env), what is missing makes a
//! test fail.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value};

use crate::env::{chromium, node, perfetto_ui, root, tools};

/// The answer to a query: a row is a map from the column's name to the value.
pub type Rows = Vec<Map<String, Value>>;

/// A viewer's answer about a trace.
#[derive(Debug)]
pub struct Answer {
    /// `ok`, or why the viewer refused the trace.
    pub status: String,
    /// The errors that it noticed while reading; empty for a sound trace.
    pub errors: Vec<String>,
    /// The rows of each query.
    pub results: Vec<Rows>,
}

impl Answer {
    /// The results of a viewer that found nothing wrong.
    ///
    /// # Panics
    /// It found something.
    pub fn sound(self) -> Vec<Rows> {
        assert_eq!(self.status, "ok");
        assert_eq!(self.errors, [""; 0], "errors of import");
        self.results
    }
}

/// Asks Perfetto's trace processor, without a browser (1 s).
///
/// # Panics
/// The viewer cannot be run, or rejects a query.
pub fn ask_trace_processor(trace: &Path, queries: &[&str]) -> Answer {
    ask("trace_processor.mjs", trace, &[], queries)
}

/// The rows of each query of a trace in which the trace processor finds nothing wrong.
///
/// # Panics
/// It does, or as [`ask_trace_processor`].
pub fn query(trace: &Path, queries: &[&str]) -> Vec<Rows> {
    ask_trace_processor(trace, queries).sound()
}

/// Opens a trace in the real Perfetto UI and asks its engine (3 s).
///
/// # Panics
/// Like [`ask_trace_processor`].
pub fn open_in_ui(trace: &Path, queries: &[&str]) -> Answer {
    ask("perfetto_ui.mjs", trace, &[], queries)
}

/// Opens an address at which the UI, or a page that leads to it, gets a trace from elsewhere, and asks the UI's engine.
/// A button on the page is clicked. Two more results are what `tests/tools/address.mjs` says: what is shown first, and the
/// tracks that lie around others.
///
/// # Panics
/// Like [`ask_trace_processor`].
pub fn open_address(address: &str, queries: &[&str]) -> Answer {
    ask("address.mjs", Path::new(address), &[], queries)
}

/// Opens a Chrome JSON trace in Speedscope. The one result has a row per profile and frame: `profile`, `frame`, `total`,
/// `self`.
///
/// # Panics
/// The viewer cannot be run.
pub fn open_in_speedscope(trace: &Path) -> Answer {
    ask("speedscope.mjs", trace, &[], &[])
}

/// Imports a Chrome JSON trace, or a profile of its own, as the Firefox profiler does. The first result has a row per thread:
/// `process`, `pid`, `thread`, `tid`, `is_main`, and the `weight` of its samples. The second has a row per marker: the number of its `thread`'s row, `name`, `begin`,
/// `duration` and `detail`. Times are in nanoseconds since the first event.
///
/// # Panics
/// The importer cannot be run.
pub fn open_in_firefox(trace: &Path) -> Answer {
    ask("firefox.mjs", trace, &[], &[])
}

/// Opens a Chrome JSON trace in Catapult, the viewer of chrome://tracing. The first result has a row per thread:
/// `process`, `pid`, `thread`, `tid`, `slices`, `async_slices`, `depth`. The second has a row per arrow:
/// `from_slice`, `from_thread`, `to_slice`, `to_thread`, and times in nanoseconds since the first event. The first
/// slice begins and ends at `from_begin` and `from_end`, and the second begins at `time`.
///
/// # Panics
/// The viewer cannot be run.
pub fn open_in_catapult(trace: &Path) -> Answer {
    ask("catapult.mjs", trace, &[], &[])
}

/// Saves what the Perfetto UI shows of a trace, all groups expanded, as a PNG picture.
///
/// # Panics
/// Like [`ask_trace_processor`].
pub fn screenshot(trace: &Path, picture: &Path) -> Answer {
    let picture = picture.to_str().expect("a test's path is UTF-8");
    ask("perfetto_ui.mjs", trace, &["--expand", "--screenshot", picture], &[])
}

/// Opens the page of `omptrace report` in Chromium as a reader does; `tests/tools/report.mjs` says what the answer holds. Pictures
/// go into `folder`, where one is named.
///
/// # Panics
/// The browser cannot be run, or the page does not get ready.
pub fn read_page(page: &Path, folder: Option<&Path>) -> Value {
    let mut command = Command::new(node());
    command
        .arg(root().join("tests/tools/report.mjs"))
        .arg(page)
        .env("OMPTRACE_TOOLS", tools())
        .env("OMPTRACE_CHROMIUM", chromium());
    if let Some(folder) = folder {
        command.arg("--folder").arg(folder);
    }
    let output = command.output().expect("node can be run");
    assert!(
        output.status.success(),
        "report.mjs ended with {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn ask(script: &str, trace: &Path, options: &[&str], queries: &[&str]) -> Answer {
    // Named here for its message: the script would only say that a file is missing.
    perfetto_ui();
    let output = Command::new(node())
        .arg(root().join("tests/tools").join(script))
        .arg(trace)
        .args(options)
        .args(queries)
        .env("OMPTRACE_TOOLS", tools())
        .env("OMPTRACE_CHROMIUM", chromium())
        .output()
        .expect("node can be run");
    assert!(
        output.status.success(),
        "{script} ended with {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    parse(&output.stdout).unwrap_or_else(|| panic!("{script}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// The answer as `viewer.mjs` describes it.
fn parse(answer: &[u8]) -> Option<Answer> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let rows = |value: &Value| value.as_array()?.iter().map(|row| row.as_object().cloned()).collect();
    Some(Answer {
        status: text(&answer["status"])?,
        errors: answer["errors"].as_array()?.iter().map(text).collect::<Option<_>>()?,
        results: answer["results"].as_array()?.iter().map(rows).collect::<Option<_>>()?,
    })
}
