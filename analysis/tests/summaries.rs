//! Tests that summaries give the same numbers as their traces, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};

use omptrace_analysis::summary::{NewSummary, Summary};
use omptrace_analysis::{Input, Stats};
use omptrace_symbols::{self as symbols, Table};
use omptrace_trace_format::{InDoubt, Reader, seal};
use serde_json::{Value, json};

/// Fields that require a replay of the events of all processes.
const REPLAYED: [&str; 7] =
    ["findings", "what_if", "other_threads", "not_predicted", "task_regions", "replay_error_ns", "phases"];

/// Copies of the traces of old runtimes and of AMD devices, sealed with their names.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer-export/tests");
    let mut traces = Vec::new();
    for of in ["historic", "devices"] {
        let entries = fs::read_dir(tests.join(of)).expect("a folder");
        for entry in entries.map(|entry| entry.expect("an entry").path()) {
            if entry.extension().is_some_and(|kind| kind == "omptrace") {
                let copy = folder.join(entry.file_name().expect("a name"));
                fs::copy(&entry, &copy).expect("a copy");
                complete(&copy);
                traces.push(copy);
            }
        }
    }
    traces.sort();
    assert!(traces.len() > 10, "{} traces", traces.len());
    traces
}

fn complete(trace: &Path) {
    let table = Table::stored(&open(trace)).to_json();
    let additions = json!({ symbols::KEY: table });
    seal(trace, additions, InDoubt::Seal, &mut |_, _| ()).expect("it is sealed");
}

fn open(trace: &Path) -> Reader {
    Reader::open(trace).expect("a trace")
}

/// Writes a summary of each trace; returns the traces whose summaries can be merged.
fn summarise(traces: &[PathBuf], alone: bool) -> Vec<PathBuf> {
    let mut movable = Vec::new();
    for trace in traces {
        let reader = open(trace);
        let mut summary = NewSummary::of(&reader, alone).expect("a summary");
        summary.write(&reader).expect("it is written");
        let summary = read(trace);
        assert_eq!(summary.has_alone(), alone, "{}", trace.display());
        if summary.is_movable() && summary.has_phases() {
            movable.push(trace.clone());
        }
    }
    movable
}

fn read(trace: &Path) -> Summary {
    let summary = Summary::read(trace).expect("the file is there");
    summary.unwrap_or_else(|| panic!("{} has no summary", trace.display()))
}

fn stats(inputs: &[Input<'_>]) -> Value {
    let (stats, _) = Stats::of_inputs(inputs, &symbols::Options::default()).expect("numbers");
    serde_json::to_value(stats).expect("JSON")
}

/// The text of JSON, as `stats --json --all` prints it.
fn text(value: &Value) -> String {
    value.to_string()
}

/// The JSON without these fields, for comparison.
fn without(value: &Value, fields: &[&str]) -> String {
    let mut value = value.clone();
    let object = value.as_object_mut().expect("an object");
    for field in fields {
        object.shift_remove(*field).expect("the field");
    }
    text(&value)
}

#[test]
fn a_summary_of_one_process_has_all_of_its_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let traces = traces(folder.path());
    let by_events = |trace: &PathBuf| {
        let reader = open(trace);
        text(&stats(&Input::traces(&[&reader])))
    };
    let before: Vec<String> = traces.iter().map(by_events).collect();
    summarise(&traces, true);
    for (trace, before) in traces.iter().zip(before) {
        let summary = read(trace);
        let input = Input { trace: None, summary: Some(&summary) };
        assert_eq!(text(&stats(&[input])), before, "{}", trace.display());
        assert_eq!(by_events(trace), before, "{}", trace.display());
    }
}

#[test]
fn summaries_of_several_processes_merge_to_the_numbers_of_their_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let traces = summarise(&traces(folder.path()), false);
    assert!(traces.len() > 10, "{} can be moved", traces.len());
    let readers: Vec<Reader> = traces.iter().map(|trace| open(trace)).collect();
    let summaries: Vec<Summary> = traces.iter().map(|trace| read(trace)).collect();
    let readers: Vec<&Reader> = readers.iter().collect();
    let by_events = stats(&Input::traces(&readers));

    // The second pass reads events, so nothing is missing.
    let both = readers
        .iter()
        .zip(&summaries)
        .map(|(reader, summary)| Input { trace: Some(*reader), summary: Some(summary) });
    assert_eq!(text(&stats(&both.collect::<Vec<_>>())), text(&by_events));

    // Without any traces' events, or with those of every third process.
    for step in [usize::MAX, 3] {
        let inputs: Vec<Input<'_>> = (0..readers.len())
            .map(|number| match number % step {
                1 if step < usize::MAX => Input { trace: Some(readers[number]), summary: None },
                _ => Input { trace: None, summary: Some(&summaries[number]) },
            })
            .collect();
        let merged = stats(&inputs);
        let fields: Vec<&str> = REPLAYED.into_iter().chain(["notes"]).collect();
        assert_eq!(without(&merged, &fields), without(&by_events, &fields));
        assert_eq!(merged["what_if"], json!([]));
        let notes = |value: &Value| value["notes"].as_array().expect("notes").clone();
        let (mut merged, by_events) = (notes(&merged), notes(&by_events));
        let own = merged.pop().expect("a note");
        assert!(own.to_string().contains("--from events"), "{own}");
        assert_eq!(merged, by_events);
    }
}

#[test]
fn a_trace_that_is_sealed_anew_has_no_summary_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = &traces(folder.path())[0];
    summarise(std::slice::from_ref(trace), true);
    let bytes = fs::read(trace).expect("the trace");
    complete(trace);
    assert_eq!(fs::read(trace).expect("the trace"), bytes, "nothing is new");
    let news = json!({ "messages": ["news"] });
    seal(trace, news, InDoubt::Seal, &mut |_, _| ()).expect("it is sealed");
    assert!(Summary::read(trace).expect("the file").is_none());
}

/// Writing a summary again gives the same file, and all events are preserved.
#[test]
fn a_summary_takes_the_place_of_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = &traces(folder.path())[0];
    let sealed = fs::read(trace).expect("the trace");
    let trace = std::slice::from_ref(trace);
    summarise(trace, true);
    let first = fs::read(&trace[0]).expect("the trace");
    summarise(trace, true);
    assert_eq!(fs::read(&trace[0]).expect("the trace"), first);
    let added = first.len() - sealed.len();
    assert!(added <= 64 << 10, "{added} bytes");
    let kinds = |reader: &Reader| {
        let diagnostics = reader.diagnostics().iter();
        diagnostics.map(|found| found.kind).collect::<Vec<_>>()
    };
    let damaged: Vec<_> = kinds(&open(&trace[0]));
    assert_eq!(damaged, [], "a reader finds nothing wrong");
}
