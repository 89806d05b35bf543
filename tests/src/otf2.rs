//! OTF2 archives as the reference library and its Python modules read them, and as our own check reads them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::env::{debian_python, otf2_module, otf2_print, python, root};
use crate::trace::omptrace;

/// Runs a reader; it must have nothing to say on stderr. Gives its stdout.
#[track_caller]
fn reads(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("the reader can be run");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}");
    assert_eq!(words, "", "{command:?}");
    output.stdout
}

/// The events that PyPI's module reads, as `otf2_events.py` prints them.
///
/// # Panics
/// It cannot, or has something to say.
pub fn events(anchor: &Path) -> Value {
    let script = root().join("tests/tools/otf2_events.py");
    let mut command = Command::new(python());
    command.env("PYTHONPATH", otf2_module()).arg(script).arg(anchor);
    serde_json::from_slice(&reads(&mut command)).expect("JSON")
}

/// The events that Debian's module reads, as `otf2_events.py` prints them.
///
/// # Panics
/// Like [`events`].
pub fn events_of_old_reader(anchor: &Path) -> Value {
    let script = root().join("tests/tools/otf2_events.py");
    let mut command = Command::new(debian_python());
    serde_json::from_slice(&reads(command.arg(script).arg(anchor))).expect("JSON")
}

/// The output of the reference library's reader.
///
/// # Panics
/// Like [`events`].
pub fn printed(anchor: &Path, options: &[&str]) -> String {
    let printed = reads(Command::new(otf2_print()).args(options).arg(anchor));
    String::from_utf8(printed).expect("UTF-8")
}

/// Asserts that we find nothing wrong with an archive.
///
/// # Panics
/// We do.
#[track_caller]
pub fn assert_sound(anchor: &Path) {
    let sound = omptrace([Path::new("check"), anchor]);
    assert!(sound.status.success(), "{sound:?}");
}

/// The rows of a list.
///
/// # Panics
/// It is none, as [`text`] and [`number`] do with other values.
pub fn rows(list: &Value) -> impl Iterator<Item = &Vec<Value>> {
    let rows = list.as_array().expect("a list");
    rows.iter().map(|row| row.as_array().expect("a row"))
}

/// A text.
///
/// # Panics
/// It is none.
pub fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// A number.
///
/// # Panics
/// It is none.
pub fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
