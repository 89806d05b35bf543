//! `omptrace stats`: where the time went, in numbers.

use std::io::{self, IsTerminal, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use omptrace_analysis::answers::RegionAnswer;
use omptrace_analysis::summary::Summary;
use omptrace_analysis::{
    ConstructStats, CounterStats, DeviceStats, FunctionStats, LockStats, NoAnswer, Options, PhaseStats,
    ProcessStats, Stats as Numbers, ThreadStats,
};
use omptrace_report::{
    By, Layout, Line, Lines, Tint, counted, efficiency_bars, first_screen, shortened, stats_tables, table_by,
    time,
};
use omptrace_symbols::parallel::limit_threads;
use omptrace_trace_format::Reader;
use serde_json::{Value, json};

use crate::input::checkpoint_hint::hint_at_checkpoints;
use crate::input::input_choice::{SourceOptions, Sources, Wanted};
use crate::input::inputs;
use crate::input::selection::check_threads;
use crate::options::shared::DebugDirs;
use crate::options::units::{self, Window};
use crate::output::estimate::Estimate;
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::gaps::report_gaps;
use crate::output::json_output::AnswerOptions;
use crate::output::output_path::{Target, cannot_write};
use crate::output::sarif::{self, ProblemFormat};
use crate::output::{csv, message, progress, quoted_path, streams};
use crate::seal::summaries;

/// `omptrace stats`.
#[derive(Args, Debug)]
#[command(after_help = "\
By default, prints a one-screen overview: where the threads spent their time, efficiencies and findings. --full adds tables of constructs, threads and locks, the critical path and predictions; --by prints one table. `omptrace help` explains a finding, for example `omptrace help load_imbalance`.

Times are sums over threads. Waiting is the share of a construct's time that its threads spent waiting at barriers, for tasks, for locks, or to be woken up. Imbalance is the share of the slowest thread's time that an even distribution of the work would save. --json prints one object, with times in nanoseconds.

Examples:
  omptrace stats app.omptrace
  omptrace stats app.omptrace --full | less
  omptrace stats app.omptrace --by region --limit 5
  omptrace stats app.omptrace --window 2.0s..2.5s
  omptrace stats app.omptrace --phase solve
  omptrace stats app.omptrace --select findings.text
  omptrace stats app.omptrace --format sarif > findings.sarif
  omptrace stats app.omptrace --by thread --csv > threads.csv")]
pub(crate) struct Stats {
    /// Traces or directories of traces
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Print everything: all tables, critical path, predictions
    #[arg(long, conflicts_with_all = ["by", "format", "json", "select"])]
    pub(crate) full: bool,
    /// Print only one table, with one row for each WHAT
    #[arg(long, value_name = "WHAT", value_parser = rows_of_tables())]
    pub(crate) by: Option<By>,
    /// Print all tables as Markdown, for tickets and CI job summaries
    #[arg(long, conflicts_with = "json")]
    pub(crate) md: bool,
    /// Print the --by table as CSV, with times in nanoseconds
    #[arg(long, requires = "by", conflicts_with_all = ["json", "md", "select", "max_bytes"])]
    pub(crate) csv: bool,
    /// Print only the findings, in a format for editors and code hosts
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with_all = ["by", "md", "csv", "json", "select", "top", "max_bytes"])]
    pub(crate) format: Option<ProblemFormat>,
    /// Also write TALP JSON, the input of TALP-Pages (`talp ci-report`)
    #[arg(long, value_name = "FILE")]
    pub(crate) talp: Option<PathBuf>,
    /// Analyse only this time window, for example 2.0s..2.5s, ..10ms or 2s.., or these time steps, for example
    /// step:100..200
    #[arg(long, value_name = "FROM..TO", value_parser = units::window_or_steps, allow_hyphen_values = true)]
    pub(crate) window: Option<Window>,
    /// Analyse only the time in which a thread was in this phase: NAME, DOMAIN/NAME, a pattern with * and ?, or NAME#3
    /// for the third instance of the phase. 'recording on' is the time in which the program had switched recording on
    #[arg(long, value_name = "NAME")]
    pub(crate) phase: Option<String>,
    /// Analyse only matching threads: a number (0 is the first thread of a process), an operating-system thread id,
    /// or part of a name, for example 'worker 3'. Can be repeated
    #[arg(long = "thread", value_name = "THREAD")]
    pub(crate) selected: Vec<String>,
    /// Estimate how the thread time is divided among the causes of lost time. Analyses random parts of the run, in
    /// about a second, instead of the whole run. Prints no findings; `based_on` in the JSON output is the share of the
    /// run that was analysed
    #[arg(long, conflicts_with_all = ["full", "by", "md", "format", "talp", "window", "phase", "selected", "threads", "from"])]
    pub(crate) estimate: bool,
    /// Number of threads to use; does not affect the result [default: the number of CPUs]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZero<usize>>,
    /// Number of threads available to each process [default: the peak number of threads observed]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZero<u32>>,
    /// Where numbers come from.
    #[command(flatten)]
    pub(crate) source: SourceOptions,
    /// How much of the answer.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

