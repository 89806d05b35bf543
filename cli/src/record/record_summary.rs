//! The output of `record` when its program has ended: how it ended, where its time went, what to do about that, and
//! where the trace is.
//!
//! ```text
//! omptrace: ./stencil 4800 20 finished in 2.17 s, exit status 0 (3.4 s CPU; 2 threads, 2 CPUs)
//!
//!   Parallel efficiency  68 %  ##############......
//!   [...]
//!   1. Load imbalance at stencil.c:35                saves up to 325 ms (15 %)
//!   [...]
//!   Trace  stencil.omptrace (22 kB, 3,664 events, none lost)
//!   Next   omptrace report stencil.omptrace    web page to share
//!          omptrace view stencil.omptrace      timeline in the browser
//! ```

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use omptrace_analysis::Stats;
use omptrace_report::{
    Line, Lines, Look, Tint, counted, doubts, efficiency_bars, finding_cards, help_command, help_for_causes,
    shortened, time,
};
use omptrace_symbols as symbols;

use crate::input::input_choice::{ReadFrom, Sources, Wanted};
use crate::output::estimate::Estimate;
use crate::output::message;
use crate::output::quoted_path;
use crate::record::child_process::{End, Ran, signal_name};
use crate::record::job_traces;
use crate::record::launched_rank::LaunchedRank;
use crate::seal::sealing::{self, SealedTrace};
use crate::seal::summaries::{self, Added};

/// Maximum time to wait for the numbers of several traces.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Number of findings that are shown.
const MAX_FINDINGS: usize = 2;
/// Maximum width of the program and its arguments, in columns.
const MAX_COMMAND: usize = 44;

/// The run that has ended.
#[derive(Debug)]
pub(crate) struct RunEnd<'a> {
    /// The program and its arguments.
    pub(crate) program: &'a [OsString],
    /// How the program ran.
    pub(crate) ran: Ran,
    /// Its traces, completed.
    pub(crate) done: &'a [SealedTrace],
    /// Sentences about the trace: what it lacks because of the runtime, and its clock.
    pub(crate) notes: Vec<String>,
    /// The program's rank, if each rank is recorded by itself.
    pub(crate) rank: Option<LaunchedRank>,
    /// The traces of all ranks, if available.
    pub(crate) job: Option<Vec<PathBuf>>,
}

/// The numbers of the traces.
enum Answer {
    Known(Box<Stats>),
    /// The analysis takes too long; contains the numbers of a part of the trace, if available.
    Late(Option<Box<Stats>>),
    /// The traces cannot be analysed. Their problems have already been reported.
    None,
}

/// Prints the summary. `added`: the numbers of a single trace; `None` if nothing is to be analysed.
pub(crate) fn report(run: &RunEnd<'_>, added: Option<Added>) {
    let traces = run.job.clone().unwrap_or_else(|| summaries::completed(run.done));
    let answer = match added {
        Some(_) if run.job.is_some() => in_time(&traces, job_traces::PATIENCE),
        None => Answer::None,
        Some(Added { stats: Some(stats), .. }) => Answer::Known(Box::new(stats)),
        Some(added) if added.is_late => Answer::Late(added.part),
        Some(_) => in_time(&traces, MAX_WAIT),
    };
    let look = message::look(&crate::output::streams::stderr());
    message::block(&block(run, &traces, &answer, look), look);
}

fn block(run: &RunEnd<'_>, traces: &[PathBuf], answer: &Answer, look: Look) -> Lines {
    let arguments = match run.rank {
        Some(_) => quoted_path::folder_of(traces).unwrap_or_else(|| quoted_path::typed_all(traces)),
        None => quoted_path::typed_all(traces),
    };
    let mut lines = Lines::default();
    let stats = match answer {
        Answer::Known(stats) => Some(&**stats).filter(|stats| stats.answers.has_time()),
        Answer::Late(_) | Answer::None => None,
    };
    let part = match answer {
        Answer::Late(part) => part.as_deref(),
        Answer::Known(_) | Answer::None => None,
    };
    let threads = stats.or(part).map(|stats| stats.answers.threads).filter(|threads| *threads > 0);
    headline(&mut lines, run, traces.len(), threads, look);
    if let Answer::Late(_) = answer {
        late(&mut lines, run, part, &arguments, look);
    }
    if let Some(stats) = stats {
        let answers = &stats.answers;
        lines.extend(doubts(answers, look));
        lines.gap();
        lines.extend(efficiency_bars(answers, look));
        lines.gap();
        lines.extend(finding_cards(answers, MAX_FINDINGS, look));
        let more = answers.findings.len().saturating_sub(MAX_FINDINGS);
        if more > 0 {
            lines.push(Line::of(Tint::Dim, format!("  {more} more: omptrace stats {arguments}")));
        }
        if let Some(help) = help_command(answers, MAX_FINDINGS) {
            lines.push(Line::of(Tint::Dim, format!("  What this means: {help}")));
        }
    }
    lines.gap();
    let label = if traces.len() == 1 { "  Trace  " } else { "  Traces " };
    let (held, is_whole) = match &run.job {
        // Each rank reports what is missing in its own trace.
        Some(traces) => (
            message::bytes(traces.iter().filter_map(|it| fs::metadata(it).ok()).map(|it| it.len()).sum()),
            true,
        ),
        None => sealing::held(run.done),
    };
    let shown = match traces {
        [_] => arguments.clone(),
        _ => format!("{} in {arguments}", counted(traces.len() as u64, "file")),
    };
    let tint = if is_whole { Tint::Plain } else { Tint::Warning };
    lines.push(Line::of(Tint::Plain, format!("{label}{shown}")).and(tint, format!(" ({held})")));
    for note in &run.notes {
        lines.words(Line::of(Tint::Plain, "         "), note, Tint::Dim, look);
    }
    let is_part = run.rank.is_some() && run.job.is_none();
    next_commands(&mut lines, &arguments, stats.is_some() && !is_part, look);
    lines
}

