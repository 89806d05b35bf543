//! A data set: the tables of all processes of a job. Each process has files of its own.

use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;

use omptrace_symbols::parallel::{self, in_parallel};
use omptrace_symbols::{self as symbols, Table};
use omptrace_timeline::{KeptArguments, Manner, Report, Timeline, handed_over};
use omptrace_trace_format::Reader;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::events;
use crate::process::{Columns, Folders, Job};
use crate::schema::{SCHEMA_VERSION, TABLES};
use crate::share::{self, Share};
use omptrace_timeline::model::Sink;

/// The file that describes the tables. A directory without this file is not a data set.
pub const SCHEMA_FILE: &str = "_schema.json";

/// Options of an export to tables.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where symbol names are looked up.
    pub symbols: symbols::Options,
    /// The run's name in the data set; [`run_name`] by default.
    pub run: Option<String>,
    /// Writes only one of `n` parts, counted from 1: every `n`-th process. If there are fewer processes than parts,
    /// large processes are divided.
    pub part: Option<(NonZero<usize>, NonZero<usize>)>,
    /// Writes only the tables of sums: `accounting`, `blame` and others.
    pub sums_only: bool,
    /// Also writes the raw events.
    pub events: bool,
    /// Shows each chunk of dynamic and guided loops.
    pub chunks: bool,
}

/// The default name of a run: the name of the first file, and the start of the job.
pub fn run_name(inputs: &[&Reader]) -> String {
    let starts = inputs.iter().map(|reader| reader.clock().start_realtime_ns());
    let start = starts.filter(|start| *start > 0).min();
    let names = inputs.iter().filter_map(|reader| reader.path().file_name());
    let name = names.min().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name = name.replace(|c| !is_plain(c), "_");
    let name = match start {
        Some(start) => format!("{name}-{}", start / 1_000_000_000),
        None => name,
    };
    match check_run_name(&name) {
        Ok(()) => name,
        Err(_) => format!("run-{name}"),
    }
}

/// Checks a run's name. It becomes the value of a Hive partition, whose type readers guess. A name that looks like a
/// number, a date or a truth value would be converted, so that `007` and `7` would be the same run.
/// `__HIVE_DEFAULT_PARTITION__` is NULL.
///
/// # Errors
/// Why the name cannot be used.
pub fn check_run_name(name: &str) -> Result<(), &'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_word = |word: &&str| name.eq_ignore_ascii_case(word);
    let shape: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let is_number = name.parse::<f64>().is_ok()
        || !name.contains(|c: char| c.is_ascii_alphabetic())
        || shape.starts_with("0x")
        || shape.starts_with("0X");
    let is_date =
        ["0000-00-00T", "0000-00-00t", "00000000T", "00000000t"].iter().any(|begin| shape.starts_with(begin));
    if name.is_empty() {
        Err("the name of a run must not be empty")
    } else if !name.chars().all(is_plain) {
        Err("a name may contain only letters, digits, `.`, `-` and `_`")
    } else if ["__HIVE_DEFAULT_PARTITION__", "null", "none"].iter().any(is_word) {
        Err("readers would treat this name as missing")
    } else if is_number || is_date || ["true", "false"].iter().any(is_word) {
        Err(
            "readers would treat this name as a number, a date or a truth value; start it with a word, as in run-7",
        )
    } else {
        Ok(())
    }
}

