//! Programs on GCC's own libgomp, which `libomptgomp.so` gives the tools interface.

mod archer;
mod ends;
mod places;
mod within;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, conformance_tool, count_tool, libgomp_adapter, runtime};
use omptrace_tests::sanitized;
use omptrace_tests::trace::{Counts, Traces, counts, dump, omptrace};
use tempfile::TempDir;

/// Programs with arguments, as far as GCC 12 compiles them, and the status that they exit with.
const PROGRAMS: &[(&str, &[&str], i32)] = &[
    ("nearly_everything.c", &["2", "20"], 0),
    ("gcc_loops.c", &["2", "10"], 0),
    ("gcc_copyprivate.c", &["10"], 0),
    ("tasks.c", &["2", "8"], 0),
    ("task_paths.c", &["2", "5"], 0),
    ("cancelled_tasks.c", &["20"], 0),
    ("locks.c", &["2", "200"], 0),
    ("nested.c", &["2", "2", "10"], 0),
    ("foreign_pthreads.c", &["2", "2", "10"], 0),
    ("first_thread.c", &["1"], 0),
    ("fork_exit.c", &["2", "3"], 0),
    ("exit_in_parallel.c", &["2", "7"], 7),
    ("pause_resource.c", &["2", "soft"], 0),
    ("pause_resource.c", &["2", "hard"], 0),
];

/// Whether the program prints how many tasks ran before they were cancelled.
fn prints_luck(source: &str, cancels: bool) -> bool {
    source == "cancelled_tasks.c" && cancels
}

/// A program, or a library, of GCC's.
fn compiled(source: &str, flags: &[&str]) -> PathBuf {
    let further = sanitized::compiler_flags();
    let mut flags = flags.to_vec();
    if !flags.contains(&"-shared") {
        flags.extend(further.iter().map(String::as_str));
    }
    compile(&format!("tests/programs/{source}"), Compiler::Gcc, &flags)
}

/// The program, untraced; `cancels`: with cancellation.
fn bare(source: &str, arguments: &[&str], cancels: bool) -> Command {
    let mut command = sanitized::command(&compiled(source, &[]));
    command.args(arguments).env("OMP_CANCELLATION", if cancels { "true" } else { "false" });
    command
}

/// Puts the adapter before libgomp.
fn adapted(command: &mut Command) -> &mut Command {
    command.env("LD_PRELOAD", libgomp_adapter())
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program can be run")
}

/// Runs a program under the conformance tool, which finds no fault, and under the tracer. The output is as expected each time. Gives the
/// tool's report, and the traces.
#[track_caller]
fn observed_alike(program: impl Fn() -> Command, expected: &Output) -> (String, Traces) {
    let (report, found) = conformance(adapted(&mut program()));
    assert_eq!(found, *expected);
    assert!(report.contains(", 0 faults\n"), "{report}");
    let traces = Traces::folder();
    let traced = output(adapted(traces.trace(&mut program())));
    assert_eq!(traced, *expected);
    (report, traces)
}

/// The report of the conformance tool on a run of `command`, and the run's output.
fn conformance(command: &mut Command) -> (String, Output) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let report = folder.path().join("report");
    let output =
        output(command.env("OMP_TOOL_LIBRARIES", conformance_tool()).env("OMPT_CONFORMANCE_OUTPUT", &report));
    let report = fs::read_to_string(&report).expect("the tool was loaded, and finalized");
    (report, output)
}

#[test]
fn the_adapter_keeps_the_rules_and_the_program() {
    for &(source, arguments, status) in PROGRAMS {
        for cancels in [false, true] {
            let expected = output(&mut bare(source, arguments, cancels));
            assert_eq!(expected.status.code(), Some(status), "{source} untraced: {expected:?}");
            let (report, found) = conformance(adapted(&mut bare(source, arguments, cancels)));
            assert!(report.contains(" events, "), "{source}: {report}");
            assert!(report.contains(", 0 faults\n"), "{source}: {report}");
            assert_eq!(found.status, expected.status, "{source}: {found:?}");
            if !prints_luck(source, cancels) {
                assert_eq!(found, expected, "{source}: output");
            }
        }
    }
}

