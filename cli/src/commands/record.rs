//! `omptrace record`: runs a program with the tracer, then completes its traces.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use clap::Args;
use clap::{ValueEnum, ValueHint};
use omptrace_symbols::{self as symbols, Table};
use omptrace_trace_format::metadata::Energy;
use omptrace_trace_format::{InDoubt, metadata};
use serde_json::{Value, json};

use crate::options::shared::{Libgomp, Tracer, WhenLibgomp};
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::message;
use crate::output::progress::Work;
use crate::output::quoted_path::typed_all;
use crate::record::advice::{self, INSTALL_LIBOMP};
use crate::record::annotations;
use crate::record::child_process::{self, End, Ran};
use crate::record::command_words::{Words, new_root};
use crate::record::crash_hints;
use crate::record::diagnosis::{self, Diagnosis, Traceable};
use crate::record::energy::{Meter, POWERCAP};
use crate::record::find_tracer::{self, prepended};
use crate::record::job_traces;
use crate::record::kept_modules::Keeper;
use crate::record::launched_rank::LaunchedRank;
use crate::record::libgomp::{self, Decision};
use crate::record::libgomp_replacement;
use crate::record::mpi::{self, WhenMpi};
use crate::record::observed_process::ObservedProcess;
use crate::record::permissions;
use crate::record::preload::{self, Preload};
use crate::record::record_summary::{self, RunEnd};
use crate::record::recorded_traces::{Notes, Registry, Session};
use crate::record::run_notes;
use crate::record::separate_namespaces;
use crate::record::tunables;
use crate::record::unregistered_traces::{self, UnregisteredTraces};
use crate::seal::sealing::{self, Job, SealedTrace};
use crate::seal::summaries::{self, Added, SummaryOptions};
use crate::system::executable::Program;
use crate::system::fd_limit::{self, Limit};
use crate::system::library_search::Loader;
use crate::system::processor;
use crate::top::Live;

/// When the traces are analysed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Analyse {
    /// After the run, for at most 1.5 s plus 10 % of the run time; if this time is too short, only a part of the run is
    /// analysed
    #[default]
    Soon,
    /// After the run, however long the analysis takes (for batch jobs)
    Wait,
    /// Later, when `omptrace stats` is run; `record` does not analyse the traces
    #[value(alias = "no")]
    Later,
}

/// The treatment of the names of code: functions and source lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Symbols {
    /// Store the names in the trace when the program has ended, so that they remain valid in copies of the trace and after
    /// the program is rebuilt.
    #[default]
    Embed,
    /// Look up names later: `convert` reads them from the program's files as they are at that time, and `symbolize`
    /// also stores the names in the trace.
    Later,
    /// Do not look up names; source locations are then shown as modules and offsets.
    Off,
}

/// `omptrace record`.
#[derive(Args, Debug)]
#[command(
    override_usage = "omptrace record [OPTIONS] [--] <PROGRAM> [ARGS]...",
    after_help = "\
PROGRAM may be a launcher or a script (mpirun, srun, numactl, python, ./run.sh). Each process that starts an OpenMP runtime writes its own trace. The program keeps stdin and stdout; `record` prints only to stderr.

