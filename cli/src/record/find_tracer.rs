//! The tracer's library, and the environment variables that make an OpenMP runtime load it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use omptrace_settings::Setting;
use omptrace_settings::value::Kind;

use crate::options::shared::Tracer;
use crate::output::failure::{Failure, Result};

/// The library's file name.
pub(crate) const LIBRARY: &str = "libomptrace.so";

/// The default name of a trace.
pub(crate) fn usual_name() -> &'static str {
    Setting::of("OMPTRACE_OUTPUT").map_or("", |setting| setting.default)
}

/// Variables to set for a program.
pub(crate) type Variables = Vec<(&'static str, OsString)>;

/// The absolute path of the tracer's library: the given one, otherwise next to this program, otherwise in `../lib`.
///
/// # Errors
/// The library does not exist, or its path cannot be passed to a runtime.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => named_tool(path)?,
        None => installed()?,
    };
    // The separator of OMP_TOOL_LIBRARIES (OpenMP 5.2, section 21.3.2) cannot be quoted.
    if path.as_os_str().as_encoded_bytes().contains(&b':') {
        return Err(Failure::new(format!(
            "the path {} contains a colon, which OMP_TOOL_LIBRARIES does not allow",
            path.display()
        ))
        .hint("copy libomptrace.so to another directory and give its path with --tool"));
    }
    Ok(path)
}

/// The library that records external waits, next to the tracer's.
///
/// # Errors
/// The library does not exist.
pub(crate) fn waits(tracer: &Path) -> Result<PathBuf> {
    let path = tracer.with_file_name("libomptrace_waits.so");
    if path.is_file() {
        return Ok(path);
    }
    Err(Failure::new(format!("--waits: {} does not exist", path.display())).hint(
        "to build this file and install it next to the tracer's library, run cargo xtask install; to only build it, run cargo build -p omptrace-waits",
    ))
}

fn named_tool(path: &Path) -> Result<PathBuf> {
    let what = || format!("--tool {}", path.display());
    let found = fs::canonicalize(path).map_err(|error| Failure::because(what(), &error))?;
    if !found.is_file() {
        return Err(Failure::new(format!("{} is not a file", what()))
            .hint(format!("give the path of {LIBRARY} itself")));
    }
    Ok(found)
}

fn installed() -> Result<PathBuf> {
    let program = env::current_exe()
        .and_then(fs::canonicalize)
        .map_err(|error| Failure::because("cannot determine the path of omptrace itself", &error))?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    // Linux packages install it in a directory of its own, because it is not a library to link with.
    let places = ["", "../lib", "../lib/omptrace"].map(|place| folder.join(place).join(LIBRARY));
    places
        .iter()
        .find_map(|place| fs::canonicalize(place).ok())
        .ok_or_else(|| {
            Failure::new(format!(
                "{LIBRARY} is neither in the directory {} nor in ../lib relative to this directory",
                folder.display()
            ))
            .hint(
                "cargo install installs only the program omptrace, not this library: install a release (an archive, wheel or package), run `cargo xtask install` in the source directory, or give the path of the library with --tool PATH",
            )
        })
}

/// The tracer's own variables for these options.
///
/// # Errors
/// A directory does not exist.
pub(crate) fn settings(options: &Tracer) -> Result<Variables> {
    let mut variables = Variables::new();
    for (setting, value) in &options.settings.0 {
        let value = match setting.kind {
            Kind::Pattern => output(Path::new(value))?,
            Kind::Folder => folder(setting, Path::new(value))?,
            Kind::Text | Kind::Choice(_) | Kind::Events | Kind::Patterns => value.clone(),
        };
        variables.push((setting.variable, value));
    }
    if let Some(memory) = &options.flight {
        variables.push(("OMPTRACE_MODE", "flight".into()));
        variables.push(("OMPTRACE_BUFFER", memory.into()));
    }
    if options.no_annotation_text {
        variables.push(("OMPTRACE_ANNOTATION_TEXT", "0".into()));
    }
    Ok(variables)
}

/// The absolute path of the directory given for a setting.
fn folder(setting: &Setting, path: &Path) -> Result<OsString> {
    let option = setting.option.map_or(setting.variable, |option| option.long);
    let given = format!("--{option} {}", path.display());
    let found = fs::canonicalize(path).map_err(|error| Failure::because(&given, &error))?;
    if !found.is_dir() {
        return Err(Failure::new(format!("{given} is not a directory")));
    }
    Ok(found.into_os_string())
}

/// The output's pattern as an absolute path, because the program may change its directory before OpenMP starts. Creates
/// the output's directory up to the first part that depends on the process, which the tracer creates.
fn output(output: &Path) -> Result<OsString> {
    let names_a_folder = output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/");
    let output = if names_a_folder { output.join(usual_name()) } else { output.to_owned() };
    let folder = output.parent().unwrap_or(Path::new(""));
    let is_fixed = |part: &Component<'_>| !part.as_os_str().as_encoded_bytes().contains(&b'%');
    let fixed: PathBuf = folder.components().take_while(is_fixed).collect();
    if !fixed.as_os_str().is_empty() && !fixed.is_dir() {
        fs::create_dir_all(&fixed).map_err(|error| {
            let what = format!("cannot create the directory {} for the trace", fixed.display());
            Failure::because(what, &error).hint("choose another location with -o")
        })?;
    }
    absolute_pattern(&output)
}

/// The pattern below the current directory, in which percent signs are escaped.
pub(crate) fn absolute_pattern(pattern: &Path) -> Result<OsString> {
    if pattern.is_absolute() {
        return Ok(pattern.as_os_str().to_owned());
    }
    let folder = env::current_dir()
        .map_err(|error| Failure::because("cannot determine the current directory", &error))?;
    let mut absolute = Vec::new();
    for byte in folder.as_os_str().as_bytes() {
        absolute.push(*byte);
        if *byte == b'%' {
            absolute.push(*byte);
        }
    }
    Ok(PathBuf::from(OsString::from_vec(absolute)).join(pattern).into_os_string())
}

/// `first`, followed by the current value of the variable `name`, separated by colons.
pub(crate) fn prepended<'a>(first: impl IntoIterator<Item = &'a Path>, name: &str) -> OsString {
    let first = first.into_iter().map(|path| path.as_os_str().to_owned());
    let list: Vec<OsString> = first.chain(variable(name)).collect();
    list.join(OsStr::new(":"))
}

/// The value of `name`, if it is set and not empty.
pub(crate) fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
