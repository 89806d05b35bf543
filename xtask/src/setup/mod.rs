//! Installs what is missing, after saying what that is.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod install;
pub(crate) mod requirement;
mod requirements;
mod test_programs;
pub(crate) mod tools;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::thread;

use crate::process::{cargo, command, output, run, succeeds, succeeds_with_input};
use crate::result::Result;
use crate::setup::requirement::{Package, Purpose, Requirement, Source, Unpack};
use crate::setup::requirements::REQUIREMENTS;
use crate::setup::tools::{MODULES, npm, tools};

/// Things that are downloaded and unpacked at a time.
const SIDE_BY_SIDE: usize = 4;

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
        return Err(
            format!("{} requirements are missing; `cargo xtask setup` installs them", missing.len()).into()
        );
    }

    let packages = Packages::of(&missing)?;
    announce(&packages, &missing);
    thread::scope(|scope| {
        // It needs nothing of the others, and the processors more than they do.
        let programs = scope.spawn(|| install_programs(&missing).map_err(|error| error.to_string()));
        let others = packages
            .install()
            .and_then(|()| work_off(jobs(&missing)))
            .and_then(|()| install_npm_packages(&missing));
        others?;
        Ok::<(), Box<dyn std::error::Error>>(programs.join().expect("it does not panic")?)
    })?;
    match missing.iter().find(|requirement| !requirement.is_met()) {
        Some(requirement) => Err(format!("{} was installed, but is still missing", requirement.name).into()),
        None => Ok(()),
    }
}

/// What is needed and not there. All are looked at side by side: compilers take their time.
fn missing(purpose: Purpose) -> Vec<&'static Requirement> {
    let needed = REQUIREMENTS.iter().filter(|requirement| purpose.includes(requirement.purpose));
    thread::scope(|scope| {
        let looked_at: Vec<_> =
            needed.map(|requirement| (requirement, scope.spawn(|| requirement.is_met()))).collect();
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
    let what = if install { "Will be installed" } else { "Missing" };
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
        Source::Npm(_) | Source::Pip { .. } | Source::Cargo(_) | Source::Rustup(_) => false,
    }
}

/// Says what all of it takes, before it begins.
fn announce(packages: &Packages, missing: &[&Requirement]) {
    let sizes = || missing.iter().map(|requirement| requirement.source.size());
    let download: u32 = sizes().map(|size| size.download).sum();
    let disk: u32 = sizes().map(|size| size.disk).sum();
    let plan = &packages.plan;
    if !packages.names.is_empty() {
        eprintln!(
            "Debian packages: {} to install, {} to upgrade, none to remove; {} MB to download, {} MB on disk.",
            plan.installed, plan.upgraded, plan.download, plan.disk
        );
    }
    if disk > 0 {
        eprintln!("Everything else, in {}: {download} MB to download, {disk} MB on disk.", tools().display());
    }
    let programs =
        missing.iter().filter(|requirement| matches!(requirement.source, Source::Cargo(_))).count();
    eprintln!(
        "This takes about {} minutes on two CPUs, at 10 MB/s.",
        minutes(plan.download + download, plan.disk + disk, programs)
    );
}

/// How long an installation takes, as fresh machines have taken: MB to download and to unpack, and programs to compile
/// meanwhile.
fn minutes(download: u32, disk: u32, programs: usize) -> u32 {
    let seconds = download / 10 + disk / 20;
    let programs = u32::try_from(programs).unwrap_or(u32::MAX).saturating_mul(100);
    seconds.max(programs).div_ceil(60).max(1)
}

