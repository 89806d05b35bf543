//! What a release consists of, in `dist/`: archives and packages with the program and its libraries, what was compiled in, checksums.
//!
//! ```text
//! cargo zigbuild, for an old glibc --> program and libraries --> debug information apart, the rest stripped --> build ids
//!   --> one tree (bin, lib, share) --> .tar.gz, wheel; with --all also .deb, .rpm
//! ```
//!
//! Times in archives are those of the commit: the same binaries are packed as the same bytes. A build id is the checksum of the stripped
//! file, so that it is the same wherever it is built. Debug information is not: zig's own libraries have the folder in theirs.

mod artefacts;
pub(crate) mod bill_of_materials;
mod processor;
mod roots;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use self::artefacts::{GLIBC, artefact, artefacts, file_name, folder};
use self::processor::Processor;
use crate::process::{cargo, command, output, root, run, succeeds, target};
use crate::result::Result;
use crate::setup;
use crate::setup::install;
use crate::setup::requirement::{Purpose, RELEASE_FOLDER};
use crate::setup::tools::tools;

/// What the program and its libraries may take, in bytes.
const MAX_INSTALLED: u64 = 17_500_000;
/// A build id before the file is known: a SHA-1 of zeros.
const NO_BUILD_ID: [u8; 20] = [0; 20];
/// The program and the libraries, where the tree has them.
const BINARIES: [&str; 7] = [
    "bin/omptrace",
    "lib/libomptrace.so",
    "lib/libomptgomp.so",
    "lib/libomptrace_waits.so",
    "lib/libomptmpi.so",
    "lib/libomptmpi4.so",
    "lib/libomptmpi4c.so",
];

/// `cargo xtask dist`.
#[derive(Args, Debug)]
pub(crate) struct Dist {
    /// Also build packages for Debian, Fedora and related distributions, and a list of what was compiled in (SBOM)
    #[arg(long)]
    all: bool,
    /// Only package what was built before
    #[arg(long)]
    no_build: bool,
    /// Build or check for aarch64 on another machine, with a cross compiler and qemu
    #[arg(long, conflicts_with_all = ["roots", "twice"])]
    aarch64: bool,
    /// Only check the contents of dist/: install each artefact in a directory of its own, and trace an example with
    /// it
    #[arg(long, conflicts_with_all = ["all", "no_build"])]
    check: bool,
    /// With --check, also check on fresh systems of Debian 11 and 12; needs root privileges, debootstrap and PyPI
    #[arg(long, requires = "check")]
    roots: bool,
    /// Build a second time from a clean checkout in another directory, and compare all files
    #[arg(long, conflicts_with_all = ["check", "no_build"])]
    twice: bool,
}

/// Builds, packages, or checks.
///
/// # Errors
/// A step failed, or what was made is not as it should be.
pub(crate) fn make(arguments: &Dist, may_install: bool) -> Result<()> {
    setup::ensure(Purpose::Release, may_install)?;
    let processor = match arguments.aarch64 {
        true => Processor::Aarch64,
        false => Processor::Host,
    };
    if processor == Processor::Aarch64 {
        setup::ensure(Purpose::Aarch64, may_install)?;
    }
    if arguments.check {
        check(processor)?;
        return match arguments.roots {
            true => roots::try_all(),
            false => Ok(()),
        };
    }
    let release = Release::new(processor)?;
    if !arguments.no_build {
        release.build()?;
    }
    if folder().exists() {
        fs::remove_dir_all(folder())?;
    }
    fs::create_dir_all(folder())?;
    release.make_tree()?;
    check_binaries(&tree())?;
    release.archive(&tree(), &release.name())?;
    release.archive(&debug_tree(), &format!("{}-debug", release.name()))?;
    release.wheel()?;
    if arguments.all {
        release.deb()?;
        release.rpm()?;
        let file = folder().join(format!("{}.cdx.json", release.name()));
        fs::write(file, bill_of_materials::of_release(&release.version, &release.target)?)?;
    }
    fs::copy(root().join("packaging/install.sh"), folder().join("install.sh"))?;
    write_checksums()?;
    for entry in artefacts()? {
        println!("{:>10}  {}", fs::metadata(&entry)?.len(), entry.display());
    }
    match arguments.twice {
        true => compare_with_a_second(arguments.all),
        false => Ok(()),
    }
}