#[test]
fn a_runtime_that_breaks_rules_is_found_out() {
    // LLVM's runtime passes data of tasks that are not the current ones to GCC's code (docs/dialects.md).
    let mut command = bare("nearly_everything.c", &["2", "20"], false);
    let library = runtime("llvm-19").join("libomp.so.5");
    let (report, _) = conformance(command.env("LD_PRELOAD", library));
    assert!(!report.contains(", 0 faults\n"), "{report}");
    assert!(report.contains("the region that began last ends first"), "{report}");
}

/// The counts of the counting tool.
fn counted(command: &mut Command) -> Counts {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let file = folder.path().join("counts.json");
    let output = output(command.env("OMP_TOOL_LIBRARIES", count_tool()).env("COUNT_OUT", &file));
    assert!(output.status.success(), "{output:?}");
    let counts = fs::read(&file).expect("the tool was loaded");
    serde_json::from_slice(&counts).expect("the tool writes JSON")
}

#[test]
fn traces_hold_what_another_tool_counts() {
    // Which thread gets which chunk or task is luck.
    const LUCK: &[&str] = &["dispatch", "task_schedule", "cancel"];
    // libgomp's threads of nested regions end by themselves, and the process may end before the last of them.
    const LATE_ENDS: &[&str] =
        &["thread_end", "implicit_task/end", "sync_region/end", "sync_region_wait/end"];
    const MAX_LATE: u64 = 4;
    for (source, arguments) in [
        ("nearly_everything.c", ["2", "20"].as_slice()),
        ("tasks.c", &["2", "8"]),
        ("locks.c", &["2", "200"]),
    ] {
        let mut expected = counted(adapted(&mut bare(source, arguments, false)));
        let traces = Traces::folder();
        traces.record(adapted(&mut bare(source, arguments, false)));
        let trace = traces.only();
        let mut found = counts(&dump(&trace));
        for name in LUCK {
            expected.remove(*name);
            found.remove(*name);
        }
        for name in LATE_ENDS {
            let ends = (found.remove(*name), expected.remove(*name));
            let (found, expected) = (ends.0.unwrap_or(0), ends.1.unwrap_or(0));
            let missing = found.abs_diff(expected);
            assert!(missing <= MAX_LATE, "{source}: {name}: {found} {expected}");
        }
        assert!(expected.len() > 4, "{source}: {expected:?}");
        assert_eq!(found, expected, "{source}");
        let check = omptrace([Path::new("check"), &trace]);
        assert!(check.status.success(), "{source}: {check:?}");
    }
}

#[test]
fn exact_ends_come_with_their_regions() {
    let (report, output) = conformance(
        adapted(&mut bare("nearly_everything.c", &["2", "20"], false)).env("OMPTGOMP_EXACT_ENDS", "true"),
    );
    assert!(output.status.success(), "{output:?}");
    assert!(report.contains(", 0 faults\n"), "{report}");
    let traces = Traces::folder();
    traces.record(
        adapted(&mut bare("nearly_everything.c", &["2", "20"], false)).env("OMPTGOMP_EXACT_ENDS", "true"),
    );
    // Ends that come late are moved, and counted.
    let check = omptrace([Path::new("check"), &traces.only()]);
    let words = String::from_utf8_lossy(&check.stdout);
    assert!(!words.contains("moved to the end of the parallel region"), "{words}");
}

#[test]
fn without_a_tool_a_program_runs_as_it_does_without_the_adapter() {
    for &(source, arguments, _) in PROGRAMS {
        let expected = output(&mut bare(source, arguments, false));
        let found = output(adapted(&mut bare(source, arguments, false)));
        assert_eq!(found, expected, "{source}");
    }
}