Examples:
  omptrace record ./app --size 100
  omptrace record -o traces/ --events default,flush -- ./app
  omptrace record -o 'app.%r.omptrace' -- mpirun -n 4 ./app
  omptrace record -- ./run.sh
  omptrace record --live ./app < /dev/null > app.out 2>&1"
)]
pub(crate) struct Record {
    /// How to record.
    #[command(flatten)]
    pub(crate) tracer: Tracer,
    /// Also record waits outside OpenMP: for pthread mutexes, condition variables and joins, for semaphores, in sleeps,
    /// and for input and output [LD_PRELOAD]
    #[arg(long)]
    pub(crate) waits: bool,
    /// When to record MPI calls: always, never, or only if the program needs an MPI library or is started by an MPI
    /// launcher [LD_PRELOAD]
    #[arg(long, value_name = "WHEN", default_value_t, value_enum)]
    pub(crate) mpi: WhenMpi,
    /// Programs built by GCC.
    #[command(flatten)]
    pub(crate) libgomp: Libgomp,
    /// When to look up functions and source lines: at the end of the run, later, or never
    #[arg(long, value_name = "WHEN", default_value_t, value_enum)]
    pub(crate) symbols: Symbols,
    /// Print nothing unless something goes wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Summaries.
    #[command(flatten)]
    pub(crate) summary: SummaryOptions,
    /// When to analyse the traces: after the run with a time limit, after the run without a time limit, or later
    #[arg(long = "summary", alias = "analyse", value_name = "WHEN", default_value_t, value_enum)]
    pub(crate) analyse: Analyse,
    /// Show `omptrace top` while the program runs. The program's input and output must be redirected away from the
    /// terminal
    #[arg(long)]
    pub(crate) live: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        value_name = "PROGRAM",
        help_heading = "Arguments",
        trailing_var_arg = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) program: Vec<OsString>,
}

