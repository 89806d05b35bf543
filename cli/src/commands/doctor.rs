//! `omptrace doctor`: what can be traced here, and what prevents it.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use omptrace_trace_format::metadata::Counting;
use serde::Serialize;

use crate::options::shared::Libgomp;
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::json_output::{AnswerOptions, WithSchema};
use crate::output::message;
use crate::output::streams;
use crate::record::advice::INSTALL_LIBOMP;
use crate::record::diagnosis::{self, Diagnosis, Traceable};
use crate::record::energy::{POWERCAP, Readable};
use crate::record::find_tracer;
use crate::record::libgomp;
use crate::system::executable::Program;
use crate::system::free_space;
use crate::system::installed_runtimes;
use crate::system::library_search::Loader;
use crate::system::mpi_libraries::InstalledMpi;
use crate::system::offloading::Offloading;
use crate::system::openmp_runtime;
use crate::system::probe::{self, Grants};
use crate::system::processor;
use crate::system::recording_clock::RecordingClock;

/// `omptrace doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0 if no problem was found, 1 if a problem prevents programs from being traced, 2 on error.

Examples:
  omptrace doctor
  omptrace doctor ./app
  omptrace doctor -- mpirun -n 4 ./app --size 100")]
pub(crate) struct Doctor {
    /// Check whether this program can be traced, and how. Give the whole command, as you would for `record`, because
    /// the program to trace may be one of the command's arguments (for example with `mpirun`)
    #[arg(
        value_name = "PROGRAM",
        trailing_var_arg = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) program: Vec<OsString>,
    /// How much of the answer.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    /// The tracer's library [default: libomptrace.so in the directory of the omptrace command, or in ../lib relative to
    /// that directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool: Option<PathBuf>,
    /// Path of the LLVM or Intel runtime to use for programs built by GCC [default: the newest one installed]
    #[arg(long, value_name = "PATH", env = "OMPTRACE_LIBOMP", hide_env_values = true)]
    pub(crate) libomp: Option<PathBuf>,
}

/// All that was found out. With `--json` this is what is printed.
#[derive(Debug, Serialize)]
struct Report {
    /// The tracer's library.
    tool: PathBuf,
    runtimes: Vec<Runtime>,
    /// The counters that threads can have (`record --counters`); left out where no runtime loads the tracer.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Counting>,
    /// The clock that events are recorded by; left out where no runtime loads the tracer.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<RecordingClock>,
    /// The energy that `record` notes.
    energy: Readable,
    /// The possibilities of devices.
    offloading: Offloading,
    /// Libraries and launchers.
    mpi: InstalledMpi,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<Verdict>,
    /// Problems that keep programs from being traced.
    problems: Vec<Remark>,
    /// Remarks that are good to know.
    notes: Vec<Remark>,
}

/// An OpenMP runtime of this machine.
#[derive(Debug, Serialize)]
struct Runtime {
    path: PathBuf,
    vendor: &'static str,
    #[serde(flatten)]
    answer: Answer,
}

/// The answer of a runtime.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
enum Answer {
    Grants(Box<Grants>),
    /// It cannot load tools; nothing was tried.
    NoToolsInterface,
    /// No tool was loaded: why.
    Failed {
        error: String,
    },
}

