//! Paths as words of commands that people copy.

use std::path::Path;

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