/// A library goes when the program closes it, and the next may lie in its place.
#[test]
fn libraries_are_unloaded_as_without_the_adapter() {
    let host = compiled("reload_host.c", &["-ldl"]);
    let library = |offset: &str| compiled("unloaded_library.c", &["-shared", "-fPIC", offset]);
    let libraries = [library("-DOFFSET=0"), library("-DOFFSET=100")];
    let host = || {
        let mut command = sanitized::command(&host);
        command.args(&libraries);
        command
    };
    let bare = output(&mut host());
    assert!(bare.status.success(), "{bare:?}");
    assert!(bare.stdout.starts_with(b"2\nunloaded 0\n102\nunloaded 100\n"), "{bare:?}");

    let without_a_tool = output(adapted(&mut host()));
    assert_eq!(without_a_tool, bare);
    let (_, traces) = observed_alike(host, &bare);
    let events = dump(&traces.only());
    assert_eq!(counts(&events)["parallel_begin"], 40);
}

/// The loader would run the constructor of libgomp again, which aborts the process: as PyTorch did on exit.
#[test]
fn a_library_that_is_closed_after_the_destructor_of_libgomp_does_no_harm() {
    let host = compiled("closes_at_end.c", &["-fno-openmp", "-ldl"]);
    let openmp = compiled("openmp_library.c", &["-shared", "-fPIC"]);
    let closing = compiled("closes_at_end.c", &["-fno-openmp", "-shared", "-fPIC", "-DLIBRARY"]);
    let host = || {
        let mut command = sanitized::command(&host);
        command.args([&openmp, &closing]);
        command
    };
    let bare = output(&mut host());
    assert_eq!(bare.stdout, b"checksum 2\nclosed 0\n", "{bare:?}");
    let without_a_tool = output(adapted(&mut host()));
    assert_eq!(without_a_tool, bare);
    let (_, traces) = observed_alike(host, &bare);
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 1);
}

/// Tasks that one thread creates and others run use the same memory again, also where they may be discarded.
#[test]
fn memory_does_not_grow_with_the_number_of_tasks() {
    const MAX_MORE_KIB: i64 = 32 << 10;
    let used = |command: &mut Command| -> i64 {
        let output = output(command.env("OMP_TOOL_LIBRARIES", conformance_tool()));
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.trim().parse().expect("a number")
    };
    for cancels in [false, true] {
        let bare = used(&mut bare("one_creator.c", &[], cancels));
        let report = TempDir::new().expect("a temporary folder can be made");
        let adapted = used(
            adapted(&mut self::bare("one_creator.c", &[], cancels))
                .env("OMPT_CONFORMANCE_OUTPUT", report.path().join("report")),
        );
        assert!(adapted < bare + MAX_MORE_KIB, "{cancels}: {bare} {adapted}");
    }
}

/// Names of libgomp's that the adapter does not define, with the reason.
const NOT_WRAPPED: &[(&str, &[&str])] = &[
    (
        "what it answers or sets is libgomp's own; no event belongs to it",
        &[
            "omp_get_",
            "omp_set_num_teams",
            "omp_set_default_",
            "omp_set_teams_",
            "omp_set_affinity_",
            "omp_in_",
            "omp_is_",
            "omp_display_",
            "omp_capture_",
            "omp_pause_resource",
        ],
    ),
    (
        "memory: the tools interface has no event of it",
        &[
            "omp_init_allocator",
            "omp_destroy_allocator",
            "omp_alloc",
            "omp_aligned_",
            "omp_calloc",
            "omp_realloc",
            "omp_free",
            "GOMP_alloc",
            "GOMP_free",
            "GOMP_add_alloc",
            "GOMP_is_alloc",
        ],
    ),
    (
        "memory of devices: which operations there are is libgomp's and its plugins' own",
        &["omp_target_", "GOMP_target_map_indirect_ptr", "GOMP_interop"],
    ),
    ("called by libgomp's plugins and constructors", &["GOMP_offload_", "GOMP_PLUGIN_"]),
    ("within target regions", &["GOMP_teams", "GOMP_teams4"]),
    ("does nothing", &["GOMP_taskyield"]),
    ("only finds data", &["GOMP_task_reduction_remap", "GOMP_taskgroup_reduction_unregister"]),
    (
        "of a libgomp that looks for tools itself, where the adapter steps aside",
        &[
            "GOMP_has_masked_thread_num",
            "GOMP_masked_end",
            "GOMP_loop_static_worksharing",
            "GOMP_distribute_static_worksharing",
            "GOMP_barrier_ext",
            "GOMP_barrier_cancel_ext",
            "GOMP_reduction_",
            "GOMP_single_start_with_end",
            "GOMP_single_end",
        ],
    ),
];