/// Makes all packages for aarch64, and checks them.
///
/// # Errors
/// As [`make`].
pub(crate) fn make_for_aarch64(may_install: bool) -> Result<()> {
    let made = Dist { all: true, no_build: false, aarch64: true, check: false, roots: false, twice: false };
    make(&made, may_install)?;
    make(&Dist { all: false, check: true, ..made }, may_install)
}

/// Makes the same release from a checkout of its own, and compares.
fn compare_with_a_second(all: bool) -> Result<()> {
    let other = target().join("dist/again");
    let remove = || {
        let words = ["worktree", "remove", "--force"];
        succeeds(command("git", words).arg(&other))
    };
    remove();
    run(command("git", ["worktree", "add", "--detach", "--force"]).arg(&other).arg("HEAD"))?;
    fs::create_dir_all(other.join("target"))?;
    symlink(fs::canonicalize(tools())?, other.join("target/tools"))?;
    let mut words = vec!["xtask", "--no-install", "dist"];
    words.extend(all.then_some("--all"));
    run(cargo(words).current_dir(&other).env_remove("CARGO_TARGET_DIR"))?;
    let sums = |folder: &Path| fs::read_to_string(folder.join(CHECKSUMS));
    let (first, second) = (sums(&folder())?, sums(&other.join("dist"))?);
    remove();
    let differs: Vec<&str> =
        first.lines().filter(|line| !second.contains(line) && !line.ends_with(DEBUG_ARCHIVE)).collect();
    match differs.is_empty() && first.len() == second.len() {
        true => {
            println!("A second build gives the same bytes, except for debug information.");
            Ok(())
        }
        false => Err(format!("a second build differs in:\n{}", differs.join("\n")).into()),
    }
}

/// The end of the name of the archive with debug information.
const DEBUG_ARCHIVE: &str = "-debug.tar.gz";

/// The tree that all packages have.
fn tree() -> PathBuf {
    target().join("dist/tree")
}

/// The debug information of the tree's files.
fn debug_tree() -> PathBuf {
    target().join("dist/debug")
}

/// What is being released.
struct Release {
    version: String,
    processor: Processor,
    /// The target, as `x86_64-unknown-linux-gnu`.
    target: String,
    /// The commit that is checked out.
    commit: String,
    /// The commit's time, in seconds since 1970.
    time: String,
}