impl Stats {
    /// Whether runs that have nothing to do with each other have each their own answer: there is room for several in text. Windows
    /// and phases are of the time of all.
    fn is_shown_one_by_one(&self) -> bool {
        let is_text = !self.answer.is_json() && !self.csv && self.format.is_none() && self.talp.is_none();
        is_text && self.window.is_none() && self.phase.is_none() && self.selected.is_empty()
    }

    /// Whether the first screen answers: nobody asked for more, and there is time to show.
    fn is_first_screen(&self, stats: &Numbers) -> bool {
        let asks_for_tables = self.full
            || self.md
            || self.by.is_some()
            || self.answer.wants_all()
            || self.answer.max_bytes().is_some();
        !asks_for_tables && stats.answers.has_time()
    }

    /// What is read beside the sums of whole processes.
    fn wanted(&self) -> Wanted {
        let is_part = self.window.is_some() || self.phase.is_some() || !self.selected.is_empty();
        match is_part || self.threads.is_some() || self.debug_dirs.is_any() {
            true => Wanted::Events,
            false => Wanted::Replay,
        }
    }
}

/// The parser of the names of tables' rows.
fn rows_of_tables() -> impl TypedValueParser<Value = By> {
    let names = By::ALL.map(|(_, name, what)| PossibleValue::new(name).help(what));
    PossibleValuesParser::new(names)
        .map(|name| By::by_name(&name).expect("only their names are possible values"))
}