/// Those of [`NOT_WRAPPED`] that are the beginning of several names.
fn is_meant(pattern: &str, name: &str) -> bool {
    let rest = name.strip_prefix(pattern);
    rest.is_some_and(|rest| {
        let is_exact = rest.is_empty() || rest == "_" || rest == "_8_";
        is_exact || !pattern.starts_with("GOMP_teams") && !name.starts_with("GOMP_teams_reg")
    })
}

/// The functions that libgomps have had since GCC 12, by their version maps.
const SINCE_GCC_12: &[(u32, &[&str])] = &[
    (
        13,
        &[
            "GOMP_taskwait_depend_nowait",
            "omp_get_mapped_ptr",
            "omp_target_is_accessible",
            "omp_target_memcpy_async",
            "omp_target_memcpy_rect_async",
            "omp_in_explicit_task",
            "omp_in_explicit_task_",
        ],
    ),
    (14, &["GOMP_add_alloc", "GOMP_is_alloc", "GOMP_target_map_indirect_ptr"]),
    (
        15,
        &[
            "GOMP_interop",
            "omp_get_num_interop_properties",
            "omp_get_interop_int",
            "omp_get_interop_ptr",
            "omp_get_interop_str",
            "omp_get_interop_name",
            "omp_get_interop_type_desc",
            "omp_get_interop_rc_desc",
            "omp_get_device_from_uid",
            "omp_get_uid_from_device",
        ],
    ),
    (16, &["omp_target_memset", "omp_target_memset_async"]),
    (
        17,
        &[
            "omp_control_tool",
            "omp_get_device_distances",
            "omp_get_num_teams_dim",
            "GOMP_has_masked_thread_num",
            "GOMP_masked_end",
            "GOMP_loop_static_worksharing",
            "GOMP_loop_static_worksharing_start",
            "GOMP_loop_static_worksharing_dispatch",
            "GOMP_loop_static_worksharing_end",
            "GOMP_distribute_static_worksharing",
            "GOMP_distribute_static_worksharing_start",
            "GOMP_distribute_static_worksharing_dispatch",
            "GOMP_distribute_static_worksharing_end",
            "GOMP_barrier_ext",
            "GOMP_barrier_cancel_ext",
            "GOMP_reduction_start",
            "GOMP_reduction_end",
            "GOMP_single_start_with_end",
            "GOMP_single_end",
        ],
    ),
];

/// The functions that a library exports.
fn functions(library: &Path) -> BTreeSet<String> {
    let arguments = ["--dynamic", "--defined-only", "--format=posix"];
    let nm = Command::new("nm").args(arguments).arg(library).output();
    let nm = nm.expect("nm comes with the compiler");
    assert!(nm.status.success(), "{nm:?}");
    let lines = String::from_utf8_lossy(&nm.stdout).into_owned();
    let functions = lines.lines().filter_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        let name = name.split('@').next()?;
        rest.starts_with('T').then(|| name.to_owned())
    });
    functions.collect()
}