impl Release {
    fn new(processor: Processor) -> Result<Release> {
        let of_git = |words: &[&str]| -> Result<String> {
            let printed = String::from_utf8(output(&mut command("git", words))?)?;
            Ok(printed.trim().to_owned())
        };
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => of_git(&["log", "-1", "--format=%ct"])?,
        };
        Ok(Release {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor,
            target: processor.target()?,
            commit: of_git(&["rev-parse", "--short=10", "HEAD"])?,
            time,
        })
    }

    fn architecture(&self) -> &str {
        self.target.split('-').next().unwrap_or(&self.target)
    }

    /// The archive's name without its ending.
    fn name(&self) -> String {
        format!("omptrace-{}-{}-linux", self.version, self.architecture())
    }

    fn build(&self) -> Result<()> {
        let tools = tools().join(RELEASE_FOLDER);
        // The same bytes wherever it is built.
        let flags = format!(
            "--remap-path-prefix={}=/omptrace --remap-path-prefix={}=/cargo -Clink-arg=-Wl,--build-id=0x{}",
            root().display(),
            cargo_home().display(),
            hexadecimal(&NO_BUILD_ID)
        );
        let (major, minor) = GLIBC;
        run(command(tools.join("bin/cargo-zigbuild"), ["zigbuild", "--release", "--locked"])
            .arg(format!("--target={}.{major}.{minor}", self.target))
            .args([
                "--package=omptrace-tracer",
                "--package=omptrace-cli",
                "--package=omptrace-libgomp-adapter",
                "--package=omptrace-waits",
                "--package=omptrace-mpi",
                "--package=omptrace-mpi4",
                "--package=omptrace-mpi-large-count",
            ])
            .env("CARGO_ZIGBUILD_ZIG_PATH", tools.join("ziglang/zig"))
            .env("RUSTFLAGS", flags)
            .env("SOURCE_DATE_EPOCH", &self.time)
            .env("OMPTRACE_COMMIT", &self.commit))
    }

    /// Puts what was built into the tree: stripped, with its debug information in a tree of its own.
    fn make_tree(&self) -> Result<()> {
        for folder in [tree(), debug_tree()] {
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
        }
        let built = target().join(&self.target).join("release");
        for path in BINARIES {
            let source = built.join(file_name(Path::new(path)));
            let stripped = tree().join(path);
            fs::create_dir_all(stripped.parent().expect("it lies in a tree"))?;
            run(self.processor.tool("objcopy", ["--strip-unneeded"]).args([&source, &stripped]))?;
            let id = sha1(&stripped)?;
            set_build_id(&stripped, id)?;
            let digits = hexadecimal(&id);
            let (first, rest) = digits.split_at(2);
            // Where debuggers look below their folder of debug files.
            let debug = debug_tree().join(format!(".build-id/{first}/{rest}.debug"));
            fs::create_dir_all(debug.parent().expect("it lies in a tree"))?;
            let apart = ["--only-keep-debug", "--compress-debug-sections=zlib"];
            run(self.processor.tool("objcopy", apart).args([&source, &debug]))?;
            set_build_id(&debug, id)?;
        }
        install::place_texts(&tree(), || self.processor.run(&tree().join("bin/omptrace"), &[]))?;
        let documents = tree().join("share/doc/omptrace");
        fs::create_dir_all(&documents)?;
        for path in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "docs/manual.md"] {
            let path = root().join(path);
            fs::copy(&path, documents.join(file_name(&path)))?;
        }
        // Packages have the times of files.
        let times = ["-exec", "touch", "--no-dereference", "--date"];
        run(command("find", [tree(), debug_tree()])
            .args(times)
            .arg(format!("@{}", self.time))
            .args(["{}", "+"]))
    }

    /// Packs a folder, whose name in the archive is `name`. The archive is the same whenever it is made.
    fn archive(&self, content: &Path, name: &str) -> Result<()> {
        let options = [
            "--create",
            "--sort=name",
            "--format=gnu",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=u+rw,go=rX",
            "--use-compress-program=gzip --no-name --best",
        ];
        run(command("tar", options)
            .arg(format!("--mtime=@{}", self.time))
            .arg(format!("--transform=s,^\\.,{name},"))
            .arg("--file")
            .arg(folder().join(format!("{name}.tar.gz")))
            .arg("--directory")
            .args([content, Path::new(".")]))
    }

    /// The wheel: the Python package, with the program, the libraries and the man page.
    fn wheel(&self) -> Result<()> {
        let (major, minor) = GLIBC;
        let platform = format!("manylinux_{major}_{minor}_{}", self.architecture());
        run(command("python3", ["packaging/wheel/build.py"])
            .args([&tree(), &folder()])
            .arg(platform)
            .env("PYTHONPATH", tools().join(RELEASE_FOLDER))
            .env("SOURCE_DATE_EPOCH", &self.time))
    }

    /// The package for Debian and its like.
    fn deb(&self) -> Result<()> {
        let options = ["--no-build", "--no-strip", "--deb-version"];
        run(self
            .packager("cargo-deb")
            .args(options)
            .arg(format!("{}-1", self.version))
            .args(["--target", &self.target])
            .arg("--output")
            .arg(folder().join("")))
    }

    /// The package for Fedora, RHEL, SUSE and their like.
    fn rpm(&self) -> Result<()> {
        run(self
            .packager("cargo-generate-rpm")
            .arg("--set-metadata")
            .arg(format!("version = \"{}\"", self.version))
            .args(["--arch", self.architecture()])
            .arg("--output")
            .arg(folder().join("")))
    }

    /// A program that makes packages, in the folder whose `Cargo.toml` says what they consist of.
    fn packager(&self, name: &str) -> Command {
        let none: [&str; 0] = [];
        let mut command = command(tools().join(RELEASE_FOLDER).join("bin").join(name), none);
        command
            .current_dir(root().join("packaging"))
            .env("CARGO_TARGET_DIR", target().join("dist/packages"))
            .env("SOURCE_DATE_EPOCH", &self.time);
        command
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha1(file: &Path) -> Result<[u8; 20]> {
    let printed = output(command("sha1sum", ["--binary"]).arg(file))?;
    let digits = printed.get(..40).ok_or("sha1sum printed no checksum")?;
    let mut sum = [0; 20];
    for (byte, digits) in sum.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits)?, 16)?;
    }
    Ok(sum)
}

