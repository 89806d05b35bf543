//! Installs what is missing, after saying what that is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

use crate::Result;
use crate::process::{cargo, command, output, run, succeeds};
use crate::requirements::{
    MODULES, Package, Purpose, REQUIREMENTS, Requirement, Source, Unpack, modules, tools,
};

/// Makes sure that everything needed for `purpose` is there. Without `install`, only says what is missing.
///
/// # Errors
/// Something is missing and may not be installed, or its installation failed.
pub(crate) fn ensure(purpose: Purpose, install: bool) -> Result<()> {
    let missing = missing(purpose);
    if missing.is_empty() {
        eprintln!("Nothing is missing.");
        return Ok(());
    }
    report(&missing, install);
    if !install {
        return Err(format!(
            "{} missing; `cargo xtask setup` installs them",
            missing.len()
        )
        .into());
    }

    if missing.iter().any(|requirement| needs_apt(requirement)) {
        install_packages(&missing)?;
    }
    for requirement in &missing {
        match &requirement.source {
            Source::Unpack(wanted) => unpack(wanted)?,
            Source::Apt(_) | Source::Npm(_) => {}
            Source::Pip(module) => run(command("python3", ["-m", "pip", "install", "--quiet"])
                .args(["--no-deps", "--upgrade", "--target"])
                .arg(modules())
                .arg(module))?,
            Source::PipAll { folder, modules } => {
                let folder = tools().join(folder);
                run(command("python3", ["-m", "pip", "install", "--quiet"])
                    .args(["--no-deps", "--upgrade", "--target"])
                    .arg(&folder)
                    .args(*modules))?;
                fs::write(folder.join(MODULES), modules.join(" "))?;
            }
            // Built in less than half of the time; their speed does not matter here.
            Source::Cargo(program) => run(cargo(["install", "--quiet", "--locked", "--debug"])
                .args([program, "--root"])
                .arg(tools())
                .env("CARGO_PROFILE_DEV_DEBUG", "0"))?,
        }
    }
    if missing
        .iter()
        .any(|requirement| matches!(requirement.source, Source::Npm(_)))
    {
        install_npm_packages()?;
    }
    match missing.iter().find(|requirement| !requirement.is_met()) {
        Some(requirement) => {
            Err(format!("{} was installed and is still missing", requirement.name).into())
        }
        None => Ok(()),
    }
}

/// What is needed and not there. All are looked at side by side: compilers take their time.
fn missing(purpose: Purpose) -> Vec<&'static Requirement> {
    let needed = REQUIREMENTS
        .iter()
        .filter(|requirement| purpose.includes(requirement.purpose));
    thread::scope(|scope| {
        let looked_at: Vec<_> = needed
            .map(|requirement| (requirement, scope.spawn(|| requirement.is_met())))
            .collect();
        looked_at
            .into_iter()
            .filter_map(|(requirement, is_met)| {
                let is_met = is_met.join().expect("no test panics");
                (!is_met).then_some(requirement)
            })
            .collect()
    })
}

fn report(missing: &[&Requirement], install: bool) {
    let what = if install {
        "Will be installed"
    } else {
        "Missing"
    };
    eprintln!("{what} ({} of {}):", missing.len(), REQUIREMENTS.len());
    for requirement in missing {
        eprintln!("  {:16} {}", requirement.name, requirement.why);
        eprintln!("  {:16}   {}", "", requirement.source.describe());
    }
}

fn needs_apt(requirement: &Requirement) -> bool {
    match &requirement.source {
        Source::Apt(_) => true,
        Source::Unpack(unpack) => matches!(unpack.package, Package::Deb(_)),
        Source::Npm(_) | Source::Pip(_) | Source::PipAll { .. } | Source::Cargo(_) => false,
    }
}

/// Installs all of npm's packages at once: npm removes those that its command does not name.
fn install_npm_packages() -> Result<()> {
    let packages = REQUIREMENTS
        .iter()
        .filter_map(|requirement| match requirement.source {
            Source::Npm(package) => Some(package),
            _ => None,
        });
    run(command(
        "npm",
        [
            "install",
            "--no-save",
            "--no-package-lock",
            "--no-fund",
            "--no-audit",
            "--prefix",
        ],
    )
    .arg(tools())
    .args(packages)
    // The browser is Debian's.
    .env("PUPPETEER_SKIP_DOWNLOAD", "1"))
}