#[test]
fn every_name_of_libgomp_is_wrapped_or_left_out_with_a_reason() {
    let gcc = Command::new("gcc").arg("-print-file-name=libgomp.so.1").output();
    let libgomp = gcc.expect("gcc can be run").stdout;
    let libgomp = String::from_utf8(libgomp).expect("a path");
    let mut names = functions(Path::new(libgomp.trim()));
    assert!(names.contains("GOMP_parallel"), "{libgomp}");
    let later = SINCE_GCC_12.iter().flat_map(|(_, names)| *names);
    names.extend(later.map(|name| (*name).to_owned()));
    let wrapped = functions(&libgomp_adapter());
    for name in &names {
        if !name.starts_with("GOMP_") && !name.starts_with("omp_") {
            // OpenACC's, which has a profiling interface of its own.
            continue;
        }
        let left_out = |pattern: &&str| is_meant(pattern, name);
        let reason = NOT_WRAPPED.iter().find(|(_, patterns)| patterns.iter().any(left_out));
        assert_ne!(wrapped.contains(name), reason.is_some(), "{name}: {reason:?}");
    }
}

#[test]
fn locks_of_openmp_2_5_keep_their_size_and_their_functions() {
    let (report, found) = conformance(adapted(&mut bare("gcc_old_locks.c", &[], false)));
    let expected = output(&mut bare("gcc_old_locks.c", &[], false));
    assert_eq!(expected.stdout, b"sum 120, got 1, depth 3, kept 1\n");
    assert_eq!(found, expected);
    assert!(report.contains(", 0 faults\n"), "{report}");
    let counts = counted(adapted(&mut bare("gcc_old_locks.c", &[], false)));
    assert_eq!(counts["mutex_acquired"], 2 * 20 * 2 + 2);
    assert_eq!(counts["nest_lock/begin"], 2 * 20 + 1);
}

/// The library plays a libgomp from GCC 13 on.
#[test]
fn a_taskwait_that_nobody_waits_in_is_a_task_that_ends() {
    let library = compile("tests/programs/newer_libgomp.c", Compiler::Gcc, &["-shared", "-fPIC"]);
    let library = library.to_str().expect("a path in UTF-8").to_owned();
    let folder = Path::new(&library).parent().expect("a file lies in a folder");
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let source = "tests/programs/gcc_taskwait_nowait.c";
    let program = compile(source, Compiler::Gcc, &[&library, &rpath]);
    let expected = output(&mut Command::new(&program));
    assert_eq!(expected.stdout, b"x 5, y 15\n", "{expected:?}");
    let (report, traces) = observed_alike(|| Command::new(&program), &expected);
    assert!(report.contains(", 15 tasks created, 15 tasks ended, 0 faults\n"), "{report}");
    let check = omptrace([Path::new("check"), &traces.only()]);
    assert!(check.status.success(), "{check:?}");
}

