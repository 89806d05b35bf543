//! Completes traces, several at a time: adds the events from spools, packs chunks, adds an index.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use omptrace_symbols::parallel::in_parallel;
use omptrace_symbols::{self as symbols, Table};
use omptrace_timeline::halves;
use omptrace_trace_format::{Diagnostic, InDoubt, Reader, SealError, Sealed, Severity, seal};
use serde_json::Value;

use crate::output::message;
use crate::output::progress::Work;
use crate::output::quoted_path::typed;
use crate::output::temp_files;
use crate::system::fd_limit::Limit;

/// A trace to complete, and what to add to its metadata.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The trace.
    pub(crate) trace: PathBuf,
    /// Metadata keys, which override the tracer's.
    pub(crate) additions: Value,
    /// Where to look up symbol names, which are also added; `None` if they are not looked up.
    pub(crate) symbols: Option<symbols::Options>,
    /// What to do if it is unknown whether the trace's process has ended.
    pub(crate) in_doubt: InDoubt,
}

/// The result of a job.
#[derive(Debug)]
pub(crate) struct SealedTrace {
    /// The trace.
    pub(crate) trace: PathBuf,
    /// The contents of the trace, or the reason why it is unchanged.
    pub(crate) result: Result<Sealed, String>,
    /// The modules that lack names.
    pub(crate) missing: MissingNames,
}

/// Modules that lack names.
#[derive(Debug, Default)]
pub(crate) struct MissingNames {
    /// The modules whose names were not found, with the reasons.
    nameless: Vec<(String, symbols::Problem)>,
    /// The modules with constructs that were compiled without debug information.
    pub(crate) without_lines: Vec<String>,
}

/// Number of descriptors that are needed to complete a trace, including the files with symbol names.
const DESCRIPTORS: usize = 16;

/// Completes all traces; the results are in the order of the jobs.
pub(crate) fn seal_all(jobs: Vec<Job>, work: &Work) -> Vec<SealedTrace> {
    let files = jobs.len();
    let seal = |job: Job| {
        let mut missing = MissingNames::default();
        let result = seal_one(&job, &mut missing, &mut work.of_file(files));
        SealedTrace { result, trace: job.trace, missing }
    };
    match Limit::is_enough_for(DESCRIPTORS) {
        true => in_parallel(jobs, seal),
        false => jobs.into_iter().map(seal).collect(),
    }
}

/// Completes a trace without showing progress.
pub(crate) fn seal_quietly(job: Job) -> Result<Sealed, String> {
    seal_one(&job, &mut MissingNames::default(), &mut |_, _| {})
}

