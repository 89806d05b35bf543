//! `omptrace convert`: one timeline of all inputs, in a format of choice.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use omptrace_trace_format::Reader;
use omptrace_trace_format::block::FILE_MAGIC;
use omptrace_viewer_export::{ConvertOptions, Report, convert, symbols};
use tempfile::NamedTempFile;

use crate::cli::arguments::Convert;
use crate::cli::failure::{Failure, Outcome, Result};
use crate::cli::inputs;
use crate::cli::progress;
use crate::cli::words;

/// Converts the inputs.
///
/// # Errors
/// An input cannot be read, or the output not be written.
pub(crate) fn run(arguments: &Convert) -> Result<Outcome> {
    let readers = inputs::open_all(&arguments.inputs)?;
    let output = match &arguments.output {
        Some(path) => path.clone(),
        None => arguments.inputs[0].with_extension(arguments.to.extension),
    };
    let target = Target::open(&output, &readers)?;
    let failed =
        |error: io::Error| Failure::because(format!("cannot write {}", output.display()), &error);

    let readers: Vec<&Reader> = readers.iter().collect();
    let options = ConvertOptions {
        gzip: output
            .extension()
            .is_some_and(|extension| extension == "gz"),
        symbols: symbols::Options {
            debug_dirs: arguments.debug_dirs.debug_dir.clone(),
        },
    };
    let bar = progress::events("converting", about_events(&readers));
    let writer = target.writer().map_err(failed)?;
    let report = convert(&readers, arguments.to, &options, writer, &mut |events| {
        bar.set_position(events);
    });
    bar.finish_and_clear();
    let report = report.map_err(failed)?;
    if let Some(bytes) = target.finish().map_err(failed)? {
        words::note(&format!("{}: {}", output.display(), words::bytes(bytes)));
    }
    tell(&report);
    Ok(Outcome::Success)
}

/// How many events there are: the files tell bytes, and most events take eight to ten.
fn about_events(readers: &[&Reader]) -> u64 {
    const USUAL_BYTES: u64 = 9;

    readers
        .iter()
        .map(|reader| reader.summary().event_bytes / USUAL_BYTES)
        .sum()
}

/// What is missing in the timeline, or was mended.
fn tell(report: &Report) {
    for process in &report.processes {
        for note in process.notes() {
            words::note(&format!("{}: {note}", process.name));
        }
    }
}

/// Where the output goes.
enum Target {
    Stdout,
    /// A pipe or a device: written as it comes.
    Special(PathBuf),
    /// A file: written under another name, and given its own when it is complete.
    File {
        unfinished: NamedTempFile,
        path: PathBuf,
    },
}

impl Target {
    fn open(path: &Path, inputs: &[Reader]) -> Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        let failed = |error: io::Error| {
            Failure::because(format!("cannot write {}", path.display()), &error)
                .hint("name another file with -o")
        };
        match fs::metadata(path) {
            Ok(existing) if existing.is_dir() => {
                return Err(Failure::new(format!("{} is a folder", path.display()))
                    .hint("name a file with -o"));
            }
            Ok(existing) if !existing.is_file() => return Ok(Target::Special(path.to_owned())),
            Ok(_) if is_trace(path) || is_input(path, inputs) => {
                return Err(Failure::new(format!(
                    "{} is a trace, and will not be overwritten",
                    path.display()
                ))
                .hint("name another file with -o"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // Of a symbolic link, the file behind it is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Readable as the user's other files are: the umask is applied.
        let unfinished = tempfile::Builder::new()
            .prefix(".omptrace-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(failed)?;
        Ok(Target::File { unfinished, path })
    }

    fn writer(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Target::Stdout => Box::new(io::stdout()),
            Target::Special(path) => Box::new(File::options().write(true).open(path)?),
            Target::File { unfinished, .. } => Box::new(unfinished.as_file().try_clone()?),
        })
    }

    /// Gives the file its name; returns its size.
    fn finish(self) -> io::Result<Option<u64>> {
        match self {
            Target::Stdout | Target::Special(_) => Ok(None),
            Target::File { unfinished, path } => {
                let file = unfinished.persist(path).map_err(|error| error.error)?;
                Ok(Some(file.metadata()?.len()))
            }
        }
    }
}

fn is_trace(path: &Path) -> bool {
    let mut start = [0; FILE_MAGIC.len()];
    File::open(path)
        .is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == FILE_MAGIC)
}

fn is_input(path: &Path, inputs: &[Reader]) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    inputs
        .iter()
        .any(|input| identity(input.path()) == identity(path))
}
