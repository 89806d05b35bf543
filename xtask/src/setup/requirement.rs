//! What a requirement of the demo and the tests is: its purpose, how to find out whether it is there, where it comes from.

use std::path::PathBuf;

use crate::setup::tools::{MARKER, tools};

/// Where the programs that make releases lie, below the folder of tools.
pub(crate) const RELEASE_FOLDER: &str = "release";

/// The purpose of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Demo,
    Tests,
    Release,
    /// Building and running programs for aarch64.
    Aarch64,
    Site,
}

impl Purpose {
    /// Whether what is needed for `other` is needed for this, too: the tests need what the demo and programs for aarch64 need.
    pub(crate) fn includes(self, other: Purpose) -> bool {
        self == other || self == Purpose::Tests && matches!(other, Purpose::Demo | Purpose::Aarch64)
    }
}

/// One thing that must be there.
#[derive(Debug)]
pub(crate) struct Requirement {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    pub(crate) purpose: Purpose,
    /// How to find out whether it is there.
    pub(crate) test: Test,
    /// Where it comes from.
    pub(crate) source: Source,
}

/// How to find out whether a thing is there: by what it is needed for, not by files of some names. A package may be installed
/// without those that it is of use with.
#[derive(Debug)]
pub(crate) enum Test {
    /// The command ends with status 0.
    Runs(&'static [&'static str]),
    /// The command prints this text.
    Prints(&'static [&'static str], &'static str),
    /// The compiler, with these options, makes a program of this source.
    Compiles(&'static [&'static str], &'static str),
    /// The same of clang-22 with [`openmp_flags`] and these.
    CompilesForOpenMp(&'static [&'static str], &'static str),
    /// The file is there.
    File(&'static str),
    /// All of them.
    All(&'static [Test]),
    /// It was unpacked by us, from the version that the source names, and is complete.
    Unpacked,
}

/// Where a thing comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// Debian packages, installed.
    Apt(&'static [&'static str]),
    /// Files of a package that is not installed: LLVM's runtimes exclude one another.
    Unpack(Unpack),
    /// A package of npm's registry, in `target/tools/node_modules`.
    Npm(&'static str),
    /// Modules of PyPI that belong together, in a folder below `target/tools`. The list is complete: nothing else is
    /// installed with them.
    Pip { folder: &'static str, modules: &'static [&'static str], size: Size },
    /// A program of crates.io, in `target/tools/bin`.
    Cargo(&'static str),
    /// The standard library of another target, beside the toolchain's own.
    Rustup(&'static str),
}

/// What is downloaded of a thing, and what is kept of it, in MB, of the version that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) download: u32,
    pub(crate) disk: u32,
}

/// MB downloaded, and MB kept.
pub(super) const fn mb(download: u32, disk: u32) -> Size {
    Size { download, disk }
}

/// Files taken out of a package.
#[derive(Debug)]
pub(crate) struct Unpack {
    pub(crate) package: Package,
    pub(crate) size: Size,
    /// The files or folders wanted: of each, the first in order of path whose path ends so.
    pub(crate) wanted: &'static [&'static str],
    /// The folder below `target/tools` that they come to lie in; a folder's content comes to lie there directly.
    pub(crate) folder: &'static str,
    /// Further names of the first: symbolic links beside it.
    pub(crate) links: &'static [&'static str],
}

/// A package to download and take apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Package {
    /// A Debian package, by name.
    Deb(&'static str),
    /// A Debian package of another architecture, `NAME:ARCHITECTURE`. Only its list is fetched: the system's stay as they are.
    ForeignDeb(&'static str),
    /// A wheel of PyPI, `NAME==VERSION`.
    Wheel(&'static str),
}

impl Package {
    /// The package as its own tool wants it named; kept in the folder to show what it was made from.
    pub(crate) fn id(&self) -> &'static str {
        match self {
            Package::Deb(name) | Package::ForeignDeb(name) => name,
            Package::Wheel(specification) => specification,
        }
    }
}

impl Unpack {
    /// Where the files come to lie.
    pub(crate) fn folder(&self) -> PathBuf {
        tools().join(self.folder)
    }

    /// The file that says which package the folder was made from.
    pub(crate) fn marker(&self) -> PathBuf {
        self.folder().join(MARKER)
    }
}

impl Source {
    /// What it takes, of which its package manager says nothing before; apt does.
    pub(crate) fn size(&self) -> Size {
        match self {
            Source::Apt(_) => mb(0, 0),
            Source::Unpack(unpack) => unpack.size,
            Source::Npm(_) => mb(4, 15),
            Source::Pip { size, .. } => *size,
            Source::Cargo(_) => mb(20, 25),
            Source::Rustup(_) => mb(27, 110),
        }
    }

    /// The command that a person would type, or nearly, for the list of what will be done.
    pub(crate) fn describe(&self) -> String {
        match self {
            Source::Apt(packages) => format!("apt-get install {}", packages.join(" ")),
            Source::Unpack(unpack) => match unpack.package {
                Package::Deb(name) | Package::ForeignDeb(name) => {
                    format!("apt-get download {name}, unpacked")
                }
                Package::Wheel(specification) => format!("pip download {specification}, unpacked"),
            },
            Source::Npm(package) => format!("npm install {package}"),
            Source::Pip { modules: [module], .. } => format!("pip install {module}, into its own directory"),
            Source::Pip { modules, .. } => {
                format!("pip install {} and its dependencies, into their own directory", modules[0])
            }
            Source::Cargo(package) => format!("cargo install --debug {package}"),
            Source::Rustup(target) => format!("rustup target add {target}"),
        }
    }
}