/// What is known if analysing everything would take too long.
fn late(lines: &mut Lines, run: &RunEnd<'_>, part: Option<&Stats>, arguments: &str, look: Look) {
    let wall = run.ran.ended.raw_ns.saturating_sub(run.ran.started.raw_ns);
    let estimate = part.and_then(|part| Estimate::of(part, wall));
    let words = match &estimate {
        Some(estimate) => estimate.words(),
        None => {
            "The analysis did not finish within its time limit. To complete the analysis, run:".to_owned()
        }
    };
    lines.words(Line::of(Tint::Warning, "  ! "), &words, Tint::Plain, look);
    // A command is printed on one line, so that it can be copied.
    lines.push(Line::of(Tint::Bold, format!("    omptrace stats {arguments}")));
    lines.push(Line::of(Tint::Dim, "    (or record with --summary wait)"));
    if let Some(estimate) = estimate {
        lines.gap();
        let beginning = estimate.beginning();
        if let Some(words) = &beginning {
            lines.push(Line::of(Tint::Plain, format!("  {words}")));
        }
        lines.extend(efficiency_bars(&estimate.stats.answers, look));
        // The beginning of a run, with its start-up, has its own problems.
        if let Some(help) = help_for_causes(&estimate.stats.answers).filter(|_| beginning.is_none()) {
            lines.push(Line::of(Tint::Dim, format!("  Possible reasons for lost time: {help}")));
        }
    }
}

/// How the program ended, how long it took, and the resources that it used.
fn headline(lines: &mut Lines, run: &RunEnd<'_>, traces: usize, threads: Option<u32>, look: Look) {
    let words: Vec<String> = run.program.iter().map(|word| message::shell_word(word)).collect();
    let command = shortened(&words.join(" "), MAX_COMMAND);
    let wall = time(run.ran.ended.raw_ns.saturating_sub(run.ran.started.raw_ns));
    let ended = match run.ran.end {
        End::Exit(0) => format!(" finished in {wall}, exit status 0"),
        End::Exit(status) => format!(" failed with exit status {status} after {wall}"),
        End::Signal(signal) => format!(" was killed by {} after {wall}", signal_name(signal)),
    };
    let mut on = Vec::new();
    match run.rank {
        Some(rank) if run.job.is_some() => on.push(counted(rank.ranks.into(), "rank")),
        Some(rank) => on.push(format!("rank {} of {}", rank.rank, rank.ranks)),
        None => {}
    }
    if traces > 1 && run.job.is_none() {
        on.push(counted(traces as u64, "process").replace("processs", "processes"));
    }
    on.extend(threads.map(|threads| counted(threads.into(), "thread")));
    on.extend(
        thread::available_parallelism()
            .ok()
            .map(|cpus| format!("{cpus} CPU{}", if cpus.get() == 1 { "" } else { "s" })),
    );
    // For a job, only rank 0's CPU time is known.
    let cpu = run.ran.cpu_ns.filter(|_| run.job.is_none());
    let cpu = cpu.map(|ns| format!("{} CPU; ", time(ns))).unwrap_or_default();
    let rest = format!("{ended} ({cpu}{})", on.join(", "));
    let begin = Line::of(Tint::Bold, format!("omptrace: {command}"));
    match begin.columns() + rest.chars().count() <= look.width {
        true => lines.push(begin.and(Tint::Plain, rest)),
        false => {
            lines.push(begin.and(Tint::Plain, ended));
            lines.push(Line::of(Tint::Plain, format!("  {cpu}{}", on.join(", "))));
        }
    }
}

/// The next commands to type, each with a description if there is room.
fn next_commands(lines: &mut Lines, arguments: &str, has_answer: bool, look: Look) {
    let first = match has_answer {
        false => ("stats", "where the time went"),
        true => ("report", "web page to share"),
    };
    let commands = [first, ("view", "timeline in the browser")];
    let commands = commands.map(|(command, shows)| (format!("omptrace {command} {arguments}"), shows));
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for ((command, shows), label) in commands.into_iter().zip(["  Next   ", "         "]) {
        let line = Line::of(Tint::Plain, format!("{label}{command:<width$}"));
        let has_room = line.columns() + 4 + shows.len() <= look.width;
        lines.push(if has_room { line.and(Tint::Dim, format!("    {shows}")) } else { line });
    }
}

/// The numbers of all traces together, unless this takes longer than `patience`.
fn in_time(traces: &[PathBuf], patience: Duration) -> Answer {
    let analysed = traces.to_vec();
    let (sender, receiver) = mpsc::channel();
    let analysis = move || {
        // The receiver may have stopped waiting.
        let _unheard = sender.send(analyse(&analysed));
    };
    // Without a separate thread, the time would be unlimited.
    if thread::Builder::new().spawn(analysis).is_err() {
        return Answer::None;
    }
    match receiver.recv_timeout(patience) {
        Ok(stats) => stats.map_or(Answer::None, |stats| Answer::Known(Box::new(stats))),
        Err(RecvTimeoutError::Timeout) => Answer::Late(None),
        Err(RecvTimeoutError::Disconnected) => Answer::None,
    }
}

/// The numbers of the traces; `None` if one of them cannot be read.
fn analyse(traces: &[PathBuf]) -> Option<Stats> {
    let sources = Sources::open(traces, ReadFrom::Auto, Wanted::Replay).ok()?;
    let stats = Stats::of_inputs(&sources.inputs(), &symbols::Options::default()).ok()?;
    Some(stats.0)
}