/// Prints it for all traces together.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Stats) -> Result<Outcome> {
    if let Some(jobs) = arguments.jobs {
        limit_threads(jobs);
    }
    if arguments.estimate
        && let Some(outcome) = estimate(arguments)?
    {
        return Ok(outcome);
    }
    let sources = Sources::open(&arguments.inputs, arguments.source.from, arguments.wanted())?;
    check_threads(&arguments.selected, &sources.readers())?;
    let window = arguments.window.and_then(Window::time);
    let steps = arguments.window.and_then(Window::steps);
    let window = window.filter(|_| arguments.phase.is_none());
    hint_at_checkpoints(window, &sources.readers());
    let options = Options {
        symbols: arguments.debug_dirs.symbols(),
        threads: arguments.threads,
        window: arguments.window.and_then(Window::time),
        steps,
        phase: arguments.phase.clone(),
        selected: arguments.selected.clone(),
        ..Options::default()
    };
    let inputs: Vec<&Path> = arguments.inputs.iter().map(PathBuf::as_path).collect();
    let talp = match &arguments.talp {
        Some(file) => Some((file, Target::open(file, &inputs)?)),
        None => None,
    };
    let launches = sources.launches();
    if launches.len() > 1 && arguments.is_shown_one_by_one() {
        return one_by_one(arguments, &sources, &launches, &options);
    }
    let analysed =
        progress::while_analysing(&sources.readers(), || Numbers::of_sources(&sources.inputs(), &options));
    let (mut stats, report) = analysed.map_err(not_there)?;
    if launches.len() > 1 {
        let note = format!(
            "the inputs are {} separate runs, analysed as one run; percentages also include the time between the runs, in which nothing was recorded",
            launches.len()
        );
        message::warning(&note);
        message::hint("give the traces of only one run, or compare the runs: omptrace diff BEFORE AFTER");
        stats.notes.push(note);
    }
    if let Some((file, target)) = talp {
        let talp = stats.talp(sources.began());
        let written = target.writer().and_then(|mut out| {
            writeln!(out, "{talp:#}")?;
            out.flush()
        });
        written.and_then(|()| target.finish()).map_err(cannot_write(file))?;
    }
    let by = arguments.by;
    if let Some(format) = arguments.format {
        let answers = &stats.answers;
        let text = sarif::text(format, &answers.findings, answers.duration_ns);
        match format {
            ProblemFormat::Sarif => print(streams::data(), &text)?,
            ProblemFormat::Lines => print(streams::text(), &text)?,
        }
        report_gaps(&report);
        return Ok(Outcome::Success);
    }
    let mut stdout = streams::data();
    match by {
        Some(by) if arguments.csv => {
            let sample = empty_row(by).map_err(io::Error::from)?;
            let rows = rows(&stats, by, &arguments.answer)?;
            csv::write(&mut stdout, &rows, &sample, streams::stdout().is_terminal())?
        }
        Some(by) if arguments.answer.is_json() => {
            let answers = &stats.answers;
            let rows = rows(&stats, by, &arguments.answer)?;
            let mut answer = json!({
                "schema": answers.schema,
                "threads": answers.threads,
                "duration_ns": answers.duration_ns,
                by.field(): rows,
            });
            if by == By::Function {
                answer["sampling"] = json!(stats.sampling);
                answer["no_samples"] = json!(stats.no_samples);
            }
            if by == By::Counter {
                answer["not_counted"] = json!(stats.not_counted);
            }
            arguments.answer.print(&answer)?;
        }
        None if arguments.answer.is_json() => arguments.answer.print(&stats)?,
        None if arguments.is_first_screen(&stats) => {
            let heading = first_heading(&stats, &inputs::traces(&arguments.inputs)?);
            print_first_screen(arguments, &stats, heading)?;
        }
        by => {
            let layout = message::layout(arguments.answer.rows(), arguments.md);
            let text = text(&stats, by, layout, &arguments.answer)?;
            print(streams::text(), &text)?;
        }
    }
    stdout.flush()?;
    report_gaps(&report);
    Ok(Outcome::Success)
}

/// Prints an estimate from a part of the only trace; `None` if the whole trace can be analysed as quickly.
///
/// # Errors
/// Like [`run`], or there are several traces.
fn estimate(arguments: &Stats) -> Result<Option<Outcome>> {
    let traces = inputs::traces(&arguments.inputs)?;
    let [trace] = &traces[..] else {
        let problem = format!("--estimate works with a single trace, not with {}", traces.len());
        return Err(Failure::new(problem).hint("give the trace of one process"));
    };
    if matches!(Summary::read(trace), Ok(Some(_))) {
        return Ok(None);
    }
    let reader = inputs::open(trace)?;
    let Some(stats) = summaries::estimate(&reader) else {
        return Ok(None);
    };
    if arguments.answer.is_json() {
        arguments.answer.print(&*stats)?;
        streams::data().flush()?;
        return Ok(Some(Outcome::Success));
    }
    let wall_ns = reader.clock().ns(reader.last_ticks()).max(0).cast_unsigned();
    let look = message::look(&streams::stdout());
    let mut lines = Lines::default();
    let mut of_run = (*stats).clone();
    of_run.answers.duration_ns = wall_ns;
    lines.push(first_heading(&of_run, &traces));
    lines.gap();
    match Estimate::of(&stats, wall_ns) {
        Some(estimate) => {
            lines.words(Line::of(Tint::Warning, "  ! "), &estimate.words(), Tint::Plain, look);
            let command = format!("    omptrace stats {}", quoted_path::typed_all(&traces));
            lines.push(Line::of(Tint::Bold, command));
            lines.gap();
            lines.extend(efficiency_bars(&stats.answers, look));
        }
        None => lines.push(Line::of(
            Tint::Plain,
            "  Recording was off, or events were lost, during all analysed parts of the run.",
        )),
    }
    print(streams::text(), &lines.text(look))?;
    Ok(Some(Outcome::Success))
}

