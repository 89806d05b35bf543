//! Code addresses of real programs get the names that their sources have; or none, where the files are not those that
//! were traced.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_symbols::{KEY, Options, Problem, Table, resolve};
use omptrace_tests::env::{Compiler, compile, omptrace_program, root, runtime, tool_library};
use omptrace_trace_format::event::{Event, Module};
use omptrace_trace_format::field::{Address, ModuleChange};
use omptrace_trace_format::{InDoubt, Reader, seal};
use serde_json::json;
use tempfile::TempDir;

const REGIONS: &str = "names_regions.c";

/// A program, in a folder of its own where it can be changed, and its trace.
struct Traced {
    folder: TempDir,
    program: PathBuf,
    trace: PathBuf,
    /// The output of the program.
    printed: String,
}

/// Compiles a program of the tests' folder and copies it to where it can be changed.
fn copy_of(source: &str, compiler: Compiler, flags: &[&str]) -> Traced {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let program = folder.path().join("program");
    let compiled = compile(&format!("tests/programs/{source}"), compiler, flags);
    fs::copy(compiled, &program).expect("programs can be copied");
    Traced { program, trace: folder.path().join("program.omptrace"), printed: String::new(), folder }
}

impl Traced {
    /// Runs the program under the tracer.
    fn run(mut self, arguments: &[&Path]) -> Traced {
        let libomp = runtime("llvm-19");
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("LD_LIBRARY_PATH", &libomp)
            .env("LD_PRELOAD", libomp.join("libomp.so.5"))
            .env("OMP_TOOL_LIBRARIES", tool_library())
            .env("OMPTRACE_OUTPUT", &self.trace);
        // A test beside this one may have forked while the copy of the program was being written.
        let output = loop {
            match command.output() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => continue,
                output => break output.expect("the program can be run"),
            }
        };
        assert!(output.status.success(), "{command:?}: {output:?}");
        self.printed = String::from_utf8_lossy(&output.stdout).into_owned();
        self
    }

    fn resolve(&self) -> Table {
        self.resolve_with(&[])
    }

    fn resolve_with(&self, debug_dirs: &[&Path]) -> Table {
        let debug_dirs = debug_dirs.iter().map(|folder| folder.into()).collect();
        let options = Options { debug_dirs, ..Options::default() };
        resolve(&self.open(), &options)
    }

    fn open(&self) -> Reader {
        Reader::open(&self.trace).expect("a trace")
    }

    /// Name and function of each parallel region and task, in the order of their creation.
    fn names(&self, table: &Table) -> Vec<String> {
        names(&self.open(), table)
    }
}

fn names(reader: &Reader, table: &Table) -> Vec<String> {
    let streams = reader.streams().iter();
    let mut records: Vec<_> = streams.flat_map(|stream| reader.events(stream)).collect();
    records.sort_by_key(|record| record.ticks);
    let mut modules: Vec<Module<'_>> = Vec::new();
    let mut names = Vec::new();
    for record in &records {
        match &record.event {
            Event::Module(module) if module.change == ModuleChange::unloaded => {
                modules.retain(|loaded| loaded.path != module.path);
            }
            Event::Module(module) => modules.push(Module::clone(module)),
            Event::ParallelBegin(event) => names.push(name(&modules, event.codeptr_ra, table)),
            Event::TaskCreate(event) if event.codeptr_ra.0 != 0 => {
                names.push(name(&modules, event.codeptr_ra, table));
            }
            _ => {}
        }
    }
    names
}

