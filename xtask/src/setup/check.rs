//! Whether a requirement is met: by use, or by all files of the version that is wanted.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::{command, output, succeeds, succeeds_with_input};
use crate::setup::requirement::{Requirement, Source, Test, Unpack};
use crate::setup::tools::{MARKER, MODULES, openmp_flags, tools};

impl Requirement {
    /// Whether it is there.
    pub(crate) fn is_met(&self) -> bool {
        self.test.passes(&self.source)
    }
}

impl Test {
    fn passes(&self, source: &Source) -> bool {
        match self {
            Test::Runs(words) => succeeds(&mut words_command(words)),
            Test::Prints(words, text) => printed(words).is_some_and(|printed| printed.contains(text)),
            Test::Compiles(compiler, source) => compiles(compiler, source),
            Test::CompilesForOpenMp(flags, source) => {
                let ours = openmp_flags();
                let ours = ours.iter().map(String::as_str);
                let words: Vec<&str> =
                    ["clang-22"].into_iter().chain(ours).chain(flags.iter().copied()).collect();
                compiles(&words, source)
            }
            Test::File(path) => Path::new(path).exists(),
            Test::All(tests) => tests.iter().all(|test| test.passes(source)),
            Test::Unpacked => source.is_unpacked(&tools()),
        }
    }
}

impl Source {
    /// Whether all of it lies in the folder `tools`, of the version that is wanted. What was interrupted is not there.
    fn is_unpacked(&self, tools: &Path) -> bool {
        match self {
            Source::Apt(_) | Source::Rustup(_) => false,
            Source::Unpack(unpack) => {
                let folder = tools.join(unpack.folder);
                let is_of_package = fs::read_to_string(folder.join(MARKER))
                    .is_ok_and(|package| package == unpack.package.id());
                is_of_package && unpack.files().all(|name| folder.join(name).exists())
            }
            Source::Npm(package) => {
                let (name, version) = name_and_version(package);
                npm_version(&tools.join("node_modules").join(name))
                    .is_some_and(|installed| version.is_none_or(|wanted| is_version(&installed, wanted)))
            }
            Source::Pip { folder, modules, .. } => {
                let folder = tools.join(folder);
                fs::read_to_string(folder.join(MODULES)).is_ok_and(|installed| installed == modules.join(" "))
                    && all_information(&folder).len() >= modules.len()
                    && all_information(&folder)
                        .iter()
                        .all(|information| has_all_modules(&folder, information))
            }
            Source::Cargo(package) => {
                let (name, version) = name_and_version(package);
                let noted = format!("\"{name} {} (", version.unwrap_or_default());
                tools.join("bin").join(name).is_file()
                    && fs::read_to_string(tools.join(".crates.toml"))
                        .is_ok_and(|installed| installed.contains(&noted))
            }
        }
    }
}

impl Unpack {
    /// Names of the files that must lie in the folder. Those of folders that are wanted are not known.
    fn files(&self) -> impl Iterator<Item = &'static str> {
        let last = |path: &'static str| path.rsplit('/').next().unwrap_or(path);
        let files = self.wanted.iter().map(move |path| last(path));
        let files = files.filter(|name| name.contains(".so") || name.ends_with(".h"));
        files.chain(self.links.iter().copied())
    }
}

/// `("puppeteer-core", Some("24"))` for `puppeteer-core@24`, `("@scope/name", Some("1"))` for `@scope/name@1`.
fn name_and_version(package: &str) -> (&str, Option<&str>) {
    match package.rsplit_once('@') {
        Some((name, version)) if !name.is_empty() => (name, Some(version)),
        _ => (package, None),
    }
}

/// The version of the package that npm has put into this folder.
fn npm_version(folder: &Path) -> Option<String> {
    let package = fs::read(folder.join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&package).ok()?;
    Some(package["version"].as_str()?.to_owned())
}

/// Whether `installed` is `wanted`, or the release of a series that `wanted` names, as 24.1.0 is of 24.
fn is_version(installed: &str, wanted: &str) -> bool {
    installed.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The names of the folders in which pip notes what it has installed into `folder`.
fn all_information(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".dist-info"))
        .collect()
}

/// Whether each file is there that pip has installed with a package, by its list of them.
fn has_all_modules(folder: &Path, information: &str) -> bool {
    let Ok(list) = fs::read_to_string(folder.join(information).join("RECORD")) else {
        return false;
    };
    // Programs lie in `bin` of the folder that pip was given, and the list has them as `../../bin/NAME`.
    let mut files =
        list.lines().filter_map(|line| line.split(',').next()).filter(|name| !name.starts_with('"'));
    files.all(|name| folder.join(name.trim_start_matches("../")).exists())
}