/// Installs all missing Debian packages at once. A fresh machine has no list of packages, so that comes first.
fn install_packages(missing: &[&Requirement]) -> Result<()> {
    let packages: Vec<&str> = missing
        .iter()
        .filter_map(|requirement| match requirement.source {
            Source::Apt(packages) => Some(packages),
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    let Some(as_root) = become_root()? else {
        if packages.is_empty() {
            // What is left to be downloaded only needs lists, and they were fetched when the packages were installed.
            return Ok(());
        }
        return Err(format!(
            "this needs root, and sudo asks for a password; run as root, then try again:\n  \
             apt-get update && apt-get install --no-install-recommends {}",
            packages.join(" ")
        )
        .into());
    };
    apt_get(as_root, &["update", "--quiet"])?;
    if packages.is_empty() {
        return Ok(());
    }
    let mut words = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    words.extend(&packages);
    apt_get(as_root, &words)
}

fn apt_get(as_root: &[&str], words: &[&str]) -> Result<()> {
    let words = [
        as_root,
        &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"],
        words,
    ]
    .concat();
    run(&mut command(words[0], &words[1..]))
}

/// The words that make a command run as root: none for root itself. `None` where only a password would do.
fn become_root() -> Result<Option<&'static [&'static str]>> {
    if output(&mut command("id", ["-u"]))?.trim_ascii() == b"0" {
        Ok(Some(&[]))
    } else if succeeds(&mut command("sudo", ["-n", "true"])) {
        Ok(Some(&["sudo", "-n"]))
    } else {
        Ok(None)
    }
}

/// Downloads a package, takes it apart and keeps what is wanted of it. The folder appears complete or not at all.
fn unpack(wanted: &Unpack) -> Result<()> {
    let folder = wanted.folder();
    let scratch = tools().join(".unpack");
    if scratch.exists() {
        // An earlier run did not come to its end.
        fs::remove_dir_all(&scratch)?;
    }
    let (content, finished) = (scratch.join("content"), scratch.join("finished"));
    fs::create_dir_all(&content)?;
    fs::create_dir_all(&finished)?;

    download(&wanted.package, &scratch)?;
    let archive = only_file(&scratch)?;
    match wanted.package {
        Package::Deb(_) => run(command("dpkg", ["-x"]).args([&archive, &content]))?,
        // A wheel is a zip file.
        Package::Wheel(_) => {
            run(command("python3", ["-m", "zipfile", "-e"]).args([&archive, &content]))?
        }
    }

    for end in wanted.wanted {
        let found =
            find(&content, end)?.ok_or_else(|| format!("no {end} in {}", wanted.package.id()))?;
        if found.is_dir() {
            fs::remove_dir(&finished)?;
            fs::rename(&found, &finished)?;
            continue;
        }
        // Follows links: in some packages the name is a link to another file of the package.
        fs::copy(&found, finished.join(file_name(&found)))?;
    }
    for link in wanted.links {
        symlink(file_name(Path::new(wanted.wanted[0])), finished.join(link))?;
    }
    let marker = finished.join(file_name(&wanted.marker()));
    fs::write(marker, wanted.package.id())?;

    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.parent().expect("it lies below target/tools"))?;
    fs::rename(&finished, &folder)?;
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().expect("the paths of this file have names")
}

fn download(package: &Package, folder: &Path) -> Result<()> {
    match package {
        Package::Deb(name) => {
            run(command("apt-get", ["download", "--quiet", name]).current_dir(folder))
        }
        Package::Wheel(specification) => run(command(
            "python3",
            [
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                specification,
                "--dest",
            ],
        )
        .arg(folder)),
    }
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            return Ok(entry.path());
        }
    }
    Err(format!("nothing was downloaded to {}", folder.display()).into())
}

/// The first file or folder below `folder`, in order of path, whose path ends with `end`.
fn find(folder: &Path, end: &str) -> Result<Option<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.to_string_lossy().ends_with(end) {
            return Ok(Some(path));
        }
        if entry.file_type()?.is_dir()
            && let Some(found) = find(&path, end)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
