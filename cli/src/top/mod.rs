//! `omptrace top`: a running program, watched from outside.
//!
//! ```text
//! find: PID, directory, nothing --> traces --watch--> snapshots --text, screen--> the user
//! ```

mod find;
mod interact;
mod job;
mod live;
mod screen;
mod text;
mod watch;

use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use omptrace_analysis::answers::SCHEMA;
use omptrace_timeline::WaitingRank;
use serde::Serialize;

use crate::options::shared::DebugDirs;
use crate::options::units;
use crate::output::failure::{Outcome, Result};
use crate::output::json_output::AnswerOptions;
use crate::output::{message, streams};
pub(crate) use live::Live;
use watch::{Choice, Look, Watched};

/// Maximum number of events for a single snapshot, after which no other one is due.
const MAX_EVENTS_OF_ONE_LOOK: usize = 1 << 20;

/// `omptrace top`.
#[derive(Args, Debug)]
#[command(after_help = "\
`top` reads the files to which the tracer writes, so it neither disturbs the program nor needs root privileges. A process is shown only after its first OpenMP construct, because the process has no trace before.

Examples:
  omptrace top                         all traced programs that run here
  omptrace top 4711                    a process and its children, for example `mpirun`
  omptrace top --once app.omptrace     the last second, as text
  omptrace top --once --json 4711      the same as JSON")]
pub(crate) struct Top {
    /// Process id, trace, or directory of traces [default: all traced programs of this user]
    #[arg(value_name = "PID|TRACE")]
    pub(crate) target: Option<PathBuf>,
    /// Print one snapshot and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Length of the time window to show, for example 500ms; for a finished trace, the window is at the end of the run
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::nanoseconds)]
    pub(crate) interval: u64,
    /// Number of threads available to each process [default: the peak number of threads observed]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZero<u32>>,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// How much of the answer.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// The JSON of `--once`.
#[derive(Serialize)]
struct Looks {
    schema: u32,
    processes: Vec<Look>,
    /// The ranks of an MPI job that wait for others, and the ranks of a deadlock.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mpi_waits: Vec<WaitingRank>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mpi_deadlock: Vec<u32>,
}

/// Shows the traces.
///
/// # Errors
/// There is no such trace, or it cannot be read.
pub(crate) fn run(arguments: &Top) -> Result<Outcome> {
    let choice = Choice {
        symbols: arguments.debug_dirs.symbols(),
        interval: Duration::from_nanos(arguments.interval.max(1)),
        threads: arguments.threads,
    };
    let traces = find::traces(arguments.target.as_deref())?;
    let watched = traces.iter().map(|trace| Watched::open(trace));
    let mut watched = watched.collect::<Result<Vec<Watched>>>()?;
    if arguments.once || arguments.answer.is_json() {
        return once(arguments, &choice, &mut watched);
    }
    interact::run(&choice, &mut watched)?;
    Ok(Outcome::Success)
}

fn once(arguments: &Top, choice: &Choice, watched: &mut [Watched]) -> Result<Outcome> {
    for process in &mut *watched {
        process.begin(choice)?;
    }
    if watched.iter().any(Watched::is_running) {
        thread::sleep(choice.interval);
    }
    let looks = watched.iter_mut().map(|process| process.look(choice, MAX_EVENTS_OF_ONE_LOOK));
    let processes = looks.collect::<Result<Vec<Look>>>()?;
    let job = job::read(watched);
    let looks = Looks { schema: SCHEMA, processes, mpi_waits: job.waiting, mpi_deadlock: job.deadlock };
    if arguments.answer.is_json() {
        arguments.answer.print(&looks)?;
    } else {
        let mut stdout = streams::text();
        let width = message::columns(&streams::stdout());
        let rows = arguments.answer.rows().unwrap_or(text::USUAL_ROWS);
        for (number, look) in looks.processes.iter().enumerate() {
            if number > 0 {
                writeln!(stdout)?;
            }
            write!(stdout, "{}", text::of(look, width, rows))?;
        }
        if !job.notes.is_empty() {
            writeln!(stdout)?;
        }
        for note in job.notes {
            write!(stdout, "{}", message::folded(&format!("MPI job: {note}\n"), width, Some(2)))?;
        }
        stdout.flush()?;
    }
    Ok(Outcome::Success)
}
