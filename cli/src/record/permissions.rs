//! Libraries that another user cannot load. A program may run as another user, by `sudo` or `setpriv`, and then it
//! cannot access directories that are closed to others, as home directories usually are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The part of the path to `library` that others cannot traverse or read: a directory, or the library itself.
pub(crate) fn closed_part(library: &Path) -> Option<PathBuf> {
    let is_closed = |path: &&Path| {
        let Ok(found) = fs::metadata(path) else {
            return false;
        };
        let needed = if found.is_dir() { 0o001 } else { 0o004 };
        found.permissions().mode() & needed == 0
    };
    // The outermost one.
    let parts: Vec<&Path> = library.ancestors().filter(is_closed).collect();
    parts.last().map(|part| part.to_path_buf())
}

/// A message about the closed part, and what to do about it.
pub(crate) fn words(library: &Path, closed: &Path) -> (String, String) {
    let (closed, library) = (closed.display(), library.display());
    (
        format!(
            "the program may have run as another user, who cannot load {library}, because other users have no access to {closed}"
        ),
        format!(
            "install omptrace in a directory that all users can read, such as /usr/local, or allow access with `chmod o+rx {closed}`; that user must also be able to write to the directory of the trace"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn what_is_closed_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(folder.path(), 0o755);
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let library = inner.join("lib.so");
        fs::write(&library, "").unwrap();
        set(&inner, 0o755);
        set(&library, 0o644);
        assert_eq!(closed_part(&library), None);
        set(&library, 0o640);
        assert_eq!(closed_part(&library), Some(library.clone()));
        set(&inner, 0o750);
        assert_eq!(closed_part(&library), Some(inner));
    }
}
