//! Each artefact on systems that have nothing else: roots of Debian, made by debootstrap, with what a user of a program of GCC's has.
//!
//! ```text
//! debootstrap --> root with libgomp and Python --> a copy --> install, trace the example, look at the trace, all by chroot
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::artefacts::{GLIBC, artefact, file_name, folder};
use crate::process::{command, host, output, root, run, target};
use crate::result::Result;
use crate::setup::requirement::RELEASE_FOLDER;
use crate::setup::tools::tools;

/// The releases of Debian, oldest first: glibc 2.31 and 2.36.
const RELEASES: [&str; 2] = ["bullseye", "bookworm"];
/// What a root has beyond the least. The runtime is what GCC's program needs, Python what pip's users have.
const PACKAGES: &str = "libgomp1,python3-venv,ca-certificates";
/// As pipx's own documents say where a system has no package of it, like Debian 11.
const PIPX: &str = "python3 -m venv /opt/pipx && /opt/pipx/bin/pip install --quiet pipx && ln -s /opt/pipx/bin/pipx /usr/bin";

/// Ways to install, each with the commands that install from `/dist`, and the program that they put in place.
const WAYS: [(&str, &str, &str); 5] = [
    (
        "install.sh",
        "OMPTRACE_RELEASE=/dist sh /dist/install.sh --prefix /opt/archive",
        "/opt/archive/bin/omptrace",
    ),
    (
        "pip, in an environment",
        "python3 -m venv /opt/venv && /opt/venv/bin/pip install --quiet --no-index /dist/*.whl",
        "/opt/venv/bin/omptrace",
    ),
    ("pipx run", PIPX, "pipx run --spec /dist/*.whl omptrace"),
    ("dpkg", "dpkg --install /dist/*.deb", "omptrace"),
    // The package that was installed from outside, by rpm; dpkg's is gone before.
    ("rpm", "true", "omptrace"),
];

/// Tries all ways on all roots.
///
/// # Errors
/// A root cannot be made, or a way fails on one.
pub(super) fn try_all() -> Result<()> {
    let program = example()?;
    for release in RELEASES {
        let fresh = made(release)?;
        let copy = target().join("dist/root");
        for (way, install, omptrace) in WAYS {
            if copy.exists() {
                fs::remove_dir_all(&copy)?;
            }
            run(command("cp", ["--archive", "--reflink=auto"]).args([&fresh, &copy]))?;
            run(command("cp", ["--recursive"]).arg(folder()).arg(copy.join("dist")))?;
            fs::copy(&program, copy.join("stencil"))?;
            if way == "rpm" {
                install_rpm(&copy)?;
            }
            let begin = Instant::now();
            within(
                &copy,
                &format!(
                    "{install}
                     {omptrace} record --quiet -o /x.omptrace /stencil 400 5
                     {omptrace} check /x.omptrace
                     {omptrace} stats /x.omptrace | head -3"
                ),
            )?;
            let took = begin.elapsed().as_secs_f64();
            println!("{release}, {way}: the first answer after {took:.1} s");
        }
        fs::remove_dir_all(&copy)?;
    }
    Ok(())
}

/// A root of that release, which is kept for the next time.
fn made(release: &str) -> Result<PathBuf> {
    let made = target().join("dist/roots").join(release);
    if made.exists() {
        return Ok(made);
    }
    let unfinished = made.with_added_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished)?;
    run(command("debootstrap", ["--variant=minbase"])
        .arg(format!("--include={PACKAGES}"))
        .arg(release)
        .arg(&unfinished))?;
    // pipx asks PyPI for pip itself.
    for file in ["etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"] {
        let source = Path::new("/").join(file);
        if source.exists() {
            fs::copy(source, unfinished.join(file))?;
        }
    }
    fs::rename(&unfinished, &made)?;
    Ok(made)
}

/// The example as GCC compiles it, linked so that it runs on the oldest glibc.
fn example() -> Result<PathBuf> {
    let folder = target().join("dist/example");
    fs::create_dir_all(&folder)?;
    let (object, program) = (folder.join("stencil.o"), folder.join("stencil"));
    run(command("gcc", ["-g", "-O2", "-fopenmp", "-c", "examples/stencil.c", "-o"]).arg(&object))?;
    let libgomp = output(&mut command("gcc", ["-print-file-name=libgomp.so.1"]))?;
    let (major, minor) = GLIBC;
    let target = host()?.replace("-unknown", "");
    run(command(tools().join(RELEASE_FOLDER).join("ziglang/zig"), ["cc", "-target"])
        .arg(format!("{target}.{major}.{minor}"))
        // It was made for a newer glibc; the root has its own.
        .arg("-Wl,--allow-shlib-undefined")
        .arg(&object)
        .arg(String::from_utf8(libgomp)?.trim())
        .arg("-o")
        .arg(&program))?;
    Ok(program)
}

/// Installs the package by rpm itself. The root has glibc, but no record of it for rpm.
fn install_rpm(root: &Path) -> Result<()> {
    let package = artefact(".rpm")?.ok_or("dist/ has no rpm; cargo xtask dist --all makes it")?;
    let package = Path::new("dist").join(file_name(&package));
    run(command("rpm", ["--install", "--nodeps", "--root"]).arg(root).arg(root.join(package)))
}

/// Runs a shell's commands in the root, which has what a process finds in a system. Nothing stays mounted.
fn within(folder: &Path, script: &str) -> Result<()> {
    const ENTER: &str = "mount -t proc proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && exec chroot \"$0\" /bin/sh -euxc \"$1\"";

    run(command("unshare", ["--mount", "sh", "-c", ENTER])
        .arg(folder)
        .arg(script)
        .current_dir(root())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("OMP_NUM_THREADS", "2")
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("TMPDIR"))
}