fn name(modules: &[Module<'_>], codeptr_ra: Address, table: &Table) -> String {
    let holds = |module: &&Module<'_>| (module.start.0..module.end.0).contains(&codeptr_ra.0);
    let module = modules.iter().rev().find(holds).expect("a module");
    let symbol = table.lookup(module, codeptr_ra);
    match symbol.function {
        Some(function) if symbol.line.is_some() => format!("{symbol} {function}"),
        _ => symbol.to_string(),
    }
}

/// The line of a source that has this comment, as names show it.
fn place(source: &str, comment: &str, function: &str) -> String {
    let path = root().join("tests/programs").join(source);
    let text = fs::read_to_string(&path).expect("a source");
    let has_comment =
        |line: &&str| line.ends_with(&format!("/* {comment} */")) || line.ends_with(&format!("! {comment}"));
    let before = text.lines().take_while(|line| !has_comment(line)).count();
    assert!(before < text.lines().count(), "{source} has no {comment}");
    format!("{source}:{} {function}", before + 1)
}

fn regions() -> Vec<String> {
    vec![
        place(REGIONS, "inlined region", "inlined"),
        place(REGIONS, "region with task", "with_task"),
        place(REGIONS, "task", "with_task"),
    ]
}

fn problems(table: &Table) -> Vec<Problem> {
    table.problems().map(|(_, problem)| problem).collect()
}

fn run(program: &str, arguments: &[&str], folder: &Path) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
}

#[test]
fn programs_have_names_wherever_they_are_loaded() {
    for (compiler, flags) in [
        (Compiler::Clang22, &["-fPIE", "-pie"][..]),
        (Compiler::Clang22, &["-fno-pie", "-no-pie"]),
        (Compiler::Clang22, &["-O3"]),
        (Compiler::Clang22, &["-gdwarf-4", "-gz=zlib"]),
        (Compiler::Clang22, &["-gline-tables-only"]),
        (Compiler::Clang14, &[]),
        (Compiler::Gcc, &["-pie"]),
        (Compiler::Gcc, &["-no-pie"]),
    ] {
        let traced = copy_of(REGIONS, compiler, flags).run(&[]);
        let table = traced.resolve();
        assert_eq!(traced.names(&table), regions(), "{compiler:?} {flags:?}");
        assert_eq!(problems(&table), []);
    }
}

#[test]
fn cpp_is_demangled() {
    const SOURCE: &str = "names_templates.cpp";
    for (compiler, lambda) in [
        (Compiler::Clang22, "main::$_0::operator()(int) const"),
        (Compiler::Gcc, "main::{lambda(int)#1}::operator()(int) const"),
    ] {
        let traced = copy_of(SOURCE, compiler, &["-lstdc++"]).run(&[]);
        let mut names = traced.names(&traced.resolve());
        names.sort();
        let mut expected = [
            place(SOURCE, "lambda", lambda),
            place(SOURCE, "member", "grid::Grid::step()"),
            place(SOURCE, "template", "count<double>()"),
        ];
        expected.sort();
        assert_eq!(names, expected, "{compiler:?}");
    }
}

#[test]
fn fortran_is_named_as_written() {
    const SOURCE: &str = "names_fortran.f90";
    // Where its file of the module goes.
    let modules = format!("-J{}", std::env::temp_dir().display());
    let traced = copy_of(SOURCE, Compiler::Gfortran, &[&modules]).run(&[]);
    assert_eq!(
        traced.names(&traced.resolve()),
        [
            place(SOURCE, "main program", "relaxation"),
            place(SOURCE, "module procedure", "advance"),
            place(SOURCE, "external procedure", "outside"),
        ]
    );
}

#[test]
fn libraries_that_take_turns_at_one_address_keep_their_own_names() {
    const SOURCE: &str = "tests/programs/names_library.c";
    let library = |flags: &[&str]| {
        let flags = [&["-shared", "-fPIC"], flags].concat();
        compile(SOURCE, Compiler::Clang22, &flags)
    };
    let libraries = [library(&[]), library(&["-DSECOND"])];
    let traced = copy_of("names_host.c", Compiler::Clang22, &[]);
    let traced = traced.run(&[&libraries[0], &libraries[1], &libraries[0]]);
    let mut addresses: Vec<&str> = traced.printed.lines().take(3).collect();
    addresses.dedup();
    assert_eq!(addresses.len(), 1, "{}", traced.printed);
    let first = place("names_library.c", "library", "count");
    let names = traced.names(&traced.resolve());
    assert_eq!(names, [&first, "second.c:103 count", &first]);
}