/// Programs of crates.io, and standard libraries.
fn install_programs(missing: &[&Requirement]) -> Result<()> {
    for requirement in missing {
        if let Source::Rustup(target) = requirement.source {
            run(&mut command("rustup", ["target", "add", target]))?;
        }
        if let Source::Cargo(program) = requirement.source {
            // Built in less than half of the time; their speed does not matter here.
            run(cargo(["install", "--quiet", "--locked", "--debug"])
                .args([program, "--root"])
                .arg(tools())
                .env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
        }
    }
    Ok(())
}

/// Something to download and to unpack, which needs nothing of the others.
#[derive(Debug)]
enum Job {
    Pip {
        folder: &'static str,
        modules: &'static [&'static str],
    },
    /// What is wanted of one package, each for a folder of its own.
    Unpack(Vec<&'static Unpack>),
}

/// All of them, the largest first.
fn jobs(missing: &[&'static Requirement]) -> Vec<Job> {
    let mut jobs: Vec<(u32, Job)> = Vec::new();
    for requirement in missing {
        let download = requirement.source.size().download;
        match &requirement.source {
            Source::Pip { folder, modules, .. } => jobs.push((download, Job::Pip { folder, modules })),
            Source::Unpack(unpack) => {
                let of_package = jobs.iter_mut().find_map(|(_, job)| match job {
                    Job::Unpack(all) if all[0].package == unpack.package => Some(all),
                    _ => None,
                });
                match of_package {
                    Some(all) => all.push(unpack),
                    None => jobs.push((download, Job::Unpack(vec![unpack]))),
                }
            }
            Source::Apt(_) | Source::Npm(_) | Source::Cargo(_) | Source::Rustup(_) => {}
        }
    }
    jobs.sort_by_key(|(download, _)| std::cmp::Reverse(*download));
    jobs.into_iter().map(|(_, job)| job).collect()
}

/// Does all of them, some side by side.
fn work_off(jobs: Vec<Job>) -> Result<()> {
    let jobs = Mutex::new(VecDeque::from(jobs));
    let next = || jobs.lock().expect("nobody panics with it").pop_front();
    let work = || {
        while let Some(job) = next() {
            job.run().map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })?;
    Ok(())
}

impl Job {
    fn run(&self) -> Result<()> {
        match self {
            Job::Unpack(wanted) => unpack(wanted),
            Job::Pip { folder, modules } => {
                let folder = tools().join(folder);
                if folder.exists() {
                    // What another version needed must not stay.
                    fs::remove_dir_all(&folder)?;
                }
                run(pip("install").arg("--target").arg(&folder).args(*modules))?;
                fs::write(folder.join(MODULES), modules.join(" "))?;
                Ok(())
            }
        }
    }
}

/// The interpreter that `python3` runs. A launcher such as pyenv's does work of its own around each call of pip (it
/// renews its launchers under a lock), and fails where several run at once.
fn python() -> &'static OsStr {
    static PYTHON: OnceLock<OsString> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let path = output(&mut command("python3", ["-c", "import sys; print(sys.executable)"]));
        let path = path.map(|path| path.trim_ascii_end().to_vec()).ok().filter(|path| !path.is_empty());
        path.map_or_else(|| "python3".into(), OsString::from_vec)
    })
}

/// pip, to do `task` with what is named and nothing else.
fn pip(task: &str) -> Command {
    let mut pip = command(python(), ["-m", "pip", task, "--quiet", "--no-deps"]);
    // It would recommend another folder for modules than the system's; ours is another.
    pip.env("PIP_ROOT_USER_ACTION", "ignore");
    pip
}

/// Installs all of npm's packages at once: npm removes those that its command does not name.
fn install_npm_packages(missing: &[&Requirement]) -> Result<()> {
    let of_npm = |requirement: &&Requirement| match requirement.source {
        Source::Npm(package) => Some(package),
        _ => None,
    };
    if !missing.iter().any(|requirement| of_npm(requirement).is_some()) {
        return Ok(());
    }
    let all = REQUIREMENTS.iter();
    run(npm(&["install", "--no-save", "--no-package-lock"])
        .arg(tools())
        .args(all.filter_map(|requirement| of_npm(&requirement))))
}

/// Debian packages to install, and what that will do.
struct Packages {
    names: Vec<&'static str>,
    /// The words before a command that needs root. `None` where only a password would do, and none is needed.
    as_root: Option<&'static [&'static str]>,
    plan: Plan,
}

/// What apt will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plan {
    installed: u32,
    upgraded: u32,
    /// MB.
    download: u32,
    /// MB.
    disk: u32,
}

