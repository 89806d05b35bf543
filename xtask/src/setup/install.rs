//! Puts the release build in place, as a packager wants it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::omptrace::{build, omptrace, release};
use crate::process::{output, root};
use crate::result::Result;

/// Where a shell looks for completions, below the prefix.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/omptrace"),
    ("fish", "share/fish/vendor_completions.d/omptrace.fish"),
    ("zsh", "share/zsh/site-functions/_omptrace"),
];

/// Libraries that `record` preloads besides the tracer's.
const ADAPTERS: [&str; 5] =
    ["libomptgomp.so", "libomptrace_waits.so", "libomptmpi.so", "libomptmpi4.so", "libomptmpi4c.so"];

/// What programs include to name their phases, in the sources and below the prefix.
const HEADERS: [&str; 2] = ["include/omptrace.h", "include/omptrace.f90"];

/// Builds, then installs program, library, headers, man page and completions below `prefix`.
///
/// # Errors
/// The build failed, or the folder cannot be written.
pub(crate) fn run(prefix: &Path) -> Result<()> {
    build()?;
    let program = fs::read(release().join("omptrace"))?;
    let library = fs::read(release().join("libomptrace.so"))?;
    place(prefix, "bin/omptrace", &program, 0o755)?;
    // The program looks for the libraries in ../lib.
    place(prefix, "lib/libomptrace.so", &library, 0o755)?;
    for name in ADAPTERS {
        place(prefix, &format!("lib/{name}"), &fs::read(release().join(name))?, 0o755)?;
    }
    place_texts(prefix, || omptrace(&[]))
}

/// Puts headers, man page and completions below `prefix`, the latter two as the program prints them that `omptrace` runs.
///
/// # Errors
/// The program cannot be run, or the folder cannot be written.
pub(crate) fn place_texts(prefix: &Path, omptrace: impl Fn() -> Command) -> Result<()> {
    let printed = |words: &[&str]| output(omptrace().args(words));
    place(prefix, "share/man/man1/omptrace.1", &printed(&["man"])?, 0o644)?;
    for header in HEADERS {
        place(prefix, header, &fs::read(root().join(header))?, 0o644)?;
    }
    for (shell, path) in COMPLETIONS {
        place(prefix, path, &printed(&["completions", shell])?, 0o644)?;
    }
    Ok(())
}

/// Writes beside the old file, then renames: a process that runs the old program or has the old library mapped
/// keeps it.
fn place(prefix: &Path, path: &str, content: &[u8], mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let path = prefix.join(path);
    let explain = |error| format!("cannot write {}: {error}", path.display());
    let unfinished = path.with_added_extension("new");
    fs::create_dir_all(path.parent().expect("a path below the prefix has a parent")).map_err(explain)?;
    fs::write(&unfinished, content).map_err(explain)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(mode)).map_err(explain)?;
    fs::rename(&unfinished, &path).map_err(explain)?;
    println!("{}", path.display());
    Ok(())
}