#[test]
fn a_stripped_program_has_the_names_of_its_debug_file() {
    for build_id in ["sha1", "none"] {
        let flag = format!("-Wl,--build-id={build_id}");
        let copy = copy_of(REGIONS, Compiler::Clang22, &[&flag]);
        let folder = copy.folder.path().to_owned();
        run("objcopy", &["--only-keep-debug", "program", "program.debug"], &folder);
        run("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program"], &folder);
        let traced = copy.run(&[]);
        assert_eq!(traced.names(&traced.resolve()), regions(), "{build_id}");

        let elsewhere = folder.join("elsewhere");
        fs::create_dir(&elsewhere).expect("a folder");
        fs::rename(folder.join("program.debug"), elsewhere.join("program.debug")).expect("a file");
        let without = traced.resolve();
        assert_eq!(problems(&without), [Problem::NoDebugInfo], "{build_id}");
        let names = traced.names(&without);
        assert!(names[0].starts_with("program+0x"), "{names:?}");
        let with = traced.resolve_with(&[&elsewhere]);
        assert_eq!(traced.names(&with), regions(), "{build_id}");

        let other = copy_of(REGIONS, Compiler::Clang22, &[&flag, "-O0"]);
        fs::copy(&other.program, elsewhere.join("program.debug")).expect("a file");
        let with_other = traced.resolve_with(&[&elsewhere]);
        assert_eq!(problems(&with_other), [Problem::DebugFileDiffers]);
        assert_eq!(traced.names(&with_other), names);
    }
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    let traced = copy_of(REGIONS, Compiler::Clang22, &["-Wl,--build-id=0x12ab34cd"]).run(&[]);
    let folder = traced.folder.path().join("symbols/.build-id/12");
    fs::create_dir_all(&folder).expect("a folder");
    fs::rename(&traced.program, folder.join("ab34cd.debug")).expect("a file");
    assert_eq!(problems(&traced.resolve()), [Problem::Missing]);
    let table = traced.resolve_with(&[&traced.folder.path().join("symbols")]);
    assert_eq!(traced.names(&table), regions());
    assert_eq!(problems(&table), []);
}

#[test]
fn without_debug_information_functions_are_named() {
    let traced = copy_of(REGIONS, Compiler::Clang22, &["-g0"]).run(&[]);
    let table = traced.resolve();
    assert_eq!(problems(&table), [Problem::NoDebugInfo]);
    let names = traced.names(&table);
    assert!(names[0].starts_with("main+0x"), "{names:?}");
    assert!(names[1].starts_with("with_task+0x"), "{names:?}");
}

#[test]
fn a_rebuilt_program_gives_no_wrong_line() {
    for build_id in ["sha1", "none"] {
        let flag = format!("-Wl,--build-id={build_id}");
        let traced = copy_of(REGIONS, Compiler::Clang22, &[&flag]).run(&[]);
        let other = copy_of(REGIONS, Compiler::Clang22, &[&flag, "-O0"]);
        fs::copy(&other.program, &traced.program).expect("a file");
        let table = traced.resolve();
        assert_eq!(problems(&table), [Problem::Changed], "{build_id}");
        let names = traced.names(&table);
        let is_offset = |name: &String| name.starts_with("program+0x");
        assert!(names.iter().all(is_offset), "{names:?}");
    }
}