/// Libraries play libgomp's plugins: the first has two devices, the other one.
/// Three threads wait for the fourth, which works 10 ms in each round. A thread that comes while libgomp decides who works has no wait.
#[test]
fn waits_for_what_a_single_region_copies_are_seen() {
    let traces = Traces::folder();
    let mut program = bare("gcc_copyprivate.c", &["20"], false);
    traces.record(adapted(program.env("OMP_NUM_THREADS", "4")));
    let trace = traces.only();
    let stats = omptrace([Path::new("stats"), Path::new("--json"), &trace]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("JSON");
    let waited = stats["accounting"]["imbalance_ns"].as_u64();
    let all = 3 * 20 * 10_000_000;
    assert!(waited.is_some_and(|ns| ns > all / 2), "{waited:?} of {all}");
    let first = &stats["findings"][0];
    assert_eq!(first["id"], "single_serialises", "{first}");
    assert_eq!(first["line"], 13, "{first}");
}

/// GCC gives calls of libgomp the line of another statement, and may make one call of several. A region is where its function begins.
#[test]
fn regions_are_at_the_lines_of_their_directives() {
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let program = compiled("gcc_region_lines.c", &["-g", level]);
        let (folder, traces) = (TempDir::new().expect("a folder"), 3);
        let trace = folder.path().join("lines.omptrace");
        let times = traces.to_string();
        let words = ["record", "--quiet", "-o"].map(OsStr::new);
        let command = [trace.as_os_str(), OsStr::new("--"), program.as_os_str(), OsStr::new(&times)];
        let recorded = omptrace(words.iter().copied().chain(command));
        assert!(recorded.status.success(), "{level}: {recorded:?}");
        let stats =
            omptrace(["stats", "--json", "--all"].map(OsStr::new).iter().copied().chain([trace.as_os_str()]));
        let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("JSON");
        let regions = stats["regions"].as_array().expect("a list").iter();
        let lines = regions.map(|row| (row["line"].as_u64(), row["visits"].as_u64()));
        let lines: BTreeSet<_> = lines.collect();
        let expected = [17, 20, 23, 32].map(|line| (Some(line), Some(traces)));
        assert_eq!(lines, expected.into(), "{level}");
    }
}

#[test]
fn the_tool_learns_of_devices_that_constructs_use() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    for (file, flags) in [
        ("libgomp-plugin-nvptx.so.1", &[][..]),
        ("libgomp-plugin-gcn.so.1", &["-DNAME=\"gcn\"", "-DDEVICES=1"]),
    ] {
        let flags = [&["-fno-openmp", "-shared", "-fPIC"], flags].concat();
        let plugin = compile("tests/programs/gcc_device_plugin.c", Compiler::Gcc, &flags);
        fs::copy(plugin, folder.path().join(file)).expect("the folder can be written");
    }
    let program = || {
        let mut command = bare("gcc_device_data.c", &[], false);
        command.env("LD_LIBRARY_PATH", folder.path());
        command
    };
    let expected = output(&mut program());
    assert_eq!(expected.stdout, b"sum 9900 on 3 devices\n", "{expected:?}");
    let (_, traces) = observed_alike(program, &expected);
    let events = dump(&traces.only());
    let of_kind = |name: &str| -> Vec<(i64, String)> {
        let events = events.iter().filter(|event| event["event"] == name);
        let described = events.map(|event| {
            let device = event["device_num"].as_i64().expect("a number");
            (device, event["type"].as_str().unwrap_or_default().to_owned())
        });
        let mut described: Vec<_> = described.collect();
        described.sort();
        described
    };
    let announced = [(1, "nvptx".to_owned()), (2, "gcn".to_owned())];
    assert_eq!(of_kind("device_initialize"), announced, "{events:?}");
    assert_eq!(of_kind("device_finalize").len(), 2, "{events:?}");
}

/// A tool that is not there, and a library that is none, leave no error of the loader's.
#[test]
fn dlerror_says_nothing_where_no_tool_can_be_loaded() {
    let program = compiled("asks_around.c", &["-ldl"]);
    let library = compiled("openmp_library.c", &["-shared", "-fPIC"]);
    let expected = output(Command::new(&program).arg(&library));
    assert_eq!(expected.status.code(), Some(4), "{expected:?}");
    for when in ["at first", "region"] {
        let said = format!("{when}: no error\n");
        assert!(String::from_utf8_lossy(&expected.stdout).contains(&said), "{expected:?}");
    }
    for tools in [OsStr::new("/nowhere/tool.so"), library.as_os_str()] {
        let mut command = Command::new(&program);
        let found = output(adapted(command.arg(&library).env("OMP_TOOL_LIBRARIES", tools)));
        assert_eq!(found, expected, "{}", tools.display());
    }
}