impl Packages {
    /// Those that are missing. A fresh machine has no list of packages, so that comes first.
    fn of(missing: &[&Requirement]) -> Result<Packages> {
        let names: Vec<&str> = missing
            .iter()
            .filter_map(|requirement| match requirement.source {
                Source::Apt(packages) => Some(packages),
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        let mut packages = Packages { names, as_root: None, plan: Plan::default() };
        if !missing.iter().any(|requirement| needs_apt(requirement)) {
            return Ok(packages);
        }
        packages.as_root = become_root()?;
        let Some(as_root) = packages.as_root else {
            if packages.names.is_empty() {
                // What is left to be downloaded only needs lists, and they were fetched when the packages were installed.
                return Ok(packages);
            }
            return Err(format!(
                "this needs root, and sudo asks for a password; run as root, then try again:\n  \
                 apt-get update && apt-get {} {}",
                INSTALL.join(" "),
                packages.names.join(" ")
            )
            .into());
        };
        apt_get(as_root, &["update", "--quiet"])?;
        if !packages.names.is_empty() {
            packages.plan = plan(&packages.names)?;
        }
        Ok(packages)
    }

    /// Installs all of them at once, and takes nothing away: packages stay, and so do the programs behind names such as `mpicc`.
    fn install(&self) -> Result<()> {
        let (Some(as_root), false) = (self.as_root, self.names.is_empty()) else {
            return Ok(());
        };
        let before = alternatives();
        let options = [
            "--yes",
            "--quiet",
            // Who installs this can do so again.
            "--option=Dpkg::Options::=--force-unsafe-io",
        ];
        apt_get(as_root, &[INSTALL, &options, &self.names].concat())?;
        let turned = turned(&before, &alternatives());
        if !turned.is_empty() {
            eprintln!("Restored to their previous settings:\n{turned}");
            let words = [as_root, &["update-alternatives", "--set-selections"]].concat();
            if !succeeds_with_input(&mut command(words[0], &words[1..]), turned.as_bytes()) {
                return Err(format!("update-alternatives cannot restore these settings:\n{turned}").into());
            }
        }
        Ok(())
    }
}

/// What apt-get is to do: no package that a user has may go.
const INSTALL: &[&str] = &["install", "--no-remove", "--no-install-recommends"];

/// What installing these will do.
///
/// # Errors
/// It cannot be done, or another package would have to go.
fn plan(names: &[&str]) -> Result<Plan> {
    let simulate = |options: &[&str]| {
        let mut simulation = command("apt-get", options);
        simulation.args(names).env("LC_ALL", "C");
        simulation
    };
    let planned = simulate(&[INSTALL, &["--print-uris"]].concat()).output()?;
    let said = String::from_utf8_lossy(&planned.stdout);
    if planned.status.success() {
        return Ok(Plan::read(&said));
    }
    let without = simulate(&["install", "--no-install-recommends", "--simulate"]).output()?;
    let without = String::from_utf8_lossy(&without.stdout);
    let removed: Vec<&str> =
        without.lines().filter_map(|line| line.strip_prefix("Remv ")?.split(' ').next()).collect();
    if removed.is_empty() {
        let error = String::from_utf8_lossy(&planned.stderr);
        return Err(format!("apt-get cannot install {}:\n{error}", names.join(" ")).into());
    }
    Err(format!(
        "apt-get would remove {}, which conflict with packages that are needed. Nothing was installed. To install them anyway:\n  \
         apt-get install --no-install-recommends {}",
        removed.join(" "),
        names.join(" ")
    )
    .into())
}

impl Plan {
    /// Out of what apt-get prints:
    ///
    /// ```text
    /// 1 upgraded, 248 newly installed, 0 to remove and 4 not upgraded.
    /// Need to get 450 MB/460 MB of archives.
    /// After this operation, 1953 MB of additional disk space will be used.
    /// ```
    fn read(text: &str) -> Plan {
        let mut plan = Plan::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split([' ', '/']).collect();
            match *words {
                [upgraded, "upgraded,", installed, ..] => {
                    plan.upgraded = upgraded.parse().unwrap_or(0);
                    plan.installed = installed.parse().unwrap_or(0);
                }
                ["Need", "to", "get", number, unit, ..] => plan.download = megabytes(number, unit),
                ["After", "this", "operation,", number, unit, "of", "additional", ..] => {
                    plan.disk = megabytes(number, unit);
                }
                _ => {}
            }
        }
        plan
    }
}

/// As apt writes sizes: `1,953 kB`, `13.9 MB`, `2 GB`.
fn megabytes(number: &str, unit: &str) -> u32 {
    let number: f64 = number.replace(',', "").parse().unwrap_or(0.0);
    let in_mb = match unit {
        "B" => 1e-6,
        "kB" => 1e-3,
        "GB" => 1e3,
        _ => 1.0,
    };
    (number * in_mb).ceil() as u32
}

/// Which of several programs a name such as `mpicc` is: lines of a name, how it was chosen, and the choice.
fn alternatives() -> String {
    let listed = output(&mut command("update-alternatives", ["--get-selections"]));
    String::from_utf8_lossy(&listed.unwrap_or_default()).into_owned()
}

/// Those that were something `before` and something else `after`, as they were, chosen by hand.
fn turned(before: &str, after: &str) -> String {
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, _, choice) = (words.next()?, words.next()?, words.next()?);
        Some((name.to_owned(), choice.to_owned()))
    };
    let after: Vec<(String, String)> = after.lines().filter_map(parse).collect();
    before
        .lines()
        .filter_map(parse)
        .filter(|(name, choice)| after.iter().any(|(of, now)| of == name && now != choice))
        .map(|(name, choice)| format!("{name} manual {choice}\n"))
        .collect()
}

