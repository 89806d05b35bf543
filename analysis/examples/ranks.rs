//! Makes a job with many ranks from a few real traces, to measure commands that read thousands of traces.
//!
//! ```text
//! cargo run --release -p omptrace-analysis --example ranks -- OUT 10000 app.0.omptrace app.1.omptrace
//! ```
//!
//! The ranks take the events of the given traces in turn. Each has a rank and a process id of its own, and a summary.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use omptrace_analysis::summary::NewSummary;
use omptrace_symbols::{self as symbols, Table};
use omptrace_trace_format::block::{FILE_MAGIC, FileHeader};
use omptrace_trace_format::{InDoubt, Reader, seal};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let usage = "ranks OUT NUMBER TRACE...";
    let out = PathBuf::from(arguments.next().ok_or(usage)?);
    let number: u32 = arguments.next().and_then(|number| number.to_str()?.parse().ok()).ok_or(usage)?;
    let traces: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if traces.is_empty() {
        return Err(usage.into());
    }
    fs::create_dir_all(&out)?;
    for rank in 0..number {
        let of = &traces[rank as usize % traces.len()];
        let trace = out.join(format!("rank.{rank:05}.omptrace"));
        make(of, &trace, rank).map_err(|error| format!("{}: {error}", of.display()))?;
    }
    Ok(())
}

/// Makes the trace of `rank` from a sealed trace.
fn make(of: &Path, trace: &Path, rank: u32) -> Result<(), Box<dyn Error>> {
    let mut bytes = fs::read(of)?;
    let header = FileHeader::decode(&bytes, FILE_MAGIC).map_err(|error| error.to_string())?;
    let header = FileHeader { pid: 10_000 + rank, ..header };
    let encoded = header.encode();
    bytes[..encoded.len()].copy_from_slice(&encoded);
    fs::write(trace, bytes)?;

    let reader = Reader::open(trace)?;
    let process = reader.metadata().process.clone().unwrap_or_default();
    let mut process = serde_json::to_value(process)?;
    process["rank"] = json!(rank);
    process["pid"] = json!(header.pid);
    let names = Table::stored(&reader).to_json();
    drop(reader);
    let additions = json!({ "process": process, symbols::KEY: names });
    seal(trace, additions, InDoubt::Seal, &mut |_, _| ())?;
    let reader = Reader::open(trace)?;
    NewSummary::of(&reader, false)?.write(&reader)?;
    Ok(())
}
