//! Inputs: traces, and directories of them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use omptrace_trace_format::{OpenError, Reader};

use crate::output::failure::{Failure, Result};
use crate::system::fd_limit;
use crate::system::folders::files_in;

/// The traces named by the inputs: a file is a trace, and a directory stands for all files `*.omptrace` in it, sorted
/// by name. Pipes and devices in a directory are ignored, because nobody named them and they may have no end.
///
/// # Errors
/// A directory cannot be read, or contains no traces.
pub(crate) fn traces(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let is_trace = |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "omptrace");
    let mut traces = Vec::new();
    for input in inputs {
        if input.is_dir() {
            // `files_in` returns nothing for a directory that cannot be read.
            fs::read_dir(input).map_err(|error| {
                Failure::because(format!("cannot read the directory {}", input.display()), &error)
            })?;
            let mut inside = files_in(input, is_trace);
            inside.retain(|path| fs::metadata(path).map_or(true, |found| found.is_file()));
            if inside.is_empty() {
                return Err(Failure::new(format!("no *.omptrace files in {}", input.display())));
            }
            traces.extend(inside);
        } else {
            traces.push(input.clone());
        }
    }
    Ok(traces)
}

/// Opens a trace.
///
/// # Errors
/// The trace does not exist, or the file is not a trace. Damage is not an error.
pub(crate) fn open(trace: &Path) -> Result<Reader> {
    Reader::open(trace).map_err(|error| {
        let failure = Failure::because(format!("cannot read {}", trace.display()), &error);
        let OpenError::Io(error) = error else {
            return failure;
        };
        if error.kind() == ErrorKind::NotSeekable {
            return failure.hint("a trace cannot be read from a pipe: write the trace to a file first");
        }
        match error.raw_os_error() {
            Some(libc::EMFILE) => failure
                .hint("omptrace keeps all traces open at the same time: give fewer traces, or raise the limit on open files (ulimit -Hn)"),
            _ => failure,
        }
    })
}

/// The traces named by the inputs, one input after another: see [`traces`].
pub(crate) fn each(inputs: &[PathBuf]) -> impl Iterator<Item = Result<PathBuf>> {
    inputs.iter().flat_map(|input| {
        traces(std::slice::from_ref(input))
            .map_or_else(|failure| vec![Err(failure)], |traces| traces.into_iter().map(Ok).collect())
    })
}

/// Collects errors of inputs, so that one unreadable input does not prevent the others from being processed.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    inputs: usize,
    failures: Vec<Failure>,
}

impl Tally {
    /// Counts an input, and returns it if it is readable.
    pub(crate) fn take<T>(&mut self, input: Result<T>) -> Option<T> {
        self.inputs += 1;
        input.map_err(|failure| self.failures.push(failure)).ok()
    }

    /// # Errors
    /// At least one input could not be read.
    pub(crate) fn finish(mut self) -> Result<()> {
        let unreadable = self.failures.len();
        match self.failures.pop() {
            None => Ok(()),
            Some(failure) if self.inputs == 1 => Err(failure),
            Some(last) => {
                for failure in self.failures.into_iter().chain([last]) {
                    failure.report();
                }
                let what = format!("{unreadable} of {} inputs cannot be read", self.inputs);
                Err(Failure::new(what))
            }
        }
    }
}

/// Opens all traces named by the inputs.
///
/// # Errors
/// Like [`traces`] and [`open`].
pub(crate) fn open_all(inputs: &[PathBuf]) -> Result<Vec<Reader>> {
    let _ = fd_limit::allow_most();
    traces(inputs)?.iter().map(|trace| open(trace)).collect()
}