/// Whether the compiler, with its options, makes a program of `source`.
fn compiles(compiler: &[&str], source: &str) -> bool {
    static PROGRAMS: AtomicUsize = AtomicUsize::new(0);

    let language: &[&str] = match compiler.contains(&"-x") {
        true => &[],
        false => &["-x", "c"],
    };
    // Relaxed: only the number counts.
    let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let name = format!("omptrace-xtask-{}-{number}", std::process::id());
    let program = std::env::temp_dir().join(name);
    let mut command = command(compiler[0], &compiler[1..]);
    command.args(language).args(["-", "-o"]).arg(&program);
    let is_compiled = succeeds_with_input(&mut command, source.as_bytes());
    // Where it failed there is none.
    let _ = fs::remove_file(&program);
    is_compiled
}

fn words_command(words: &[&str]) -> Command {
    command(words[0], &words[1..])
}

/// What the command prints; `None` where it cannot be run, or fails.
fn printed(words: &[&str]) -> Option<String> {
    String::from_utf8(output(&mut words_command(words)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;
    use crate::setup::requirement::{Package, mb};

    /// An empty folder of the test's own.
    fn folder(test: &str) -> PathBuf {
        let name = format!("omptrace-xtask-{}-{test}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // One of an earlier process of this number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As openmpi-bin without libopenmpi-dev: the wrapper is there, and what it would compile with is not.
    #[test]
    fn a_compiler_without_its_header_does_not_compile() {
        const SOURCE: &str = "#include <half.h>\nint main(void) { return HALF; }\n";
        let folder = folder("header");
        let wrapper = folder.join("wrapper");
        let include = folder.join("include");
        write(wrapper.clone(), &format!("#!/bin/sh\nexec cc -I{} \"$@\"\n", include.display()));
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        let wrapper = wrapper.to_str().unwrap();
        assert!(!compiles(&[wrapper], SOURCE));
        write(include.join("half.h"), "#define HALF 0\n");
        assert!(compiles(&[wrapper], SOURCE));
        assert!(!compiles(&["no-such-compiler"], SOURCE));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_lacks_a_file_or_is_of_another_package_is_not_unpacked() {
        const WANTED: Source = Source::Unpack(Unpack {
            package: Package::Deb("libomp5-99"),
            size: mb(1, 1),
            wanted: &["/lib/libomp.so.5"],
            folder: "runtimes/llvm-99",
            links: &["libomp.so"],
        });
        let tools = folder("unpack");
        let runtime = tools.join("runtimes/llvm-99");
        write(runtime.join(MARKER), "libomp5-99");
        write(runtime.join("libomp.so.5"), "");
        assert!(!WANTED.is_unpacked(&tools));
        write(runtime.join("libomp.so"), "");
        assert!(WANTED.is_unpacked(&tools));
        write(runtime.join(MARKER), "libomp5-98");
        assert!(!WANTED.is_unpacked(&tools));
        fs::remove_dir_all(tools).unwrap();
    }

    #[test]
    fn a_package_of_npm_that_is_old_or_incomplete_is_not_there() {
        let tools = folder("npm");
        let package = tools.join("node_modules/@scope/name/package.json");
        let is_there = || Source::Npm("@scope/name@2").is_unpacked(&tools);
        assert!(!is_there());
        write(package.clone(), "{}");
        assert!(!is_there());
        write(package.clone(), r#"{ "version": "1.9.0" }"#);
        assert!(!is_there());
        write(package.clone(), r#"{ "version": "20.0.0" }"#);
        assert!(!is_there());
        write(package, r#"{ "version": "2.1.0" }"#);
        assert!(is_there());
        fs::remove_dir_all(tools).unwrap();
    }

    #[test]
    fn modules_of_python_are_there_when_each_of_their_files_is() {
        let tools = folder("pip");
        let source = Source::Pip { folder: "python", modules: &["name==1.2"], size: mb(1, 1) };
        let is_there = || source.is_unpacked(&tools);
        let python = tools.join("python");
        write(
            python.join("name-1.2.dist-info/RECORD"),
            "name/__init__.py,sha256=x,1\n../../bin/name,sha256=y,2\nname-1.2.dist-info/RECORD,,\n",
        );
        write(python.join("name/__init__.py"), "");
        write(python.join(MODULES), "name==1.2");
        assert!(!is_there());
        write(python.join("bin/name"), "");
        assert!(is_there());
        write(python.join(MODULES), "name==1.1");
        assert!(!is_there());
        fs::remove_dir_all(tools).unwrap();
    }

    #[test]
    fn a_program_of_another_version_is_not_there() {
        let tools = folder("cargo");
        let is_there = || Source::Cargo("name@0.20.0").is_unpacked(&tools);
        write(tools.join("bin/name"), "");
        write(tools.join(".crates.toml"), "\"name 0.20.1 (registry+x)\" = [\"name\"]\n");
        assert!(!is_there());
        write(tools.join(".crates.toml"), "\"name 0.20.0 (registry+x)\" = [\"name\"]\n");
        assert!(is_there());
        fs::remove_dir_all(tools).unwrap();
    }
}