/// Writes the tables of `inputs` into the existing directory `folder`. Occasionally calls `progress` with the number of
/// events processed so far.
///
/// # Errors
/// The first write error. A damaged input is not an error: the report describes its problems.
pub fn export(
    inputs: &[&Reader],
    options: &Options,
    folder: &Path,
    progress: &mut (dyn FnMut(u64) + Send),
) -> io::Result<Report> {
    let timeline = Timeline::of(inputs).with_messages();
    let (part, parts) = match options.part {
        Some((part, parts)) => (part.get() - 1, parts.get()),
        None => (0, 1),
    };
    let readers = (0..inputs.len()).filter_map(|number| timeline.process(number));
    let bytes: Vec<u64> = readers.map(|(reader, _)| share::size(reader)).collect();
    let shares = share::of_part(&bytes, part, parts);
    let job = Export {
        timeline: &timeline,
        processes: inputs.len(),
        options,
        folder,
        run: match &options.run {
            Some(run) => run.clone(),
            None => run_name(inputs),
        },
        is_alone: shares.len() == 1,
    };
    // Both are under the same lock, because otherwise `progress` could see the sum decrease.
    let progress = Mutex::new((0, progress));
    let reports = in_parallel(shares, |(number, share)| {
        let mut reported = 0;
        job.process(number, share, &mut |events| {
            let more = events - std::mem::replace(&mut reported, events);
            let (done, progress) = &mut *progress.lock();
            *done += more;
            progress(*done);
        })
    });
    let reports = reports.into_iter().collect::<io::Result<Vec<_>>>()?;
    write_schema(folder)?;
    Ok(Report { uncertainty_ns: timeline.uncertainty_ns, ..Report::of_shares(reports) })
}

/// A data set that is being written.
struct Export<'a> {
    timeline: &'a Timeline<'a>,
    processes: usize,
    options: &'a Options,
    folder: &'a Path,
    run: String,
    /// Whether only one process is written.
    is_alone: bool,
}

impl Export<'_> {
    /// Writes the tables of one process, or a share of their rows.
    fn process(&self, number: usize, share: Share, progress: &mut dyn FnMut(u64)) -> io::Result<Report> {
        let folders = Folders { root: self.folder.to_owned(), run: self.run.clone(), process: number, share };
        let job = Job { clock_error_ns: self.timeline.uncertainty_ns, sums_only: self.options.sums_only };
        if self.options.events
            && let Some((reader, start)) = self.timeline.process(number)
        {
            events::write(reader, start, &folders)?;
        }
        let threads = match self.is_alone {
            true => parallel::threads(),
            false => 1,
        };
        let manner = Manner { chunks: self.options.chunks, ahead: threads > 1, ..Manner::default() };
        let symbols = |reader: &Reader| Table::of(reader, &self.options.symbols);
        let mut sink = Box::new(Columns::new(job, folders));
        // With two CPUs, one decodes events and the other does the rest.
        let report = handed_over(vec![&mut *sink], usize::from(threads > 2), KeptArguments::All, |sink| {
            self.timeline.replay(number, self.processes, &symbols, manner, sink, progress)
        });
        sink.finish()?;
        Ok(report)
    }
}

/// Writes the machine-readable description of the tables.
fn write_schema(folder: &Path) -> io::Result<()> {
    let tables: Vec<Value> = TABLES
        .iter()
        .map(|table| {
            let columns = table.columns.iter().map(|column| {
                json!({
                    "name": column.name,
                    "type": column.kind.name(),
                    "nullable": column.is_nullable,
                    "meaning": column.meaning,
                })
            });
            json!({
                "name": table.name,
                "meaning": table.meaning,
                "columns": columns.collect::<Vec<_>>(),
            })
        })
        .collect();
    let schema = json!({ "schema_version": SCHEMA_VERSION, "tables": tables });
    fs::create_dir_all(folder)?;
    let mut file = File::create(folder.join(SCHEMA_FILE))?;
    serde_json::to_writer_pretty(&mut file, &schema)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_names_that_stay_text() {
        for name in ["run-7", "app-1764108000", "8d37020", "a.b_c", "T1", "e5"] {
            assert_eq!(check_run_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "7",
            "007",
            "1.5",
            "1e3",
            "0x1F",
            "inf",
            "NaN",
            "2026-11-28",
            "2026-11-28T07",
            "20261128T070000",
            "true",
            "False",
            "null",
            "None",
            "__HIVE_DEFAULT_PARTITION__",
            "-",
            "a/b",
            "a b",
        ] {
            assert!(check_run_name(name).is_err(), "{name}");
        }
    }
}