/// Prints the numbers of each launch by itself.
///
/// # Errors
/// Like [`run`].
fn one_by_one(
    arguments: &Stats,
    sources: &Sources,
    launches: &[Vec<usize>],
    options: &Options,
) -> Result<Outcome> {
    let (inputs, readers) = (sources.inputs(), sources.readers());
    let all = launches.len();
    let names = |launch: &[usize]| {
        let paths = launch.iter().map(|number| message::shell_path(readers[*number].path()));
        paths.collect::<Vec<String>>().join(" ")
    };
    for (number, launch) in launches.iter().enumerate() {
        let own: Vec<_> = launch.iter().map(|input| inputs[*input]).collect();
        let of_launch: Vec<&Reader> = launch.iter().map(|number| readers[*number]).collect();
        let analysed = progress::while_analysing(&of_launch, || Numbers::of_sources(&own, options));
        let (stats, report) = analysed.map_err(not_there)?;
        let (gap, heading) = (if number > 0 { "\n" } else { "" }, if arguments.md { "## " } else { "" });
        let title = format!("{gap}{heading}run {} of {all}: {}\n\n", number + 1, names(launch));
        print(streams::text(), &title)?;
        if arguments.is_first_screen(&stats) {
            let paths: Vec<PathBuf> =
                launch.iter().map(|number| readers[*number].path().to_owned()).collect();
            print_first_screen(arguments, &stats, first_heading(&stats, &paths))?;
        } else {
            let layout = message::layout(arguments.answer.rows(), arguments.md);
            let text = text(&stats, arguments.by, layout, &arguments.answer)?;
            print(streams::text(), &text)?;
        }
        report_gaps(&report);
    }
    let compared = match launches {
        [before, after] if before.len() + after.len() == 2 => format!("{} {}", names(before), names(after)),
        _ => "BEFORE... -- AFTER...".to_owned(),
    };
    message::note(&format!("the inputs are {all} separate runs, shown one after the other"));
    message::hint(&format!("compare the runs: omptrace diff {compared}"));
    Ok(Outcome::Success)
}

/// The first screen, which stands on stdout as it is: what comes from traces is printable in it.
fn print_first_screen(arguments: &Stats, stats: &Numbers, heading: Line) -> io::Result<()> {
    let look = message::look(&streams::stdout());
    let lines = first_screen(stats, heading, arguments.answer.rows(), look);
    print(streams::stdout(), &lines.text(look))
}

/// The run in a few words: what ran, how long, on what.
fn first_heading(stats: &Numbers, traces: &[PathBuf]) -> Line {
    /// The columns of the program and its arguments, at most.
    const MAX_COMMAND: usize = 40;

    let first = traces.first().and_then(|trace| Reader::open(trace).ok());
    let process = first.as_ref().and_then(|reader| reader.metadata().process.clone());
    let command = process.map(|process| process.command_line).unwrap_or_default();
    let words: Vec<String> = command.iter().map(|word| message::shell_word(word.as_ref())).collect();
    let name = match &words[..] {
        [] => stats.processes.first().map_or_else(String::new, |process| process.name.clone()),
        words => words.join(" "),
    };
    let answers = &stats.answers;
    let mut facts = vec![format!("{} wall", time(answers.duration_ns))];
    let cpu: Option<u64> = stats.processes.iter().map(|process| process.cpu_ns).sum();
    facts.extend(cpu.filter(|_| stats.analysed.is_none()).map(|ns| format!("{} CPU", time(ns))));
    let mut on = counted(answers.threads.into(), "thread");
    let several = stats.processes.len();
    if several > 1 {
        on = format!("{several} processes, {on}");
    }
    let cpus = first.as_ref().and_then(|reader| Some(reader.metadata().processors.as_ref()?.num_procs));
    if let Some(cpus) = cpus.filter(|cpus| *cpus > 0 && several == 1) {
        on += &format!(" on {cpus} CPU{}", if cpus == 1 { "" } else { "s" });
    }
    Line::of(Tint::Bold, shortened(name.trim(), MAX_COMMAND))
        .and(Tint::Plain, format!(": {}; {on}", facts.join(", ")))
}

fn print(mut out: impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The failure where the selection matches nothing.
fn not_there(error: NoAnswer) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        NoAnswer::Phase { known } if known.is_empty() => failure.hint(
            "a program marks phases with NVTX, ITT, Kokkos Tools or omptrace.h, or with omp_control_tool(64, 0, \"NAME\") at the start of a phase and omp_control_tool(65, 0, NULL) at its end",
        ),
        NoAnswer::Phase { known } => failure.hint(format!("the phases are {}", known.join(", "))),
        NoAnswer::Window { .. } => failure,
        NoAnswer::Steps { .. } => failure.hint("time steps are the frames that the program marks; if it marks none, they are the executions of the outermost range that occurs at least 8 times"),
        NoAnswer::Summary(_) => failure.hint("to read the events of the trace instead, use --from events"),
    }
}