/// Runs the command.
///
/// # Errors
/// The tracer is not there, an option cannot be met, or the program cannot be started.
pub(crate) fn run(arguments: &Record) -> Result<Outcome> {
    let limit = fd_limit::allow_most();
    let library = find_tracer::find(arguments.tracer.tool.as_deref())?;
    let mut variables = find_tracer::settings(&arguments.tracer)?;
    if let Some(rank) = LaunchedRank::of_this_process() {
        message::speak_for_rank(rank.rank);
        if !mpi::is_wanted(rank.rank, &variables) {
            let ran = start(&arguments.program, &Vec::new(), None, limit)?;
            return Ok(Outcome::Program(ran.end.status()));
        }
    }
    let output = output(&variables)?;
    variables.retain(|(name, _)| *name != OUTPUT);
    variables.push((OUTPUT, output.clone()));
    let registry = Registry::new()?;
    variables.push(("OMPTRACE_REGISTRY", registry.folder().into()));
    variables.push(("OMP_TOOL_LIBRARIES", prepended([library.as_path()], "OMP_TOOL_LIBRARIES")));
    if let Some(limits) = processor::THIS.limits().filter(|_| !arguments.quiet) {
        message::note(&limits);
    }

    let loader = Loader::new();
    let programs = Program::of_command(&arguments.program, &loader);
    let refusals = diagnosis::refusals_in_environment();
    let decision = match &*refusals {
        [] => libgomp::decide(&arguments.libgomp, &library, &programs, &loader)?,
        // Nothing will be traced, so nothing need run on another runtime.
        _ => Decision::Keep,
    };
    let is_replaced = matches!(decision, Decision::ReplaceBy(_));
    let needs_tool = !is_replaced && programs.iter().any(Program::needs_preloaded_tool);
    let looks_for_runtimes = arguments.tracer.preload || needs_tool;
    let of_waits = match arguments.waits {
        true => Some(find_tracer::waits(&library)?),
        false => None,
    };
    let mut libraries = preload::libraries(&decision, &library, looks_for_runtimes);
    libraries.extend(of_waits.as_deref());
    let of_mpi = match &*refusals {
        [] => mpi::libraries(arguments.mpi, &library, (&arguments.program, &programs), &loader)?,
        _ => Vec::new(),
    };
    if let Some(words) = mpi::linked_statically(&of_mpi, &programs) {
        message::warning(&words);
    }
    let wanted_annotations = annotations::wanted(&variables);
    variables.extend(annotations::variables(&wanted_annotations, &library));
    let needs_roctx = annotations::needs_preloaded_tracer(&wanted_annotations, &programs, &loader);
    if (!of_mpi.is_empty() || needs_roctx) && !libraries.contains(&library.as_path()) {
        // A program that calls MPI or rocTX may have no OpenMP runtime that would load it.
        libraries.push(&library);
    }
    libraries.extend(of_mpi.iter().map(PathBuf::as_path));
    match new_root(&arguments.program).filter(|root| !preload::is_in_root(&libraries, root)) {
        Some(root) => {
            libraries.clear();
            message::note(&format!(
                "the tracer's libraries are not preloaded into programs that run in the root directory {}, because this directory does not contain the libraries",
                root.display()
            ));
        }
        None if refusals.is_empty() => report_decision(&decision, &programs, arguments, !of_mpi.is_empty()),
        None => {}
    }
    let preload = match &*libraries {
        [] => None,
        libraries => Some(Preload::new(libraries)?),
    };
    variables.extend(preload.as_ref().map(|preload| ("LD_PRELOAD", preload.value())));
    let audited = audited(&arguments.libgomp, &decision, preload.as_ref());
    let is_audited = audited.is_some();
    let additions = tunables::additions(&libraries, is_audited, &programs, &loader);
    variables.extend(additions.into_iter().map(tunables::joined));
    variables.extend(audited.map(|path| ("LD_AUDIT", prepended([path], "LD_AUDIT"))));
    for program in &programs {
        for (remark, remedy) in diagnosis::remarks_on(program, preload.is_some(), &loader) {
            message::warning(&remark);
            message::hint(&remedy);
        }
    }
    for (refusal, remedy) in &refusals {
        message::warning(refusal);
        message::hint(remedy);
    }

    let since = SystemTime::now();
    let keeper = Keeper::start(registry.folder());
    let live = match arguments.live {
        true => Some(Live::start(registry.folder().to_owned())?),
        false => None,
    };
    let meter = Meter::start(Path::new(POWERCAP));
    let ran = start(&arguments.program, &variables, programs.first(), limit);
    let energy = meter.map_or_else(Vec::new, Meter::finish);
    if let Some(live) = live {
        live.finish();
    }
    let ran = ran?;
    if let Some(preload) = preload {
        preload.end();
    }
    let report_death = |is_known: bool| {
        let program = &arguments.program[0];
        crash_hints::report(ran.end, (!is_known).then_some(Path::new(program)));
        if is_audited && ran.end == End::Exit(NOT_LOADED) {
            message::hint(AUDIT_NEEDS_ROOM);
        }
        if let Some(hint) = diagnosis::hint_at_death(ran.end, &decision, &programs, &loader) {
            message::hint(&hint);
        }
    };
    let mut notes = registry.notes();
    let unnoted = unregistered_traces::find(&output, registry.folder(), &notes.sessions, since);
    report_unnoted(&unnoted);
    notes.sessions.extend(unnoted.sessions);
    let is_any_apart =
        separate_namespaces::report(&notes.apart, &decision, &arguments.libgomp, &programs, &loader);
    let unseen = why_unseen(&notes, unnoted.unseen.as_ref());
    let reason = why_no_trace(&notes);
    let symbols = symbols::Options {
        kept: keeper.map(Keeper::finish).unwrap_or_default(),
        ..symbols::Options::default()
    };
    let jobs = jobs(arguments, notes.sessions, (ran, &energy), &decision, &symbols);
    if jobs.is_empty() {
        report_death(false);
        message::warning(match unseen {
            None => "nothing was traced",
            Some(_) => "no trace was found",
        });
        match unseen.or(reason) {
            Some(reason) => message::note(&reason),
            // Said above.
            None if is_any_apart || !unnoted.unreadable.is_empty() => {}
            None if report_closed(&arguments.program, &programs, &library) => {}
            None => report_likely_reason(&arguments.program, &programs, ran.end, &decision, &loader),
        }
    } else {
        if let Some(reason) = &notes.unread {
            message::warning(&format!(
                "there may be more traces, but the directory in which processes register their traces cannot be read: {reason}"
            ));
        }
        let work = summaries::completing(arguments.analyse != Analyse::Later);
        let done = sealing::seal_all(jobs, &work);
        let added = add_summaries(arguments, &summaries::completed(&done), &ran, work);
        sealing::report_problems(&done);
        // The ranks of a job usually load the same modules, so the first rank's warnings are enough.
        if !is_another_rank() {
            sealing::report_nameless(&done);
        }
        if let Decision::ReplaceBy(stand_in) = &decision {
            libgomp_replacement::report(&done, stand_in, &programs, &loader);
        }
        report_death(report_end(arguments, &output, &ran, &done, added, &decision));
    }
    Ok(Outcome::Program(ran.end.status()))
}