fn apt_get(as_root: &[&str], words: &[&str]) -> Result<()> {
    let env = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    let words = [as_root, &env, words].concat();
    run(&mut command(words[0], &words[1..]))
}

/// The words that make a command run as root: none for root itself. `None` where only a password would do.
fn become_root() -> Result<Option<&'static [&'static str]>> {
    if output(&mut command("id", ["-u"]))?.trim_ascii() == b"0" {
        Ok(Some(&[]))
    } else if succeeds(&mut command("sudo", ["-n", "true"])) {
        Ok(Some(&["sudo", "-n"]))
    } else if std::io::stdin().is_terminal() && run(&mut command("sudo", ["-v"])).is_ok() {
        // A person was there to give the password.
        Ok(Some(&["sudo"]))
    } else {
        Ok(None)
    }
}

/// Downloads a package and takes it apart. Each folder with what is wanted of it appears complete or not at all.
fn unpack(all: &[&Unpack]) -> Result<()> {
    let package = &all[0].package;
    let scratch = tools().join(".unpack").join(package.id());
    if scratch.exists() {
        // An earlier run did not come to its end.
        fs::remove_dir_all(&scratch)?;
    }
    let content = scratch.join("content");
    fs::create_dir_all(&content)?;
    download(package, &scratch)?;
    let archive = only_file(&scratch)?;
    match package {
        Package::Deb(_) | Package::ForeignDeb(_) => {
            run(command("dpkg", ["-x"]).args([&archive, &content]))?;
        }
        // A wheel is a zip file.
        Package::Wheel(_) => run(command("python3", ["-m", "zipfile", "-e"]).args([&archive, &content]))?,
    }
    for wanted in all {
        keep(wanted, &content, &scratch.join("finished"))?;
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

/// Puts what is wanted of the `content` into its folder; made in `finished`.
fn keep(wanted: &Unpack, content: &Path, finished: &Path) -> Result<()> {
    fs::create_dir_all(finished)?;
    for end in wanted.wanted {
        let found = find(content, end)?.ok_or_else(|| format!("no {end} in {}", wanted.package.id()))?;
        if found.is_dir() {
            fs::remove_dir(finished)?;
            fs::rename(&found, finished)?;
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

    let folder = wanted.folder();
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.parent().expect("it lies below target/tools"))?;
    fs::rename(finished, &folder)?;
    Ok(())
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().expect("the paths of this file have names")
}

fn download(package: &Package, folder: &Path) -> Result<()> {
    match package {
        Package::Deb(name) => run(command("apt-get", ["download", "--quiet=2"])
            // As another user, apt could not write into a folder of ours, and would say so.
            .args(["--option=APT::Sandbox::User=root", name])
            .current_dir(folder)),
        Package::ForeignDeb(name) => download_foreign(name, folder),
        Package::Wheel(specification) => {
            run(pip("download").args(["--only-binary=:all:", specification, "--dest"]).arg(folder))
        }
    }
}

/// Downloads a package of another architecture, `NAME:ARCHITECTURE`, with a list of packages of its own.
fn download_foreign(name: &str, folder: &Path) -> Result<()> {
    let (_, architecture) = name.split_once(':').ok_or("a package of another architecture names it")?;
    let native = output(&mut command("dpkg", ["--print-architecture"]))?;
    let native = String::from_utf8_lossy(&native).trim().to_owned();
    let state = tools().join(".unpack").join(format!("lists-{architecture}"));
    fs::create_dir_all(state.join("partial"))?;
    let apt_get = |words: &[&str]| {
        let mut apt_get = command("apt-get", ["--quiet=2", "--option=APT::Sandbox::User=root"]);
        apt_get.arg(format!("--option=Dir::State::lists={}", state.display()));
        // Made of the lists, which the system's is not.
        apt_get.args(["--option=Dir::Cache::pkgcache=", "--option=Dir::Cache::srcpkgcache="]);
        for of in [native.as_str(), architecture] {
            apt_get.arg(format!("--option=APT::Architectures::={of}"));
        }
        run(apt_get.args(words).current_dir(folder))
    };
    apt_get(&["update"])?;
    apt_get(&["download", name])?;
    fs::remove_dir_all(&state)?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_will_do_is_read() {
        let said = "Reading package lists...
The following NEW packages will be installed:
  clang-22
1 upgraded, 248 newly installed, 0 to remove and 4 not upgraded.
Need to get 450 MB/1,200 MB of archives.
After this operation, 1,953 kB of additional disk space will be used.
'http://mirror.example/pool/x.deb' x.deb 1 MD5Sum:0";
        let expected = Plan { installed: 248, upgraded: 1, download: 450, disk: 2 };
        assert_eq!(Plan::read(said), expected);
        let nothing = "After this operation, 12 MB disk space will be freed.";
        assert_eq!(Plan::read(nothing), Plan::default());
    }

    #[test]
    fn an_alternative_that_was_there_stays_and_a_new_one_may_come() {
        let before = "java auto /usr/bin/java-17\nmpi auto /usr/bin/mpicc.mpich\nvi manual /usr/bin/vim\n";
        let after = "java  auto  /usr/bin/java-17\nmpi auto /usr/bin/mpicc.openmpi\nmpirun auto /usr/bin/x\n";
        assert_eq!(turned(before, after), "mpi manual /usr/bin/mpicc.mpich\n");
        assert_eq!(turned(before, before), "");
        assert_eq!(turned("", after), "");
    }

    #[test]
    fn a_package_is_downloaded_once_for_all_that_is_wanted_of_it() {
        let all: Vec<&Requirement> = REQUIREMENTS.iter().collect();
        let mut packages: Vec<&str> = jobs(&all)
            .iter()
            .filter_map(|job| match job {
                Job::Unpack(all) => Some(all[0].package.id()),
                Job::Pip { .. } => None,
            })
            .collect();
        let count = packages.len();
        packages.sort_unstable();
        packages.dedup();
        assert_eq!(packages.len(), count);
        let mut modules: Vec<&str> = all
            .iter()
            .filter_map(|requirement| match requirement.source {
                Source::Pip { modules, .. } if requirement.purpose == Purpose::Tests => Some(modules),
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        let count = modules.len();
        modules.sort_unstable();
        modules.dedup();
        assert_eq!(modules.len(), count);
    }

    /// Those exclude the same of other versions, and so would take a user's away.
    #[test]
    fn no_package_is_installed_that_excludes_others() {
        for requirement in REQUIREMENTS {
            if let Source::Apt(packages) = requirement.source {
                let excludes = |name: &&&str| name.starts_with("libomp") || name.starts_with("liboffload");
                assert_eq!(packages.iter().find(excludes), None);
            }
        }
    }
}