/// The rows of a table as JSON: as many as were asked for.
fn rows(stats: &Numbers, by: By, answer: &AnswerOptions) -> Result<Vec<Value>> {
    let rows = match by {
        By::Construct | By::Task => {
            let constructs = stats.constructs.iter();
            serde_json::to_value(constructs.filter(|row| by.is_of(row)).collect::<Vec<_>>())
        }
        By::Region => serde_json::to_value(&stats.answers.regions),
        By::Function => serde_json::to_value(&stats.functions),
        By::Counter => serde_json::to_value(&stats.counters),
        By::Thread => serde_json::to_value(&stats.threads),
        By::Lock => serde_json::to_value(&stats.locks),
        By::Device => serde_json::to_value(&stats.devices),
        By::Process => serde_json::to_value(&stats.processes),
        By::Phase => serde_json::to_value(&stats.phases),
    };
    let rows = rows.map_err(io::Error::from)?;
    let rows = rows.as_array().cloned().unwrap_or_default();
    // The answer itself counts the rows that it leaves out.
    let top = if answer.is_json() { None } else { answer.rows() };
    Ok(rows.into_iter().take(top.unwrap_or(usize::MAX)).collect())
}

/// What to do about a table that needs samples, where the trace has none.
fn hint_at_sampling(stats: &Numbers, by: By) -> String {
    match by == By::Function && stats.sampling.is_none() {
        true => "hint: to take samples, use omptrace record --sample PROGRAM\n".to_owned(),
        false => String::new(),
    }
}

/// A row of a table without content, for the names of its fields.
fn empty_row(by: By) -> serde_json::Result<Value> {
    match by {
        By::Construct | By::Task => serde_json::to_value(ConstructStats::default()),
        By::Region => serde_json::to_value(RegionAnswer::default()),
        By::Function => serde_json::to_value(FunctionStats::default()),
        By::Counter => serde_json::to_value(CounterStats::default()),
        By::Thread => serde_json::to_value(ThreadStats::default()),
        By::Lock => serde_json::to_value(LockStats::default()),
        By::Device => serde_json::to_value(DeviceStats::default()),
        By::Process => serde_json::to_value(ProcessStats::default()),
        By::Phase => serde_json::to_value(PhaseStats::default()),
    }
}

/// All tables, or one of them. They are whole, but for what was asked for, and on a terminal: there the answer, which comes first,
/// would scroll away.
///
/// # Errors
/// It cannot be as short as it has to be.
fn text(stats: &Numbers, by: Option<By>, layout: Layout, answer: &AnswerOptions) -> Result<String> {
    /// The longest text on a terminal.
    const ON_TERMINAL: usize = 16 << 10;

    let of = |layout: Layout| match by {
        Some(by) => table_by(stats, by, layout).to_string() + &hint_at_sampling(stats, by),
        None => stats_tables(stats, layout).to_string(),
    };
    let asked_for = answer.max_bytes().map(|max| usize::try_from(max.get()).unwrap_or(usize::MAX));
    let is_for_terminal = streams::stdout().is_terminal() && !answer.wants_all() && layout.top.is_none();
    let all = of(layout);
    let Some(room) = asked_for.or(is_for_terminal.then_some(ON_TERMINAL)) else {
        return Ok(all);
    };
    if all.len() <= room {
        return Ok(all);
    }
    let mut shortened = String::new();
    for rows in [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1] {
        shortened = of(Layout { top: Some(rows), is_short: true, ..layout });
        shortened += "\ntables were shortened; use --limit N to print N rows of each table, or --all to print everything\n";
        if shortened.len() <= room {
            return Ok(shortened);
        }
    }
    match asked_for {
        None => Ok(shortened),
        Some(max) => Err(Failure::new(format!(
            "--max-bytes {max}: the output has {} bytes even with only one row of each table",
            shortened.len()
        ))
        .hint("use --by WHAT to print only one table")),
    }
}
