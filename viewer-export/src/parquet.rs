//! The options and files of tables in Parquet files.

use std::io;
use std::path::Path;

use omptrace_columns::{self as columns, SCHEMA_FILE};
use omptrace_timeline::Report;
use omptrace_trace_format::Reader;

use crate::format::convert_options::ConvertOptions;
use crate::format::options::{FolderParts, FormatOption, ON};

/// The options of `convert` for tables.
pub(crate) const OPTIONS: &[FormatOption] = &[RUN, SUMS_ONLY, RAW_EVENTS];

const RUN: FormatOption = FormatOption {
    name: "run",
    value_name: "NAME",
    values: &[],
    default: "",
    help: "the name of the run in the data set. The name may contain letters, digits, `.`, `-` and `_`, but must not look like a number or a date [default: the name of the first trace and its start time, in seconds since 1970]",
};

const SUMS_ONLY: FormatOption = FormatOption {
    name: "sums-only",
    value_name: "",
    values: &[],
    default: "",
    help: "write only the tables of processes, threads and places, and the tables that contain sums; leave out the timeline",
};

const RAW_EVENTS: FormatOption = FormatOption {
    name: "raw-events",
    value_name: "",
    values: &[],
    default: "",
    help: "also write the runtime's events as they were recorded, without interpreting them",
};

/// The files of a data set.
pub(crate) const PARTS: FolderParts =
    FolderParts { anchor: SCHEMA_FILE, files: &["_SUCCESS"], folders: &[("table=", &["parquet"])] };

/// Writes the data set of `inputs` into `folder`.
pub(crate) fn export(
    inputs: &[&Reader],
    options: &ConvertOptions,
    folder: &Path,
    progress: &mut (dyn FnMut(u64) + Send),
) -> io::Result<Report> {
    let run = options.format.given(&RUN);
    if let Some(run) = run {
        columns::check_run_name(run).map_err(|why| {
            let what = format!("--run {run:?}: {why}");
            io::Error::new(io::ErrorKind::InvalidInput, what)
        })?;
    }
    let options = columns::Options {
        symbols: options.symbols.clone(),
        run: run.map(str::to_owned),
        part: options.part,
        sums_only: options.format.get(&SUMS_ONLY) == ON,
        events: options.format.get(&RAW_EVENTS) == ON,
        chunks: options.chunks,
    };
    columns::export(inputs, &options, folder, progress)
}