/// Adds summaries to the traces; `None` where nothing is to be analysed now.
fn add_summaries(arguments: &Record, traces: &[PathBuf], ran: &Ran, work: Work) -> Option<Added> {
    let ns = ran.ended.raw_ns.saturating_sub(ran.started.raw_ns);
    let patience = match arguments.analyse {
        Analyse::Soon => Some(summaries::patience(Duration::from_nanos(ns))),
        Analyse::Wait => None,
        Analyse::Later => return None,
    };
    let work = work.next_step("analysing");
    let (is_kept, is_talkative) = (!arguments.summary.no_summary, !arguments.quiet);
    Some(match traces {
        [trace] if is_kept || is_talkative => {
            summaries::add_in_time(trace, patience, is_kept, is_talkative, work)
        }
        _ if is_kept => summaries::add(traces, patience, is_talkative, work),
        _ => Added::default(),
    })
}

/// Prints how the program ended, where its time went and where the traces are, unless `--quiet` is set or this process
/// is not the first rank. Returns whether it was printed.
fn report_end(
    arguments: &Record,
    output: &OsStr,
    ran: &Ran,
    done: &[SealedTrace],
    added: Option<Added>,
    decision: &Decision,
) -> bool {
    let rank = LaunchedRank::of_this_process();
    if done.iter().all(|done| done.result.is_err()) {
        return false;
    }
    if arguments.quiet || is_another_rank() {
        let (held, is_whole) = sealing::held(done);
        if !is_whole {
            message::warning(&format!("{}: {held}", typed_all(&summaries::completed(done))));
        }
        return false;
    }
    sealing::report_withheld(done);
    let hidden = match decision {
        Decision::ObserveBy(adapter) if done.iter().take(4).any(sealing::is_of_libgomp) => Some(format!(
            "{} observes GCC's libgomp; static loops, masked regions and atomics are not visible, because GCC inlines them",
            adapter.file_name().unwrap_or_default().display()
        )),
        _ => None,
    };
    let notes = run_notes::of(Path::new(output), done, hidden);
    let of_job = rank.filter(|_| arguments.analyse != Analyse::Later);
    let job =
        of_job.and_then(|rank| job_traces::of_all_ranks(&summaries::completed(done), rank, ran.started));
    let end = RunEnd { program: &arguments.program, ran: *ran, done, notes, rank, job };
    record_summary::report(&end, added);
    true
}

/// Whether this process is a rank of a job, but not the first.
fn is_another_rank() -> bool {
    LaunchedRank::of_this_process().is_some_and(|rank| rank.rank > 0)
}

const OUTPUT: &str = "OMPTRACE_OUTPUT";

/// The output's pattern, as an absolute path: the option's, else the variable's, else the usual one.
fn output(variables: &find_tracer::Variables) -> Result<OsString> {
    let of_option = variables.iter().find(|(name, _)| *name == OUTPUT);
    match of_option {
        Some((_, output)) => Ok(output.clone()),
        None => {
            let output = find_tracer::variable(OUTPUT).unwrap_or_else(|| find_tracer::usual_name().into());
            find_tracer::absolute_pattern(Path::new(&output))
        }
    }
}

/// Reports traces that left no note.
fn report_unnoted(unnoted: &UnregisteredTraces) {
    for session in &unnoted.sessions {
        message::note(&format!(
            "{} belongs to this run, but its process did not register the trace with `record` (the process ran as another user or in another container, or deleted the registration)",
            message::near(&session.trace).display()
        ));
    }
    for file in &unnoted.unreadable {
        message::warning(&format!(
            "{} may be a trace of this run, but belongs to another user",
            message::near(file).display()
        ));
        message::hint(&format!(
            "finish the trace as that user: omptrace recover {}",
            message::shell_path(file)
        ));
    }
}

