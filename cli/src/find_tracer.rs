//! The tracer's library, and the variables that make an OpenMP runtime load it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::arguments::{OnFull, Tracer};
use crate::failure::{Failure, Result};

/// The library's file name.
pub(crate) const LIBRARY: &str = "libomptrace.so";

/// The name of a trace where the user gives none.
pub(crate) const USUAL_NAME: &str = "%e.%p.omptrace";

/// Variables to set for a program.
pub(crate) type Variables = Vec<(&'static str, OsString)>;

/// The absolute path of the tracer's library: the one named, else beside this program, else in `../lib`.
///
/// # Errors
/// It is not there, or its path cannot be passed to a runtime.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => named_tool(path)?,
        None => installed()?,
    };
    // The separator of OMP_TOOL_LIBRARIES (OpenMP 5.2, section 21.3.2) cannot be quoted.
    if path.as_os_str().as_encoded_bytes().contains(&b':') {
        return Err(Failure::new(format!(
            "{} has a colon in its path, which OMP_TOOL_LIBRARIES cannot hold",
            path.display()
        ))
        .hint("copy libomptrace.so to another folder and name it with --tool"));
    }
    Ok(path)
}

fn named_tool(path: &Path) -> Result<PathBuf> {
    let what = || format!("--tool {}", path.display());
    let found = fs::canonicalize(path).map_err(|error| Failure::because(what(), &error))?;
    if !found.is_file() {
        return Err(
            Failure::new(format!("{} is no file", what())).hint(format!("name {LIBRARY} itself"))
        );
    }
    Ok(found)
}

fn installed() -> Result<PathBuf> {
    let program = env::current_exe()
        .and_then(fs::canonicalize)
        .map_err(|error| Failure::because("cannot determine the path of this program", &error))?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    places
        .iter()
        .find_map(|place| fs::canonicalize(place).ok())
        .ok_or_else(|| {
            Failure::new(format!(
                "{LIBRARY} is neither in {} nor in ../lib from there",
                folder.display()
            ))
            .hint("name it with --tool PATH; `cargo build -p omptrace-tracer` builds it")
        })
}

/// The tracer's own variables for these options.
///
/// # Errors
/// The output's folder does not exist.
pub(crate) fn settings(options: &Tracer) -> Result<Variables> {
    let mut variables = Variables::new();
    if let Some(output) = output(options)? {
        variables.push(("OMPTRACE_OUTPUT", output));
    }
    let on_full = options.on_full.map(|action| match action {
        OnFull::Write => "write",
        OnFull::Drop => "drop",
    });
    let texts = [
        ("OMPTRACE_EVENTS", options.events.as_deref()),
        ("OMPTRACE_MODE", options.flight.as_ref().map(|_| "flight")),
        (
            "OMPTRACE_BUFFER",
            options.flight.as_deref().or(options.buffer.as_deref()),
        ),
        ("OMPTRACE_ON_FULL", on_full),
        ("OMPTRACE_COMPRESS", options.compress.as_deref()),
    ];
    for (name, text) in texts {
        variables.extend(text.map(|text| (name, OsString::from(text))));
    }
    if let Some(spool) = &options.spool {
        let spool = fs::canonicalize(spool)
            .map_err(|error| Failure::because(format!("--spool {}", spool.display()), &error))?;
        if !spool.is_dir() {
            return Err(Failure::new(format!(
                "--spool {} is no folder",
                spool.display()
            )));
        }
        variables.push(("OMPTRACE_SPOOL", spool.into_os_string()));
    }
    Ok(variables)
}

/// The output's pattern as an absolute path: a program may go to another folder before OpenMP starts.
fn output(options: &Tracer) -> Result<Option<OsString>> {
    let Some(output) = &options.output else {
        return Ok(None);
    };
    let names_a_folder = output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/");
    let output = if names_a_folder {
        output.join(USUAL_NAME)
    } else {
        output.clone()
    };
    let folder = output.parent().unwrap_or(Path::new(""));
    let is_pattern = folder.as_os_str().as_encoded_bytes().contains(&b'%');
    if !folder.as_os_str().is_empty() && !is_pattern && !folder.is_dir() {
        return Err(Failure::new(format!(
            "there is no folder {} for the trace",
            folder.display()
        ))
        .hint(format!(
            "mkdir -p {}",
            crate::message::shell_word(folder.as_os_str())
        )));
    }
    Ok(Some(absolute_pattern(&output)?))
}

/// The pattern below the current folder, whose own percent signs are no pattern's.
pub(crate) fn absolute_pattern(pattern: &Path) -> Result<OsString> {
    if pattern.is_absolute() {
        return Ok(pattern.as_os_str().to_owned());
    }
    let folder = env::current_dir()
        .map_err(|error| Failure::because("cannot determine the current folder", &error))?;
    let mut absolute = Vec::new();
    for byte in folder.as_os_str().as_bytes() {
        absolute.push(*byte);
        if *byte == b'%' {
            absolute.push(*byte);
        }
    }
    Ok(PathBuf::from(OsString::from_vec(absolute))
        .join(pattern)
        .into_os_string())
}

/// `first`, then what the variable `name` holds already, separated by colons.
pub(crate) fn prepended<'a>(first: impl IntoIterator<Item = &'a Path>, name: &str) -> OsString {
    let first = first.into_iter().map(|path| path.as_os_str().to_owned());
    let list: Vec<OsString> = first.chain(variable(name)).collect();
    list.join(OsStr::new(":"))
}

/// The value of `name`, if it is set and not empty.
pub(crate) fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