/// The verdict on the program that was asked about.
#[derive(Debug, Serialize)]
struct Verdict {
    path: PathBuf,
    #[serde(flatten)]
    diagnosis: Diagnosis,
    /// The command to type.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

#[derive(Debug, Serialize)]
struct Remark {
    what: String,
    remedy: String,
}

/// Finds out and reports.
///
/// # Errors
/// The tracer is not there, or neither is the program.
pub(crate) fn run(arguments: &Doctor) -> Result<Outcome> {
    let tool = find_tracer::find(arguments.tool.as_deref())?;
    let loader = Loader::new();
    let runtimes: Vec<Runtime> =
        installed_runtimes::all(&loader).into_iter().map(|path| examine(path, &tool)).collect();
    let programs = match &*arguments.program {
        [] => Vec::new(),
        command => programs_of(command, &loader)?,
    };
    let program = match programs.is_empty() {
        true => None,
        false => Some(verdict_of(&programs, arguments, &loader)?),
    };

    let mut problems: Vec<Remark> = diagnosis::refusals_in_environment()
        .into_iter()
        .map(|(what, remedy)| Remark { what, remedy })
        .collect();
    // A program may bring a runtime from a folder that nobody else looks in.
    let is_traceable = program.as_ref().is_some_and(|verdict| {
        matches!(verdict.diagnosis.traceable, Traceable::Yes | Traceable::Observed | Traceable::Replaced)
    });
    problems.extend(refused_by_all(&runtimes, &tool).filter(|_| !is_traceable));
    problems.extend(full_disks());
    let remarks = programs.iter().flat_map(|program| {
        // The verdict names a tool of the program's own.
        diagnosis::remarks_on(program, true, &loader)
    });
    let remarks: Vec<Remark> = remarks.map(|(what, remedy)| Remark { what, remedy }).collect();
    let clock = grants(&runtimes).find_map(|grants| grants.clock.clone());
    let report = Report {
        notes: notes(&loader, &tool).into_iter().chain(remarks).collect(),
        tool,
        counters: counting(&runtimes),
        clock,
        energy: Readable::at(Path::new(POWERCAP)),
        runtimes,
        offloading: Offloading::find(&loader),
        mpi: InstalledMpi::find(&loader),
        program,
        problems,
    };

    let width = message::columns(&streams::stdout());
    if arguments.answer.is_json() {
        arguments.answer.print(&WithSchema::new(&report))?;
    } else {
        let mut stdout = streams::text();
        let mut text = Vec::new();
        report.write(&mut text)?;
        let text = message::folded(&String::from_utf8_lossy(&text), width, None);
        write!(stdout, "{text}")?;
        stdout.flush()?;
    }
    let refused = report.program.as_ref().is_some_and(|verdict| verdict.diagnosis.traceable == Traceable::No);
    Ok(if refused || !report.problems.is_empty() { Outcome::Findings } else { Outcome::Success })
}

fn examine(path: PathBuf, tool: &Path) -> Runtime {
    let answer = if openmp_runtime::has_tools_interface(&path) {
        match probe::ask(&path, tool) {
            Ok(grants) => Answer::Grants(Box::new(grants)),
            Err(error) => Answer::Failed { error },
        }
    } else {
        Answer::NoToolsInterface
    };
    Runtime { vendor: openmp_runtime::known(&path).map_or("unknown", |runtime| runtime.name), path, answer }
}

/// The programs of a command, as `record` sees them.
fn programs_of(command: &[OsString], loader: &Loader) -> Result<Vec<Program>> {
    let programs = Program::of_command(command, loader);
    let first = &command[0];
    // Without it, those among its arguments are not started.
    match Program::find(first, loader) {
        Some(_) => Ok(programs),
        None => Err(Failure::new(format!("{}: no such program", first.display()))
            .hint("give the path of the program, for example ./app")),
    }
}

/// The verdict on the first program with OpenMP, behind launchers; else on the last that is named.
fn verdict_of(programs: &[Program], arguments: &Doctor, loader: &Loader) -> Result<Verdict> {
    let mut with_openmp = programs.iter().filter(|program| program.has_openmp());
    let program = with_openmp.next().or(programs.last()).expect("there is one");
    let options = Libgomp { libomp: arguments.libomp.clone(), ..Libgomp::default() };
    // Without the tracer's library there is no adapter beside it.
    let library = find_tracer::find(arguments.tool.as_deref()).unwrap_or_default();
    let decision = libgomp::decide(&options, &library, programs, loader)?;
    let mut diagnosis = Diagnosis::of(program, &decision);
    if matches!(diagnosis.traceable, Traceable::Yes | Traceable::Observed)
        && let Some((reason, remedy)) = diagnosis::refusal_by_own_tool(program, false, loader)
    {
        diagnosis = Diagnosis { traceable: Traceable::No, reason, remedy: Some(remedy) };
    }
    let words = arguments.program.iter().map(|word| message::shell_word(word).to_string());
    let command = format!("omptrace record -- {}", words.collect::<Vec<_>>().join(" "));
    Ok(Verdict {
        command: (diagnosis.traceable != Traceable::No).then_some(command),
        path: program.path.clone(),
        diagnosis,
    })
}

/// The answers of the runtimes that loaded the tracer.
fn grants(runtimes: &[Runtime]) -> impl Iterator<Item = &Grants> {
    runtimes.iter().filter_map(|runtime| match &runtime.answer {
        Answer::Grants(grants) => Some(&**grants),
        Answer::NoToolsInterface | Answer::Failed { .. } => None,
    })
}

/// The counters that the tracer found, whichever runtime loaded it.
fn counting(runtimes: &[Runtime]) -> Option<Counting> {
    let mut found = grants(runtimes).map(|grants| grants.counting.clone());
    found.find(|counting| *counting != Counting::default())
}

/// No runtime with a tools interface could load the tracer, or none is there. libgomp counts, where the adapter for it does.
fn refused_by_all(runtimes: &[Runtime], tool: &Path) -> Option<Remark> {
    let has_adapter = libgomp::adapter(tool).is_ok();
    let grants = |runtime: &Runtime| match runtime.answer {
        Answer::NoToolsInterface => has_adapter && openmp_runtime::is_libgomp(&runtime.path),
        ref answer => matches!(answer, Answer::Grants(_)),
    };
    (!runtimes.iter().any(grants)).then(|| Remark {
        what: "no OpenMP runtime that loads the tracer was found".to_owned(),
        remedy: INSTALL_LIBOMP.to_owned(),
    })
}

/// The folders that a trace needs room in.
fn full_disks() -> Vec<Remark> {
    /// A thread's memory is 1 MiB, and a busy program writes some MB per second.
    const LITTLE_BYTES: u64 = 256 << 20;

    let output = find_tracer::variable("OMPTRACE_OUTPUT").map(PathBuf::from);
    let output = output
        .as_deref()
        .and_then(Path::parent)
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_owned();
    let spool = find_tracer::variable("OMPTRACE_SPOOL").map(PathBuf::from);
    let mut remarks = Vec::new();
    for (folder, purpose) in
        std::iter::once((output, "traces")).chain(spool.map(|spool| (spool, "the spool")))
    {
        // A pattern's folder is not known yet.
        if folder.as_os_str().as_encoded_bytes().contains(&b'%') {
            continue;
        }
        match free_space::free_bytes(&folder) {
            Ok(free) if free >= LITTLE_BYTES => {}
            Ok(free) => remarks.push(Remark {
                what: format!("{} has only {} free for {purpose}", folder.display(), message::bytes(free)),
                remedy: "free some space, or choose another directory (record -o, --spool)".to_owned(),
            }),
            Err(error) => remarks.push(Remark {
                what: format!("{} cannot be used for {purpose}: {error}", folder.display()),
                remedy: "choose another directory (record -o, --spool)".to_owned(),
            }),
        }
    }
    remarks
}

fn notes(loader: &Loader, tool: &Path) -> Vec<Remark> {
    /// The size that containers give by default.
    const SMALL_BYTES: u64 = 64 << 20;

    let mut notes = Vec::new();
    notes.extend(processor::THIS.limits().map(|what| Remark { what, remedy: INSTALL_LIBOMP.to_owned() }));
    let namesakes = loader
        .libraries(|name| name.starts_with(find_tracer::LIBRARY))
        .into_iter()
        .filter(|path| path != tool);
    for path in namesakes {
        notes.push(Remark {
            what: format!(
                "{} has the same file name as the tracer's library (Extrae, for example, has a library of this name)",
                path.display()
            ),
            remedy: format!(
                "give the full path in OMP_TOOL_LIBRARIES, as `omptrace env` does: {}",
                tool.display()
            ),
        });
    }
    notes.extend(other_tools());
    if let Ok(free) = free_space::free_bytes(Path::new("/dev/shm"))
        && free <= SMALL_BYTES
    {
        notes.push(Remark {
            what: format!("/dev/shm has only {} free", message::bytes(free)),
            remedy: "leave the spool next to the trace (do not use --spool /dev/shm)".to_owned(),
        });
    }
    notes
}

/// Who has the runtime's one place for a tool, and who comes behind.
fn other_tools() -> Vec<Remark> {
    let listed = find_tracer::variable("OMP_TOOL_LIBRARIES");
    let named = find_tracer::variable("OMPTRACE_NEXT_TOOL");
    let remark = |what, remedy: &str| Remark { what, remedy: remedy.to_owned() };
    if !diagnosis::passes_on() {
        let what =
            "OMPTRACE_CHAIN=0 is set, so the tracer is the only tool, and no other tool receives events";
        let remedy = "unset OMPTRACE_CHAIN to let the tracer pass events on to another tool";
        return vec![remark(what.to_owned(), remedy)];
    }
    let mut remarks = Vec::new();
    if let Some(listed) = listed {
        remarks.push(remark(
            format!(
                "OMP_TOOL_LIBRARIES={} is set; a runtime uses only the first tool in this list that accepts the runtime",
                listed.display()
            ),
            match named {
                Some(_) => "`omptrace record` puts the tracer first in this list; the tracer passes events on to the tool in OMPTRACE_NEXT_TOOL, not to the tools in the list",
                None => "`omptrace record` puts the tracer first in this list; the tracer passes events on to the first of these tools that accepts the runtime",
            },
        ));
    }
    if let Some(named) = named {
        let is_missing = named.as_encoded_bytes().contains(&b'/') && !Path::new(&named).exists();
        remarks.push(remark(
            format!(
                "OMPTRACE_NEXT_TOOL={} is set, so the tracer passes events on to this tool",
                named.display()
            ),
            match is_missing {
                true => "this file does not exist: give the path of the tool's library",
                false => "unset OMPTRACE_NEXT_TOOL to make the tracer the only tool",
            },
        ));
    }
    remarks
}

impl Report {
    /// For people.
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "Tracer: {}", self.tool.display())?;
        writeln!(out, "\nOpenMP runtimes on this machine ({}):", env::consts::ARCH)?;
        if self.runtimes.is_empty() {
            writeln!(out, "  none")?;
        }
        for runtime in &self.runtimes {
            runtime.write(out)?;
        }
        if let Some(counting) = &self.counters {
            writeln!(out, "\nCounters per thread (record --counters):")?;
            for line in counting.lines() {
                writeln!(out, "  {line}")?;
            }
        }
        if let Some(clock) = &self.clock {
            writeln!(out, "\nRecording:\n  {}", clock.line())?;
        }
        writeln!(out, "\nEnergy counters of the machine:\n  {}", self.energy.line())?;
        let offloading = self.offloading.lines();
        if !offloading.is_empty() {
            writeln!(out, "\nDevices, and libraries that offload to them:")?;
        }
        for line in offloading {
            writeln!(out, "{line}")?;
        }
        let mpi = self.mpi.lines();
        if !mpi.is_empty() {
            writeln!(out, "\nMPI:")?;
        }
        for line in mpi {
            writeln!(out, "  {line}")?;
        }
        if let Some(verdict) = &self.program {
            verdict.write(out)?;
        }
        for (title, remarks) in [("Problems", &self.problems), ("Notes", &self.notes)] {
            if !remarks.is_empty() {
                writeln!(out, "\n{title}:")?;
            }
            for remark in remarks {
                writeln!(out, "  {}\n      {}", remark.what, remark.remedy)?;
            }
        }
        Ok(())
    }
}