/// The adapter as the loader finds it, where the loader shall ask it about bindings.
fn audited<'a>(options: &Libgomp, decision: &Decision, preload: Option<&'a Preload>) -> Option<&'a Path> {
    match decision {
        Decision::ObserveBy(adapter) if options.audit => preload?.path_of(adapter),
        _ => None,
    }
}

fn report_decision(decision: &Decision, programs: &[Program], arguments: &Record, records_mpi: bool) {
    // Said before a long run that may be traced in vain.
    let is_any_seen = programs.iter().any(|program| program.has_openmp() || program.runs_packages());
    let is_unknown = !arguments.quiet
        && arguments.libgomp.libgomp == WhenLibgomp::Auto
        && !programs.is_empty()
        && !records_mpi
        && !is_any_seen;
    match decision {
        Decision::Keep if is_unknown && processor::THIS.observes_libgomp() => message::note(
            "no OpenMP runtime was found before the run; GCC programs and GCC libraries are not traced, because libomptgomp.so is not installed next to the tracer",
        ),
        Decision::ObserveBy(_) if is_unknown => message::note(
            "no OpenMP runtime was found before the run; OpenMP programs that this command starts are traced nevertheless, and those built by GCC keep GCC's runtime (libgomp)",
        ),
        // Said when it has been seen to matter: see [`report_end`].
        Decision::Keep | Decision::ObserveBy(_) => {}
        Decision::ReplaceBy(stand_in) => {
            if !arguments.quiet {
                message::note(&format!(
                    "{} replaces GCC's libgomp (to prevent this, use --libgomp keep)",
                    stand_in.libomp.display()
                ));
            }
            if !stand_in.lacking.is_empty() {
                message::warning(&format!(
                    "{}; the program's results may be wrong, and the program may crash",
                    diagnosis::cannot_replace(stand_in)
                ));
            }
        }
        Decision::CannotReplaceBy(stand_in) => {
            message::warning(&format!(
                "the program keeps GCC's libgomp, which cannot be traced: {}",
                diagnosis::cannot_replace(stand_in)
            ));
            message::hint(advice::INSIST);
        }
        Decision::NothingInstalled => {
            message::warning("the program needs GCC's libgomp, which cannot be traced");
            message::hint(INSTALL_LIBOMP);
        }
    }
}

/// The status of a program that the loader could not load.
const NOT_LOADED: i32 = 127;

/// What is to be done where the loader cannot load a program because another library audits.
const AUDIT_NEEDS_ROOM: &str = "if the loader reports \"cannot allocate memory in static TLS block\", set GLIBC_TUNABLES=glibc.rtld.optional_static_tls=100000, which increases the space for thread-local storage, or leave out --audit, which reduces this space";

/// A runtime may look for tools elsewhere, or be unable to load one.
const HOW_TOOLS_ARE_FOUND: &str = "to see how the runtime looks for tools, set OMP_TOOL_VERBOSE_INIT=stderr; if the runtime finds the tracer but cannot load it, record with --preload";

/// Where a trace may be that `record` does not find.
const WHERE_ELSE: &str = "if the program ran as another user or with a different view of the file system, its trace may be elsewhere; in that case, the tracer prints the path of the trace to stderr";

/// Runs the program to its end.
fn start(
    command: &[OsString],
    variables: &find_tracer::Variables,
    program: Option<&Program>,
    limit: Option<Limit>,
) -> Result<Ran> {
    /// `Exec format error`: neither an ELF file nor a script with an interpreter in its first line.
    const ENOEXEC: i32 = libc::ENOEXEC;

    let with_limit = |mut command: Command| {
        limit.inspect(|limit| limit.pass_on(&mut command));
        command
    };
    let mut process = with_limit(Command::new(&command[0]));
    process.args(&command[1..]).envs(variables.iter().cloned());
    let ran = match (child_process::run(&mut process), program) {
        // Shells take such a file for a shell script.
        (Err(error), Some(script)) if error.raw_os_error() == Some(ENOEXEC) => {
            let mut shell = with_limit(Command::new("/bin/sh"));
            shell.arg(&script.path).args(&command[1..]);
            child_process::run(shell.envs(variables.iter().cloned()))
        }
        (ran, _) => ran,
    };
    ran.map_err(|error| cannot_run(&command[0], &error))
}