#[test]
fn a_libgomp_that_looks_for_tools_is_left_to_do_so() {
    let source = "tests/programs/libgomp_with_tools.c";
    let library = compile(source, Compiler::Gcc, &["-shared", "-fPIC"]);
    let folder = library.parent().expect("a file lies in a folder");
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let library = library.to_str().expect("a path in UTF-8");
    let flags = ["-fno-openmp", library, &rpath];
    let program = compile("tests/programs/calls_libgomp.c", Compiler::Gcc, &flags);
    let folder = TempDir::new().expect("a temporary folder can be made");
    let report = folder.path().join("report");
    let mut command = Command::new(&program);
    command.env("OMP_TOOL_LIBRARIES", conformance_tool()).env("OMPT_CONFORMANCE_OUTPUT", &report);
    let output = output(adapted(&mut command));
    assert_eq!(output.stdout, b"1\n", "{output:?}");
    assert!(!report.exists());
}

/// libgomp prints what it makes of each variable. `OMP_DYNAMIC=true` is left out: what libgomp makes of that depends on the
/// machine's load.
#[test]
fn libgomp_obeys_its_variables_as_without_the_adapter() {
    for variable in [
        "OMP_PROC_BIND=close",
        "OMP_PROC_BIND=spread",
        "OMP_PROC_BIND=master",
        "OMP_PROC_BIND=true",
        "OMP_PROC_BIND=false",
        "OMP_PLACES=cores",
        "OMP_PLACES=threads(1)",
        "OMP_PLACES={1},{0}",
        "GOMP_CPU_AFFINITY=0-1",
        "GOMP_CPU_AFFINITY=1",
        "OMP_DYNAMIC=false",
        "OMP_CANCELLATION=true",
        "OMP_STACKSIZE=64k",
        "GOMP_STACKSIZE=128",
        "OMP_STACKSIZE=1g",
        "OMP_MAX_ACTIVE_LEVELS=1",
        "OMP_NUM_THREADS=3,2",
        "OMP_NUM_THREADS=7,",
        "OMP_THREAD_LIMIT=3",
        "OMP_SCHEDULE=guided,5",
        "OMP_WAIT_POLICY=passive",
        "OMP_WAIT_POLICY=active",
        "GOMP_SPINCOUNT=100",
        "OMP_NUM_TEAMS=2",
        "OMP_TEAMS_THREAD_LIMIT=1",
        "OMP_MAX_TASK_PRIORITY=5",
        "OMP_TARGET_OFFLOAD=disabled",
        "OMP_NESTED=true",
        "OMP_DISPLAY_AFFINITY=true",
    ] {
        for (source, arguments) in [("gcc_binding.c", [].as_slice()), ("nested.c", &["2", "2", "3"])] {
            // Which of two teams gets the last thread is luck. So is what libgomp displays of a thread of the outer team.
            // The primary thread formats it while the thread may be in its inner team already.
            let luck = ["OMP_THREAD_LIMIT", "OMP_DISPLAY_AFFINITY"];
            if source == "nested.c" && luck.iter().any(|name| variable.starts_with(name)) {
                continue;
            }
            let (name, value) = variable.split_once('=').expect("a name and a value");
            let command = || {
                let mut command = bare(source, arguments, false);
                command
                    .env("OMP_DISPLAY_ENV", "verbose")
                    .env("OMP_AFFINITY_FORMAT", "%L %n %a %A")
                    .env(name, value);
                command
            };
            let sorted = |command: &mut Command| {
                let Output { status, stdout, stderr } = output(command);
                let mut words: Vec<String> =
                    String::from_utf8_lossy(&stderr).lines().map(str::to_owned).collect();
                // Threads report their places in any order.
                words.sort();
                (status, stdout, words)
            };
            let expected = sorted(&mut command());
            let traces = Traces::folder();
            let traced = sorted(adapted(traces.trace(&mut command())));
            assert_eq!(traced, expected, "{variable} {source}");
        }
    }
}