impl Runtime {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "  {} ({})", self.path.display(), self.vendor)?;
        match &self.answer {
            Answer::Grants(grants) => {
                let all = grants.granted.len() + grants.refused.len();
                writeln!(
                    out,
                    "      {}; tools interface {}, {} of {all} callbacks",
                    grants.version,
                    grants.dialect,
                    grants.granted.len()
                )?;
                if !grants.refused.is_empty() {
                    writeln!(out, "      never: {}", grants.refused.join(", "))?;
                }
                Ok(())
            }
            Answer::NoToolsInterface => {
                let remark =
                    openmp_runtime::known(&self.path).map_or("", |runtime| runtime.without_interface);
                writeln!(out, "      no tools interface{remark}")
            }
            Answer::Failed { error } => writeln!(out, "      FAILED: {error}"),
        }
    }
}

impl Verdict {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let verdict = match self.diagnosis.traceable {
            Traceable::Yes => "can be traced",
            Traceable::Observed => "can be traced on GCC's runtime",
            Traceable::Replaced => "can be traced on LLVM's runtime",
            Traceable::Unknown => "the file does not show whether the program can be traced",
            Traceable::No => "cannot be traced",
        };
        writeln!(out, "\nProgram {}: {verdict}", self.path.display())?;
        writeln!(out, "  {}", self.diagnosis.reason)?;
        if let Some(remedy) = &self.diagnosis.remedy {
            writeln!(out, "  {remedy}")?;
        }
        if let Some(command) = &self.command {
            writeln!(out, "  {command}")?;
        }
        Ok(())
    }
}