/// Why a program cannot be started, with a way out where its file is there.
fn cannot_run(word: &OsStr, error: &io::Error) -> Failure {
    let not_found = error.kind() == io::ErrorKind::NotFound;
    let failure = Failure::because(format!("cannot run {}", word.display()), error);
    let failure = failure.status(if not_found { 127 } else { 126 });
    let path = Path::new(word);
    match fs::metadata(path) {
        // A word without a directory is looked for in those of PATH.
        Ok(file) if file.is_file() && !word.as_encoded_bytes().contains(&b'/') => {
            let named = message::shell_word(Path::new(".").join(path).as_os_str());
            failure.hint(match file.permissions().mode() & 0o111 {
                0 => format!("{named} is in this directory, but is not executable: chmod +x {named}"),
                _ => format!("to run the program in this directory, use {named}"),
            })
        }
        Ok(file) if file.is_dir() => failure.hint("this is a directory: give the path of a program"),
        Ok(file) if file.permissions().mode() & 0o111 == 0 => {
            let named = message::shell_path(path);
            failure.hint(format!("the file is not executable: chmod +x {named}"))
        }
        // The kernel says so of the interpreter in the first line, and of the loader.
        Ok(_) if not_found => failure.hint(
            "the file exists, but its loader is missing or, if the file is a script, the interpreter in its first line is missing",
        ),
        _ => failure,
    }
}

/// Why there may be traces that nobody saw: an error of looking for them does not say that there are none.
fn why_unseen(notes: &Notes, unseen: Option<&(PathBuf, io::Error)>) -> Option<String> {
    let then = "to finish any traces that exist, use omptrace recover";
    match (&notes.unread, unseen) {
        (Some(error), _) => Some(format!(
            "the directory in which processes register their traces cannot be read: {error}; {then}"
        )),
        (None, Some((path, error))) => {
            Some(format!("{} cannot be read: {error}; {then}", message::near(path).display()))
        }
        (None, None) => None,
    }
}

/// The reasons, as far as they are known, why there are no traces.
fn why_no_trace(notes: &Notes) -> Option<String> {
    if let Some(why) = notes.failures.first() {
        return Some(format!("the tracer could not start: {why}"));
    }
    if let Some(moved) = notes.moved.first() {
        return Some(format!(
            "{} is no longer where the tracer created it; if you moved it, run omptrace recover on the moved file to finish the trace",
            message::near(moved).display()
        ));
    }
    let text = "the program removed the directory in which its processes register their traces (in TMPDIR); finish the traces with omptrace recover";
    notes.is_gone.then(|| text.to_owned())
}

/// The traces to complete, and what only `record` knows of their processes.
fn jobs(
    arguments: &Record,
    sessions: Vec<Session>,
    (ran, energy): (Ran, &[Energy]),
    decision: &Decision,
    symbols: &symbols::Options,
) -> Vec<Job> {
    // A process that executed another program has a session for each; only the last saw the end.
    let last = sessions.iter().filter(|session| session.pid == ran.pid).map(|session| session.number).max();
    sessions
        .into_iter()
        .map(|session| {
            let saw_the_end = session.pid == ran.pid && Some(session.number) == last;
            let seen = saw_the_end.then(|| ObservedProcess::of(&session.trace, ran, energy));
            Job {
                additions: additions(arguments, seen, decision),
                symbols: (arguments.symbols == Symbols::Embed).then(|| symbols.clone()),
                in_doubt: InDoubt::Refuse,
                trace: session.trace,
            }
        })
        .collect()
}