/// Writes the build id into a file that was linked with [`NO_BUILD_ID`].
fn set_build_id(file: &Path, id: [u8; 20]) -> Result<()> {
    // `Elf64_Nhdr` of a GNU build id with 20 bytes, and its name.
    const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let mut content = fs::read(file)?;
    let empty = [NOTE, &NO_BUILD_ID].concat();
    let windows = content.windows(empty.len()).enumerate();
    let places: Vec<usize> =
        windows.filter(|(_, window)| *window == empty).map(|(place, _)| place + NOTE.len()).collect();
    let [place] = places[..] else {
        let times = places.len();
        return Err(format!("{}: {times} empty build ids, not 1", file.display()).into());
    };
    content[place..place + id.len()].copy_from_slice(&id);
    fs::write(file, content)?;
    Ok(())
}

fn cargo_home() -> PathBuf {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    named.or_else(home).unwrap_or_default()
}

const CHECKSUMS: &str = "SHA256SUMS";

fn write_checksums() -> Result<()> {
    let names = artefacts()?;
    let names = names.iter().map(|path| file_name(path));
    let sums = output(command("sha256sum", names).current_dir(folder()))?;
    fs::write(folder().join(CHECKSUMS), sums)?;
    Ok(())
}

/// Whether the binaries run on the oldest glibc, and are small enough.
fn check_binaries(tree: &Path) -> Result<()> {
    let mut bytes = 0;
    for path in BINARIES.map(|path| tree.join(path)) {
        bytes += fs::metadata(&path)?.len();
        let printed = output(command("readelf", ["--wide", "--version-info"]).arg(&path))?;
        let printed = String::from_utf8_lossy(&printed);
        if let Some(newest) = newest_glibc(&printed).filter(|newest| *newest > GLIBC) {
            let (major, minor) = newest;
            return Err(format!("{} needs glibc {major}.{minor}", path.display()).into());
        }
    }
    if bytes > MAX_INSTALLED {
        return Err(format!("the binaries take {bytes} bytes, which is more than {MAX_INSTALLED}").into());
    }
    eprintln!("The binaries take {bytes} bytes.");
    Ok(())
}

