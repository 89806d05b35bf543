//! Paths as words of commands that people copy.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::input::inputs;
use crate::output::message;

/// A trace as an argument of a command to be typed: no option, whatever it is called.
pub(crate) fn typed(trace: &Path) -> String {
    let near = message::near(trace);
    if near.as_os_str().as_encoded_bytes().starts_with(b"-") {
        message::shell_path(&Path::new(".").join(near))
    } else {
        message::shell_path(trace)
    }
}

/// Several traces as arguments of a command to be typed: their directory where it has no others, a pattern where that matches
/// no others, else all of them.
pub(crate) fn typed_all(traces: &[PathBuf]) -> String {
    let names = || traces.iter().map(|trace| typed(trace)).collect::<Vec<_>>().join(" ");
    if traces.len() < 2 {
        return names();
    }
    let Some(inside) = common_folder(traces).and_then(|folder| inputs::traces(&[folder.to_owned()]).ok())
    else {
        return names();
    };
    if inside.len() == traces.len() {
        return folder_of(traces).unwrap_or_else(names);
    }
    pattern(traces, &inside).unwrap_or_else(names)
}

/// The directory of all traces as an argument to be typed; `None` where there are several.
pub(crate) fn folder_of(traces: &[PathBuf]) -> Option<String> {
    let folder = common_folder(traces)?;
    let is_here = std::env::current_dir().is_ok_and(|here| here == folder);
    match is_here {
        true => Some(".".to_owned()),
        false => Some(typed(folder) + "/"),
    }
}

fn common_folder(traces: &[PathBuf]) -> Option<&Path> {
    let (first, rest) = traces.split_first()?;
    let folder = first.parent()?;
    rest.iter().all(|trace| trace.parent() == Some(folder)).then_some(folder)
}

/// `app.*.omptrace`, where that matches these traces of those in their directory, and no others.
fn pattern(traces: &[PathBuf], inside: &[PathBuf]) -> Option<String> {
    const EXTENSION: &str = ".omptrace";

    let names: Vec<&str> =
        traces.iter().map(|trace| trace.file_name().and_then(OsStr::to_str)).collect::<Option<_>>()?;
    let first = names.first()?;
    let common = names.iter().skip(1).fold(first.len(), |common, name| {
        let same = first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        common.min(same)
    });
    let begin = &first[..first.floor_char_boundary(common)];
    let matches = |path: &&PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.len() >= begin.len() + EXTENSION.len() && name.starts_with(begin) && name.ends_with(EXTENSION)
    };
    let all_end_so =
        names.iter().all(|name| name.len() >= begin.len() + EXTENSION.len() && name.ends_with(EXTENSION));
    if begin.is_empty() || !all_end_so || inside.iter().filter(matches).count() != names.len() {
        return None;
    }
    Some(typed(&traces[0].with_file_name(begin)) + "*" + EXTENSION)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn several_traces_are_one_argument_where_that_names_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(&folder).unwrap();
        let traces: Vec<PathBuf> = (10..15).map(|rank| folder.join(format!("app.{rank}.omptrace"))).collect();
        traces.iter().for_each(|trace| fs::write(trace, "").unwrap());
        let here = folder.display();
        assert_eq!(typed_all(&traces), format!("{here}/"));
        assert_eq!(typed_all(&traces[..2]), format!("{here}/app.10.omptrace {here}/app.11.omptrace"));
        fs::write(folder.join("other.omptrace"), "").unwrap();
        assert_eq!(typed_all(&traces), format!("{here}/app.1*.omptrace"));
        fs::write(folder.join("app.1.omptrace"), "").unwrap();
        let names: Vec<String> = traces.iter().map(|trace| trace.display().to_string()).collect();
        assert_eq!(typed_all(&traces), names.join(" "));
        fs::remove_dir_all(&folder).unwrap();
    }
}