fn additions(arguments: &Record, seen: Option<ObservedProcess>, decision: &Decision) -> Value {
    let mut record = metadata::Record {
        command_line: arguments.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..metadata::Record::default()
    };
    if let Some(seen) = seen {
        match seen.end {
            End::Exit(status) => record.exit_status = Some(status),
            End::Signal(signal) => record.signal = Some(signal),
        }
        (record.started_raw_ns, record.ended_raw_ns) = seen.life.unzip();
        record.energy = seen.energy;
    }
    if let Decision::ReplaceBy(stand_in) = decision {
        record.libgomp_replaced_by = Some(stand_in.libomp.to_string_lossy().into_owned());
    }
    match arguments.symbols {
        // A trace that brings no names along is one whose names nobody looks up.
        Symbols::Off => json!({ "record": record, symbols::KEY: Table::default().to_json() }),
        Symbols::Embed | Symbols::Later => json!({ "record": record }),
    }
}

/// Where the program ran as another user, and that one cannot load the tracer: says so.
fn report_closed(command: &[OsString], programs: &[Program], library: &Path) -> bool {
    let changes_user = || Words::of(command, programs).change_user();
    let closed = permissions::closed_part(library).filter(|_| changes_user());
    let Some(closed) = closed else {
        return false;
    };
    let (reason, remedy) = permissions::words(library, &closed);
    message::note(&format!("likely reason: {reason}"));
    message::hint(&remedy);
    true
}

fn report_likely_reason(
    command: &[OsString],
    programs: &[Program],
    end: End,
    decision: &Decision,
    loader: &Loader,
) {
    if let Some((refusal, remedy)) = diagnosis::refusals_in_environment().into_iter().next() {
        message::note(&format!("likely reason: {refusal}"));
        message::hint(&remedy);
        return;
    }
    // What can be seen of the last program says most: launchers come before it.
    let Some(program) = programs.last() else {
        return;
    };
    if diagnosis::refusal_by_own_tool(program, false, loader).is_some() {
        message::note("likely reason: the program has its own OMPT tool (see above)");
        return;
    }
    let diagnosis = Diagnosis::of(program, decision);
    let is_preloaded = matches!(decision, Decision::ObserveBy(_) | Decision::ReplaceBy(_));
    let needs_preload = is_preloaded && diagnosis.traceable != Traceable::Yes;
    let cannot = diagnosis.traceable == Traceable::No && program.has_openmp();
    let obstacle = Words::of(command, programs).obstacle(needs_preload);
    if let Some((reason, remedy)) = obstacle.filter(|_| !cannot) {
        message::note(&format!("likely reason: {reason}"));
        message::hint(remedy);
        return;
    }
    let path = program.path.display();
    let (reason, remedy) = match (diagnosis.traceable, decision) {
        (Traceable::Yes | Traceable::Observed | Traceable::Replaced, _) if matches!(end, End::Signal(_)) => {
            (format!("{path} was killed before its first OpenMP construct"), None)
        }
        // libgomp has no words about tools.
        (Traceable::Observed, _) => (
            format!(
                "{path} can be traced, but either the program executed no OpenMP construct that calls libgomp, or the program was started without LD_PRELOAD"
            ),
            Some(format!("{}; {WHERE_ELSE}", advice::KEEP_PRELOAD)),
        ),
        (Traceable::Yes | Traceable::Replaced, _) => (
            format!(
                "{path} can be traced, but either the program executed no OpenMP construct, or its runtime did not load the tracer"
            ),
            Some(format!("{HOW_TOOLS_ARE_FOUND}; {WHERE_ELSE}")),
        ),
        // Said before the run, with what to do.
        (Traceable::No, Decision::CannotReplaceBy(_)) if program.needs_libgomp() => {
            (format!("{path} ran on GCC's libgomp"), None)
        }
        (Traceable::Unknown, Decision::ReplaceBy(_)) if diagnosis.remedy.is_none() => {
            (diagnosis.reason, Some(HOW_TOOLS_ARE_FOUND.to_owned()))
        }
        (Traceable::Unknown | Traceable::No, _) => (diagnosis.reason, diagnosis.remedy),
    };
    message::note(&format!("likely reason: {reason}"));
    if let Some(remedy) = remedy {
        message::hint(&remedy);
    }
}
