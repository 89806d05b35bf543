//! `cargo xtask growth`: what each kind of growth costs, counted by adding one.
//!
//! A scratch copy of the sources gets a new callback, setting, format and so on, each by the edits in `xtask/growth`. The copy
//! must compile. ARCHITECTURE.md must count as many files as each kind edits.
//!
//! An edit file begins with the first cell of its row in ARCHITECTURE.md. A line `=== FILE` begins the edit of a file. As in
//! a diff, lines that begin with `+` are added, and lines that begin with a space are there already, one after the other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::process::{cargo, command, output, root, run, target};
use crate::result::Result;

/// The crates that must compile: all that a user installs, and the reference runtime.
const CHECKED: &[&str] = &["omptrace-tracer", "omptrace-cli", "ompt-reference-runtime"];

/// The edits of one kind.
struct Growth {
    /// The file with the edits.
    name: String,
    /// The first cell of its row in ARCHITECTURE.md.
    row: String,
    edits: Vec<Edit>,
}

/// The edit of one file.
#[derive(Debug, Default, PartialEq)]
struct Edit {
    file: String,
    /// The lines that are there.
    old: String,
    /// The lines with those that are added.
    new: String,
}

/// Makes the copy, and checks it and the counts.
///
/// # Errors
/// An edit does not fit, the copy does not compile, or a count is wrong.
pub(crate) fn check() -> Result<()> {
    let all = read_all(&root().join("xtask/growth"))?;
    let table = fs::read_to_string(root().join("ARCHITECTURE.md"))?;
    let copy = target().join("growth");
    let mut files = sources()?;
    for growth in &all {
        for edit in &growth.edits {
            let found = files.iter_mut().find(|(path, _)| *path == edit.file);
            match found {
                Some((_, text)) => *text = edited(text, edit).ok_or_else(|| growth.misfit(edit))?,
                None if edit.old.is_empty() => files.push((edit.file.clone(), edit.new.clone())),
                None => return Err(growth.misfit(edit).into()),
            }
        }
    }
    write_all(&copy, &files)?;
    let packages = CHECKED.iter().flat_map(|package| ["--package", package]);
    let mut check = cargo(["check", "--quiet", "--locked"].into_iter().chain(packages));
    // Its own: cargo would take the copy's crates for those of the workspace, since their names and paths within are the same.
    check.current_dir(&copy).env("CARGO_TARGET_DIR", target().join("growth/target"));
    run(&mut check)?;
    for growth in &all {
        let files: BTreeSet<&str> = growth.edits.iter().map(|edit| &*edit.file).collect();
        let counted = count_of(&table, &growth.row)
            .ok_or_else(|| format!("ARCHITECTURE.md gives no number of files for: {}", growth.row))?;
        if counted != files.len() {
            let edited = Vec::from_iter(files).join(", ");
            return Err(format!(
                "ARCHITECTURE.md gives {counted} files for {}, but these are edited: {edited}",
                growth.row
            )
            .into());
        }
        println!("{}: {counted}", growth.row);
    }
    Ok(())
}

impl Growth {
    fn misfit(&self, edit: &Edit) -> String {
        format!(
            "xtask/growth/{}: {} does not contain these lines exactly once: {}",
            self.name, edit.file, edit.old
        )
    }
}

/// `text` with the edit; `None` where it does not fit at exactly one place.
fn edited(text: &str, edit: &Edit) -> Option<String> {
    let fits = !edit.old.is_empty() && text.matches(&edit.old).count() == 1;
    fits.then(|| text.replacen(&edit.old, &edit.new, 1))
}

fn read_all(folder: &Path) -> Result<Vec<Growth>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.push(parse(name, &fs::read_to_string(&path)?)?);
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

fn parse(name: String, text: &str) -> Result<Growth> {
    let mut lines = text.lines();
    let row = lines.next().unwrap_or_default().to_owned();
    let mut edits: Vec<Edit> = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        if let Some(file) = line.strip_prefix("=== ") {
            edits.push(Edit { file: file.to_owned(), ..Edit::default() });
            continue;
        }
        let edit = edits.last_mut().ok_or_else(|| format!("{name}: a line before the first file"))?;
        let (is_old, line) = match line.split_at(1) {
            (" ", line) => (true, line),
            ("+", line) => (false, line),
            _ => {
                return Err(format!("{name}: the line begins neither with a space nor with +: {line}").into());
            }
        };
        for (_, text) in
            [(true, &mut edit.old), (false, &mut edit.new)].into_iter().filter(|(old, _)| is_old || !old)
        {
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(Growth { name, row, edits })
}

/// The count in the row of the table whose first cell is `row`.
fn count_of(table: &str, row: &str) -> Option<usize> {
    let mut cells = table.lines().map(|line| line.split(" | "));
    let mut cells =
        cells.find_map(|mut cells| (cells.next() == Some(&format!("| {row}"))).then_some(cells))?;
    cells.next()?.parse().ok()
}

/// All files that git has or would take, with their texts. Other files do not matter here.
fn sources() -> Result<Vec<(String, String)>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let list = output(&mut command("git", list))?;
    let paths = String::from_utf8(list)?;
    let paths = paths.split('\0').filter(|path| !path.is_empty());
    // A file that is in the index may have been removed since.
    let read = |path: &str| Some((path.to_owned(), fs::read_to_string(root().join(path)).ok()?));
    Ok(paths.filter_map(read).collect())
}

/// Writes what has changed, so that cargo builds no more than that again, and removes what is no longer there.
fn write_all(folder: &Path, files: &[(String, String)]) -> Result<()> {
    let known: BTreeSet<&str> = files.iter().map(|(path, _)| &**path).collect();
    let list = folder.join(".growth-files");
    for old in fs::read_to_string(&list).unwrap_or_default().lines() {
        if !known.contains(old) {
            let _ = fs::remove_file(folder.join(old));
        }
    }
    for (path, text) in files {
        let path = folder.join(path);
        if fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    fs::write(list, Vec::from_iter(known).join("\n"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_read_as_a_diff() {
        let growth = parse("x".into(), "a thing\n=== a.rs\n one\n+two\n three\n=== b.rs\n+new\n").unwrap();
        assert_eq!(growth.row, "a thing");
        let edit =
            |file: &str, old: &str, new: &str| Edit { file: file.into(), old: old.into(), new: new.into() };
        let expected = [edit("a.rs", "one\nthree\n", "one\ntwo\nthree\n"), edit("b.rs", "", "new\n")];
        assert_eq!(growth.edits, expected);
        assert_eq!(edited("one\nthree\n", &growth.edits[0]).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(edited("one\nthree\none\nthree\n", &growth.edits[0]), None);
        assert!(parse("x".into(), "a thing\nwithout a file").is_err());
    }

    #[test]
    fn counts_are_those_of_the_table() {
        let table = "| to add | files |\n| a thing | 3 | here |\n| a thing, large | 5 | there |\n";
        assert_eq!(count_of(table, "a thing"), Some(3));
        assert_eq!(count_of(table, "a thing, large"), Some(5));
        assert_eq!(count_of(table, "another"), None);
    }
}