fn seal_one(
    job: &Job,
    missing: &mut MissingNames,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sealed, String> {
    let mut additions = job.additions.clone();
    if let Some(options) = &job.symbols
        && let Ok(reader) = Reader::open(&job.trace)
    {
        let table = Table::renewed(&reader, options);
        missing.nameless = table.nameless();
        let without_lines = table.problems().filter(|(_, problem)| *problem == symbols::Problem::NoDebugInfo);
        missing.without_lines = without_lines.map(|(module, _)| module.path.clone()).collect();
        additions[symbols::KEY] = table.to_json();
    }
    temp_files::will_make(seal::temporary(&job.trace));
    seal(&job.trace, additions, job.in_doubt, progress).map_err(|error| match error {
        SealError::Running => {
            format!(
                "the process is still running; when it has ended, run: omptrace recover {}",
                typed(&job.trace)
            )
        }
        error @ SealError::Unknown(_) => format!(
            "{error}; if you know that the process has ended, run: omptrace recover --force {}",
            typed(&job.trace)
        ),
        error @ (SealError::Busy | SealError::Changed) => {
            format!("{error}; when that program has finished, run: omptrace recover {}", typed(&job.trace))
        }
        // The trace and its spool are unharmed; the reason is usually a full disk.
        error @ SealError::Io(_) => {
            format!("{error}; when there is enough disk space, run: omptrace recover {}", typed(&job.trace))
        }
        error => error.to_string(),
    })
}

/// Reports the contents of traces: a line per trace, and if there are several, a line for all.
pub(crate) fn report(done: &[SealedTrace]) {
    /// In a large job, the first ranks are representative.
    const MAX_LINES: usize = 12;

    let sealed = || done.iter().filter_map(|done| Some((&done.trace, done.result.as_ref().ok()?)));
    for (trace, sealed) in sealed().take(MAX_LINES) {
        message::note(&format!(
            "{}: {} of {}{}, {}, {}",
            message::near(trace).display(),
            message::counted(sealed.events - sealed.sample_events, "event"),
            message::counted(sealed.streams.into(), "thread"),
            samples(&[sealed]),
            lost(&[sealed]),
            message::bytes(bytes_of(trace, sealed))
        ));
    }
    let files = sealed().count();
    if files > 1 {
        let events = sealed().map(|(_, sealed)| sealed.events - sealed.sample_events).sum();
        message::note(&format!(
            "{}: {}{}, {}, {}",
            message::counted(files as u64, "file"),
            message::counted(events, "event"),
            samples(&sealed().map(|(_, sealed)| sealed).collect::<Vec<_>>()),
            lost(&sealed().map(|(_, sealed)| sealed).collect::<Vec<_>>()),
            message::bytes(sealed().map(|(trace, sealed)| bytes_of(trace, sealed)).sum())
        ));
    }
}

/// The combined contents of traces, such as `22 kB, 3,664 events, none lost`; and whether nothing is missing.
pub(crate) fn held(done: &[SealedTrace]) -> (String, bool) {
    let sealed = || done.iter().filter_map(|done| Some((&done.trace, done.result.as_ref().ok()?)));
    let of_all: Vec<&Sealed> = sealed().map(|(_, sealed)| sealed).collect();
    let words = format!(
        "{}, {}{}, {}",
        message::bytes(sealed().map(|(trace, sealed)| bytes_of(trace, sealed)).sum()),
        message::counted(of_all.iter().map(|sealed| sealed.events - sealed.sample_events).sum(), "event"),
        samples(&of_all),
        lost(&of_all)
    );
    (words, lost(&of_all) == NONE_LOST)
}

/// Reports problems of traces, and traces that could not be completed.
pub(crate) fn report_problems(done: &[SealedTrace]) {
    let sealed = || done.iter().filter_map(|done| Some((&done.trace, done.result.as_ref().ok()?)));
    for (trace, sealed) in sealed() {
        report_diagnostics(trace, sealed);
        if let Some(spool) = &sealed.spool_left {
            message::note(&format!(
                "{}: the events in the spool {} were added to this trace; the spool is kept, because it may belong to another trace",
                message::near(trace).display(),
                message::near(spool).display()
            ));
        }
    }
    for done in done {
        if let Err(error) = &done.result {
            message::warning(&format!("{}: {error}", message::near(&done.trace).display()));
        }
    }
}

/// Whether a trace comes from GCC's runtime.
pub(crate) fn is_of_libgomp(done: &SealedTrace) -> bool {
    let reader = done.result.as_ref().ok().and_then(|_| Reader::open(&done.trace).ok());
    let runtime = reader.and_then(|reader| reader.metadata().runtime.clone());
    runtime.is_some_and(|runtime| runtime.version.contains("libgomp"))
}

/// The size of the file, to which a summary may have been added since.
fn bytes_of(trace: &Path, sealed: &Sealed) -> u64 {
    fs::metadata(trace).map_or(sealed.bytes, |file| file.len())
}

/// Reports modules whose functions have no names, each once for all traces.
pub(crate) fn report_nameless(done: &[SealedTrace]) {
    /// If there are many, the first ones are representative.
    const MAX_LINES: usize = 5;

    let nameless = done.iter().flat_map(|done| &done.missing.nameless);
    let nameless: BTreeSet<String> =
        nameless.map(|(module, problem)| format!("{module}: {problem}")).collect();
    for words in nameless.iter().take(MAX_LINES) {
        message::warning(words);
    }
}

/// Reports callbacks that the tracer withheld to protect a program, and selections with only one end of a pair, each
/// once for all traces.
pub(crate) fn report_withheld(done: &[SealedTrace]) {
    /// In a large job, the first ranks are representative.
    const MAX_TRACES: usize = 12;

    let sealed = done.iter().filter(|done| done.result.is_ok());
    let withheld: BTreeSet<String> = sealed
        .take(MAX_TRACES)
        .filter_map(|done| Reader::open(&done.trace).ok())
        .flat_map(|reader| {
            let withheld = reader.metadata().taken_back();
            let withheld = withheld.map(|(callback, why)| format!("{callback}: {why}"));
            withheld.chain(halves(reader.metadata())).collect::<Vec<_>>()
        })
        .collect();
    for words in withheld {
        message::note(&words);
    }
}

/// Number of samples, if there are any.
fn samples(sealed: &[&Sealed]) -> String {
    match sealed.iter().map(|sealed| sealed.samples).sum() {
        0 => String::new(),
        samples => format!(", {}", message::counted(samples, "sample")),
    }
}

/// Printed for traces that contain all events.
const NONE_LOST: &str = "none lost";

fn lost(sealed: &[&Sealed]) -> String {
    let lost = sealed.iter().map(|sealed| sealed.lost).sum();
    let samples = sealed.iter().map(|sealed| sealed.samples_lost).sum();
    let samples = (samples > 0).then(|| format!("{} LOST", message::counted(samples, "sample")));
    match (lost, samples) {
        (0, Some(samples)) => samples,
        (0, None) if sealed.iter().all(|sealed| sealed.is_whole()) => NONE_LOST.to_owned(),
        (0, None) => "SOME MISSING".to_owned(),
        (lost, None) => format!("{} LOST", message::number(lost)),
        (lost, Some(samples)) => format!("{} LOST, {samples}", message::number(lost)),
    }
}

/// Reports the problems of a trace; returns whether there are any.
pub(crate) fn report_diagnostics(trace: &Path, sealed: &Sealed) -> bool {
    /// `info` lists all of them.
    const MAX_LINES: usize = 5;

    let damage = sealed.diagnostics.iter();
    let damage = damage.filter(|diagnostic| diagnostic.severity > Severity::Note);
    let failure = sealed.failure.iter().cloned();
    let words = |diagnostic: &Diagnostic| {
        message::without_severity(diagnostic.severity, &diagnostic.to_string()).to_owned()
    };
    let mut worth_reporting = failure.chain(damage.map(words)).peekable();
    let is_any = worth_reporting.peek().is_some();
    for words in worth_reporting.by_ref().take(MAX_LINES) {
        message::warning(&format!("{}: {words}", message::near(trace).display()));
    }
    let rest = worth_reporting.count();
    if rest > 0 {
        message::warning(&format!(
            "{}: {rest} more problems were found; omptrace check lists all problems",
            message::near(trace).display()
        ));
    }
    is_any
}
