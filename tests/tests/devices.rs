//! Real offloading, to LLVM's devices on the host's own cores. Events of the host are recorded exactly. Its devices
//! give no trace records, and show as the host observed them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, count_tool, intel_offload, offload, omptrace_program};
use omptrace_tests::trace::{Counts, Traces, convert, counts, dump, info};
use omptrace_tests::viewers::query;
use serde_json::Value;

const ROUNDS: u64 = 3;
const DEVICES: u64 = 4;

/// The program's modes, each with kernels and data operations per round and device, and its number of devices.
///
/// Constructs: an allocation, a transfer and a deletion for each variable mapped, and one more transfer to and from
/// for `update`. Data that is there already is not transferred again.
const MODES: &[(&str, u64, u64, u64)] =
    &[("constructs", 3, 9, DEVICES), ("threads", 3, 9, 2), ("nowait", 1, 4, DEVICES), ("memcpy", 0, 4, 1)];

fn program() -> PathBuf {
    compile("tests/programs/offload.c", Compiler::Clang22, &["-fopenmp-targets=x86_64-pc-linux-gnu"])
}

fn command(mode: &str) -> Command {
    let mut command = Command::new(program());
    command.args([mode, &ROUNDS.to_string()]);
    command
}

/// Events of targets and devices; how many threads help, and when, is up to the runtime.
fn of_devices(mut counts: Counts) -> Counts {
    counts.retain(|name, _| name.starts_with("target") || name.starts_with("device"));
    counts
}

#[test]
fn host_events_are_exactly_those_that_another_tool_counts() {
    for (mode, kernels, data_ops, devices) in MODES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("counts.json");
        let output = command(mode)
            .env("OMP_TOOL_LIBRARIES", count_tool())
            .env("COUNT_OUT", &file)
            .output()
            .expect("the program can be run");
        assert!(output.status.success(), "{output:?}");
        let counted = fs::read(&file).expect("the tool was loaded");
        let counted: Counts = serde_json::from_slice(&counted).expect("the tool writes JSON");

        let traces = Traces::folder();
        let printed = traces.record(&mut command(mode));
        assert_eq!(printed.as_bytes(), output.stdout, "{mode}");
        let recorded = of_devices(counts(&dump(&traces.only())));
        assert_eq!(recorded, of_devices(counted), "{mode}");
        let count = |name: &str| recorded.get(name).copied().unwrap_or(0);
        assert_eq!(count("target_submit_emi/end"), kernels * devices * ROUNDS, "{mode}");
        assert_eq!(count("target_data_op_emi/end"), data_ops * devices * ROUNDS, "{mode}");
        assert_eq!(count("device_initialize"), DEVICES, "{mode}");
    }
}

fn export(trace: &Path, format: &str, extension: &str) -> PathBuf {
    let out = trace.with_extension(extension);
    convert(trace, format, &out, &[]);
    out
}

/// How many slices of devices there are on tracks of each name, after the device's number.
const BY_QUEUE: &str = "select substr(coalesce(thread.name, track.name), 10) as name, count(*) as number from slice \
                        join track on slice.track_id = track.id \
                        left join thread_track on slice.track_id = thread_track.id left join thread using (utid) \
                        where coalesce(thread.name, track.name) glob 'device ? *(host-observed)*' group by 1";
/// Arrows from what the host asked for to what a device did.
const ARROWS: &str = "select count(*) as number from flow join slice on flow.slice_in = slice.id \
                      where extract_arg(slice.arg_set_id, 'debug.observed_by') = 'host' \
                         or extract_arg(slice.arg_set_id, 'args.observed_by') = 'host'";
/// Kernels that lie in their submission: they run on the host's own cores.
const INSIDE_KERNELS: &str = "select count(*) as number from slice c join slice p on c.parent_id = p.id \
                              where p.name glob '*target submit*' and c.category != 'target'";
/// Slices that reach beyond the one that they lie in.
const OVERLAPS: &str = "select count(*) as number from slice c join slice p on c.parent_id = p.id \
                        where c.ts < p.ts or c.ts + c.dur > p.ts + p.dur";
const COUNTERS: &str = "select count(distinct name) as number from counter_track \
                        where name glob '*in use on device*' or name glob '*to device*'";

#[test]
fn devices_show_as_the_host_observed_them() {
    for (mode, kernels, data_ops, devices) in MODES {
        let traces = Traces::folder();
        traces.record(&mut command(mode));
        let trace = traces.only();
        for (format, extension) in [("chrome", "json"), ("perfetto", "pftrace")] {
            let what = format!("{mode} as {format}");
            let export = export(&trace, format, extension);
            let answers = query(&export, &[BY_QUEUE, ARROWS, INSIDE_KERNELS, OVERLAPS, COUNTERS]);
            let number = |row: &serde_json::Map<String, Value>| row["number"].as_u64().expect("a number");
            let mut by_queue: BTreeMap<String, u64> = BTreeMap::new();
            for row in &answers[0] {
                let name = row["name"].as_str().expect("a name");
                // Where work overlaps, further tracks of the same kind have a number behind.
                let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
                *by_queue.entry(name.to_owned()).or_default() += number(row);
            }
            let mut of_kernels = by_queue.clone();
            of_kernels.retain(|name, _| name.starts_with("kernels"));
            assert_eq!(of_kernels.values().sum::<u64>(), kernels * devices * ROUNDS, "{what}");
            let all = (kernels + data_ops) * devices * ROUNDS;
            assert_eq!(by_queue.values().sum::<u64>(), all, "{what}: {by_queue:?}");
            assert_eq!(number(&answers[1][0]), all, "{what}: arrows");
            assert_eq!(number(&answers[2][0]) > 0, *mode == "constructs" || *mode == "threads", "{what}");
            assert_eq!(number(&answers[3][0]), 0, "{what}: overlaps");
            assert!(number(&answers[4][0]) > *devices, "{what}: counters");
        }
        let info = info(&trace);
        for device in 0..*devices {
            let device = &info["devices"][device.to_string()];
            assert_eq!(
                device["timeline"]["host_observed"],
                (kernels + data_ops) * ROUNDS,
                "{mode}: {device}"
            );
            assert_eq!(device["records"], "", "{mode}");
        }
    }
}

