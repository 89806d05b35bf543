//! Files that are not what they shall be yet: they go away when a signal ends the program.

use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Once;

use parking_lot::Mutex;

use crate::output::signals;

/// All that were made. Their names are not used again, so that those that are finished may stay among them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes a file or a folder, which goes away with all that is in it when a signal ends the program.
///
/// # Errors
/// Like `make`.
pub(crate) fn make<T: AsRef<Path>>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    heed_signals();
    // Locked meanwhile: a signal finds each file, or comes before it.
    let mut unfinished = UNFINISHED.lock();
    let made = make().map_err(plain)?;
    unfinished.push(made.as_ref().to_owned());
    Ok(made)
}

/// The error without the made-up name, which means nothing to the user, who named another file.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    let (words, _) = text.split_once(" at path ").unwrap_or((&text, ""));
    io::Error::new(error.kind(), words)
}

/// Notes a file that is to be made.
pub(crate) fn will_make(path: PathBuf) {
    heed_signals();
    UNFINISHED.lock().push(path);
}

/// Puts off what signals do until the files have their names.
pub(crate) fn finish<R>(finish: impl FnOnce() -> R) -> R {
    let _locked = UNFINISHED.lock();
    finish()
}

/// Returns unless a signal is ending the program: then nothing else is to be said.
pub(crate) fn settle() {
    finish(|| ());
}

fn heed_signals() {
    static ONCE: Once = Once::new();
    // Where threads have run out, files stay behind.
    ONCE.call_once(|| _ = signals::clean_before_end(remove_all));
}

fn remove_all() {
    /// Another thread may be writing into a folder.
    const TRIES: usize = 100;

    let unfinished = UNFINISHED.lock();
    for path in unfinished.iter() {
        if path.is_dir() {
            let _ = (0..TRIES).find(|_| fs::remove_dir_all(path).is_ok());
        } else {
            let _ = fs::remove_file(path);
        }
    }
    // Never unlocked: who misses the files waits for the end.
    mem::forget(unfinished);
}