/// The newest version of glibc that the output of `readelf --version-info` names.
fn newest_glibc(printed: &str) -> Option<(u32, u32)> {
    let versions = printed.split("GLIBC_").skip(1).filter_map(|text| {
        let end = text.find(|character: char| !character.is_ascii_digit() && character != '.');
        let mut numbers = text[..end.unwrap_or(text.len())].split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

/// Installs each artefact in a folder of its own, and traces an example there.
fn check(processor: Processor) -> Result<()> {
    run(command("sha256sum", ["--check", "--quiet", CHECKSUMS]).current_dir(folder()))?;
    let scratch = target().join("dist/check");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    let program = scratch.join("stencil");
    run(processor.tool("gcc", ["-g", "-O2", "-fopenmp", "-o"]).arg(&program).arg("examples/stencil.c"))?;
    let trace = |omptrace: &Path| trace(processor, omptrace, &program);

    let archive = artefact("-linux.tar.gz")?.ok_or("dist/ has no archive")?;
    let unpacked = scratch.join("archive");
    fs::create_dir_all(&unpacked)?;
    run(command("tar", ["--extract", "--strip-components=1", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(&unpacked))?;
    check_binaries(&unpacked)?;
    trace(&unpacked.join("bin/omptrace"))?;

    // What a user does, from the script on.
    let prefix = scratch.join("installed");
    run(processor
        .script(Path::new("packaging/install.sh"))
        .arg("--prefix")
        .arg(&prefix)
        .env("OMPTRACE_RELEASE", folder()))?;
    trace(&prefix.join("bin/omptrace"))?;

    let wheel = artefact(".whl")?.ok_or("dist/ has no wheel")?;
    let environment = scratch.join("environment");
    run(command("python3", ["-m", "venv"]).arg(&environment))?;
    // pip refuses a wheel for another processor by its name, and nothing else.
    let wheel = match processor {
        Processor::Host => wheel,
        Processor::Aarch64 => {
            let (renamed, name) =
                (scratch.join("wheel"), format!("omptrace-{}-py3-none-any.whl", env!("CARGO_PKG_VERSION")));
            fs::create_dir_all(&renamed)?;
            fs::copy(&wheel, renamed.join(&name))?;
            renamed.join(name)
        }
    };
    run(command(environment.join("bin/pip"), ["install", "--quiet", "--no-index"]).arg(&wheel))?;
    trace(&environment.join("bin/omptrace"))?;

    if let Some(package) = artefact(".deb")? {
        let unpacked = scratch.join("deb");
        run(command("dpkg-deb", ["--extract"]).args([&package, &unpacked]))?;
        trace(&unpacked.join("usr/bin/omptrace"))?;
    }
    if let Some(package) = artefact(".rpm")? {
        let unpacked = scratch.join("rpm");
        fs::create_dir_all(&unpacked)?;
        run(command("rpm2archive", [&package]).current_dir(&unpacked))?;
        let archive = package.with_added_extension("tgz");
        run(command("tar", ["--extract", "--file"]).arg(&archive).arg("--directory").arg(&unpacked))?;
        fs::remove_file(&archive)?;
        trace(&unpacked.join("usr/bin/omptrace"))?;
    }
    eprintln!("Each artefact traces the example.");
    Ok(())
}

/// Records the program by this `omptrace`, which must find its own libraries, and by the libraries alone. Both traces must be sound, and
/// have an answer.
fn trace(processor: Processor, omptrace: &Path, program: &Path) -> Result<()> {
    const ARGUMENTS: [&str; 2] = ["400", "5"];

    let trace = program.with_added_extension("omptrace");
    let begin = || match trace.exists() {
        true => fs::remove_file(&trace),
        false => Ok(()),
    };
    let look = || -> Result<()> {
        run(processor.run(omptrace, &[]).arg("check").arg(&trace))?;
        let stats = String::from_utf8(output(processor.run(omptrace, &[]).arg("stats").arg(&trace))?)?;
        match stats.contains("stencil.c:") {
            true => Ok(()),
            false => Err(format!("the answer names no line of the program:\n{stats}").into()),
        }
    };
    begin()?;
    run(processor
        .run(omptrace, &[])
        .args(["record", "--quiet", "-o"])
        .args([&trace, &processor.command_of(program)?])
        .args(ARGUMENTS)
        .env("OMP_NUM_THREADS", "2")
        .env_remove("LD_LIBRARY_PATH"))?;
    look()?;

    begin()?;
    let lib = omptrace.with_file_name("../lib");
    // Packages of systems have a folder for those that nobody links with.
    let lib = Some(lib.join("omptrace")).filter(|folder| folder.exists()).unwrap_or(lib);
    let library = |name: &str| lib.join(name).display().to_string();
    let variables = [
        ("OMP_TOOL_LIBRARIES", library("libomptrace.so")),
        ("LD_PRELOAD", library("libomptgomp.so")),
        ("OMPTRACE_OUTPUT", trace.display().to_string()),
    ];
    run(processor.run(program, &variables).args(ARGUMENTS).env("OMP_NUM_THREADS", "2"))?;
    look()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_by_number() {
        let printed = "0x0 Name: GLIBC_2.9  Flags\n Name: GLIBC_2.17\n GLIBC_2.2.5 GLIBC_PRIVATE";
        assert_eq!(newest_glibc(printed), Some((2, 17)));
        assert_eq!(newest_glibc("Name: GCC_3.0"), None);
    }
}