#[test]
fn kernels_have_the_names_of_their_functions_and_lines() {
    let traces = Traces::folder();
    traces.record(&mut command("constructs"));
    let export = export(&traces.only(), "perfetto", "pftrace");
    let names = "select distinct name from slice where name glob 'kernel*' order by 1";
    let names: Vec<String> = query(&export, &[names])[0]
        .iter()
        .map(|row| row["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        assert!(name.starts_with("kernel constructs @offload.c:"), "{name}");
    }
}

/// Runs of a program that ends by `exit(7)` while its threads offload which do not end so, traced.
fn deaths(mode: &str, runs: usize) -> usize {
    let program = compile(
        "tests/programs/offload_exit.c",
        Compiler::Clang22,
        &["-fopenmp-targets=x86_64-pc-linux-gnu"],
    );
    let died = |_: &usize| {
        let traces = Traces::folder();
        let mut command = Command::new(&program);
        let output = traces.trace(command.arg(mode)).output();
        output.expect("the program can be run").status.code() != Some(7)
    };
    (0..runs).filter(died).count()
}

/// LLVM's runtime has a race there, and one run in ten dies without a tool. All did with a tool that takes milliseconds at the end.
#[test]
fn a_program_that_exits_while_its_threads_offload_ends_as_alone() {
    for mode in ["regions", "data", "memcpy"] {
        let deaths = deaths(mode, 10);
        assert!(deaths <= 6, "{mode}: {deaths} of 10");
    }
}

#[test]
fn exit_may_join_threads_that_offload() {
    assert_eq!(deaths("joined", 3), 0);
}

/// LLVM's library for offloading has no entry point of tracing; Intel's plug-in has them, and refuses when it is asked.
#[test]
fn doctor_says_which_libraries_can_give_records_of_devices() {
    let folders = std::env::join_paths([intel_offload("openmp"), offload()]);
    let output = Command::new(omptrace_program())
        .args(["doctor", "--json"])
        .env("LD_LIBRARY_PATH", folders.expect("no colon is in a path"))
        .output()
        .expect("omptrace can be run");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let libraries = report["offloading"]["libraries"].as_array().expect("libraries");
    let can_trace = |name: &str| {
        let is_it = |library: &&Value| library["path"].as_str().is_some_and(|path| path.contains(name));
        let library = libraries.iter().find(is_it).expect("it is found");
        library["can_trace"].as_bool().expect("a boolean")
    };
    assert!(can_trace("libomptarget.rtl.opencl.so"));
    assert!(!can_trace("offload/libomptarget.so"));
}

/// Intel's runtime of 2023 answers the tracing entry points and refuses to trace. It grants the newer form of data
/// operations, and delivers the older one with an argument more.
#[test]
fn intel_refuses_to_trace_and_shows_as_the_host_observed_it() {
    let openmp = intel_offload("openmp");
    let flags = [
        format!("-L{}", openmp.display()),
        "-lomptarget".to_owned(),
        "-liomp5".to_owned(),
        // No second runtime beside Intel's.
        "-fno-openmp".to_owned(),
        "-Wl,--allow-shlib-undefined".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compile("tests/programs/offload_intel.c", Compiler::Gcc, &flags);
    let parts = ["openmp", "opencl", "compiler", "tbb"].map(intel_offload);
    let folders = std::env::join_paths(&parts).expect("no colon in the folders' names");
    let traces = Traces::folder();
    let printed = traces.record(
        Command::new(program)
            .env("LD_LIBRARY_PATH", folders)
            .env("OCL_ICD_FILENAMES", parts[1].join("libintelocl.so"))
            .env("LIBOMPTARGET_PLUGIN", "opencl")
            .env("LIBOMPTARGET_DEVICETYPE", "cpu"),
    );
    assert_eq!(printed, "checksum 256\n");
    let trace = traces.only();
    let device = &info(&trace)["devices"]["0"];
    let problems = [
        "ompt_set_trace_ompt returned never for target_data_op, never for target_submit",
        "ompt_set_trace_native returned never",
    ];
    assert_eq!(device["problems"], serde_json::json!(problems));
    assert_eq!(device["provider"], "runtime");
    assert!(device["entry_points"].to_string().contains("ompt_start_trace"), "{device}");
    // It allocates, carries there and back, and does not report the deletion.
    assert_eq!(device["timeline"]["host_observed"], 3, "{device}");
    let export = export(&trace, "perfetto", "pftrace");
    let bytes = "select extract_arg(arg_set_id, 'debug.bytes') as bytes from slice \
                 where extract_arg(arg_set_id, 'debug.observed_by') = 'host'";
    for row in &query(&export, &[bytes])[0] {
        assert_eq!(row["bytes"], 1024);
    }
}