#[test]
fn a_trace_keeps_its_names_without_the_program() {
    let traced = copy_of(REGIONS, Compiler::Clang22, &[]).run(&[]);
    let table = traced.resolve();
    seal(&traced.trace, json!({ KEY: table.to_json() }), InDoubt::Refuse, &mut |_, _| {}).expect("sealed");
    let elsewhere = TempDir::new().expect("a folder");
    let copy = elsewhere.path().join("copy.omptrace");
    fs::copy(&traced.trace, &copy).expect("a file");
    drop(traced);

    let reader = Reader::open(&copy).expect("a trace");
    let mut brought_along = Table::from_metadata(reader.metadata()).expect("a table");
    assert_eq!(brought_along, table);
    assert_eq!(names(&reader, &brought_along), regions());
    // Looking again finds nothing, and takes nothing away.
    let now = resolve(&reader, &Options::default());
    assert_eq!(problems(&now), [Problem::Missing]);
    brought_along.update(now);
    assert_eq!(names(&reader, &brought_along), regions());
    assert_eq!(problems(&brought_along), []);
}

/// Runs `omptrace`; gives its exit status and what it wrote to stdout.
fn omptrace(arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let libomp = runtime("llvm-19");
    let mut command = Command::new(omptrace_program());
    command.args(arguments).current_dir(folder).env("LD_LIBRARY_PATH", &libomp);
    let output = command.output().expect("omptrace can be run");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The text export of `t.omptrace`.
fn text(folder: &Path) -> String {
    let (status, text) = omptrace(&["convert", "t.omptrace", "--to", "text", "-o", "-"], folder);
    assert_eq!(status, Some(0));
    text
}

/// The region with a task, as exports name it.
fn region_with_task() -> String {
    let place = place(REGIONS, "region with task", "");
    format!("!$omp parallel @{}", place.trim())
}

#[test]
fn record_stores_the_names() {
    let copy = copy_of(REGIONS, Compiler::Clang22, &[]);
    let folder = copy.folder.path();
    let record = ["record", "-o", "t.omptrace", "--", "./program"];
    assert_eq!(omptrace(&record, folder).0, Some(0));
    fs::remove_file(&copy.program).expect("a file");
    assert!(text(folder).contains(&region_with_task()));
    assert_eq!(omptrace(&["symbolize", "t.omptrace"], folder).0, Some(0));
    assert!(text(folder).contains(&region_with_task()));
}

#[test]
fn names_can_be_stored_later() {
    let copy = copy_of(REGIONS, Compiler::Clang22, &[]);
    let folder = copy.folder.path();
    let record = ["record", "--symbols", "later", "-o", "t.omptrace", "--", "./program"];
    assert_eq!(omptrace(&record, folder).0, Some(0));
    assert!(text(folder).contains(&region_with_task()));

    let elsewhere = folder.join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    fs::rename(&copy.program, elsewhere.join("program")).expect("a file");
    assert!(text(folder).contains("!$omp parallel @program+0x"));
    assert_eq!(omptrace(&["symbolize", "t.omptrace"], folder).0, Some(1));
    let symbolize = ["symbolize", "t.omptrace", "--debug-dir", "elsewhere"];
    assert_eq!(omptrace(&symbolize, folder).0, Some(0));
    fs::remove_dir_all(&elsewhere).expect("a folder");
    assert!(text(folder).contains(&region_with_task()));
}

#[test]
fn names_can_be_left_out() {
    let copy = copy_of(REGIONS, Compiler::Clang22, &[]);
    let folder = copy.folder.path();
    let record = ["record", "--symbols", "off", "-o", "t.omptrace", "--", "./program"];
    assert_eq!(omptrace(&record, folder).0, Some(0));
    assert!(text(folder).contains("!$omp parallel @program+0x"));
}

#[test]
fn an_address_of_the_runtime_takes_the_place_around() {
    let copy = copy_of("names_inside.c", Compiler::Clang22, &["-O2"]);
    let folder = copy.folder.path();
    let record = ["record", "-o", "t.omptrace", "--", "./program"];
    assert_eq!(omptrace(&record, folder).0, Some(0));
    let text = text(folder);
    let around = place("names_inside.c", "around", "");
    assert!(text.contains(&format!("!$omp barrier inside @{}", around.trim())), "{text}");
    assert!(text.contains("!$omp taskloop @names_inside.c:"), "{text}");
    assert!(text.contains("!$omp task @names_inside.c:"), "{text}");
    assert!(!text.contains("libomp") && !text.contains("__kmp"), "{text}");
}

/// The runtime finds on the stack the place where the function was called that ended by a jump to it.
#[test]
fn a_line_of_a_caller_is_not_that_of_the_construct() {
    const SOURCE: &str = "tail_calls.c";
    let ways: [&[&str]; 4] = [
        &["-O2"],
        &["-O2", "-fno-plt"],
        &["-O2", "-fcf-protection=full"],
        // The function is another module's to its caller.
        &["-O2", "-fPIC", "-rdynamic", "-Wl,-z,lazy"],
    ];
    for (compiler, flags) in [Compiler::Clang22, Compiler::Gcc]
        .into_iter()
        .flat_map(|compiler| ways.map(|flags| (compiler, flags)))
    {
        let copy = copy_of(SOURCE, compiler, flags);
        let folder = copy.folder.path();
        let record = ["record", "-o", "t.omptrace", "--", "./program"];
        assert_eq!(omptrace(&record, folder).0, Some(0));
        let text = text(folder);
        let at = |comment: &str| place(SOURCE, comment, "").trim().to_owned();
        for (construct, comment) in [
            ("!$omp parallel", "one"),
            ("!$omp parallel", "two"),
            ("!$omp parallel", "three"),
            ("omp_set_lock", "four"),
        ] {
            let of_caller = format!("{construct} @{}", at(comment));
            let around = format!("{construct} inside @{}", at(comment));
            // GCC's regions are known by the functions that it made of them, whoever calls the runtime.
            let has_function = compiler == Compiler::Gcc && construct == "!$omp parallel";
            assert!(
                !text.contains(&of_caller) && text.contains(&around) != has_function,
                "{compiler:?} {flags:?}: {of_caller}\n{text}"
            );
        }
        let own = format!("!$omp parallel @{SOURCE}:");
        let destroyed = format!("omp_destroy_lock @{}", at("destroyed"));
        for own in [own, destroyed] {
            assert!(text.contains(&own), "{compiler:?} {flags:?}: {own}\n{text}");
        }
    }
}

/// One file is one place, whichever way debug information names it, and files of one name look different.
#[test]
fn files_are_known_by_their_paths_and_distinguished_by_their_names() {
    let copy = copy_of("names_of_files.c", Compiler::Clang22, &["-O0"]);
    let folder = copy.folder.path();
    let record = ["record", "-o", "t.omptrace", "--", "./program"];
    assert_eq!(omptrace(&record, folder).0, Some(0));
    let (_, stats) = omptrace(&["stats", "--json", "t.omptrace"], folder);
    let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
    let regions = stats["regions"].as_array().expect("a list");
    let mut found: Vec<(&str, u64, u64)> = regions
        .iter()
        .map(|row| {
            assert_eq!((&row["construct"], &row["position"]), (&json!("parallel"), &json!("at")));
            let file = row["file"].as_str().expect("a file");
            assert!(!file.contains("/."), "{file}");
            let parts: Vec<_> = file.rmatch_indices('/').map(|(at, _)| at).collect();
            let line = row["line"].as_u64().expect("a line");
            (&file[parts[1] + 1..], line, row["visits"].as_u64().expect("a number"))
        })
        .collect();
    found.sort_unstable();
    let one_file = found.iter().filter(|(file, ..)| file.ends_with("/one_file.h"));
    assert_eq!(one_file.map(|(_, line, visits)| (*line, *visits)).collect::<Vec<_>>(), [(100, 2)]);
    assert_eq!(
        found.iter().filter(|(file, ..)| file.ends_with("kernel.c")).collect::<Vec<_>>(),
        [&("east/kernel.c", 7, 1), &("west/kernel.c", 7, 1)]
    );
    let text = text(folder);
    for name in ["@east/kernel.c:7", "@west/kernel.c:7", "@one_file.h:100"] {
        assert!(text.contains(&format!("!$omp parallel {name}")), "{text}");
    }
}
