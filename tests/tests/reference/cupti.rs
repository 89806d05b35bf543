//! NVIDIA's devices, which no runtime traces: by CUPTI, which a library of the tests plays, and by NVIDIA's own library
//! without a device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use ompt_reference_runtime::argument::{Address, Lookup, Text};
use ompt_reference_runtime::device::{Device, Operation, Played};
use ompt_reference_runtime::{Call, Offload, Report, Round, Script, Step};
use omptrace_tests::env::{self, Compiler};
use omptrace_tests::{otf2, trace};
use omptrace_trace_format::Reader;
use serde_json::Value;

use crate::{play, reference_runtime};

const SOURCE: &str = "tests/tools/cuda_stand_in.c";
/// Versions of CUPTI.
const MAJORS: [u32; 2] = [12, 13];
/// Target regions of a thread.
const REGIONS: u32 = 40;
/// Operations of a region.
const OPERATIONS: usize = 5;
const THREADS: u32 = 3;

/// The library that plays the driver.
fn driver() -> PathBuf {
    const FLAGS: &[&str] = &["-fno-openmp", "-shared", "-fPIC", "-DDRIVER", "-Wl,-soname,libcuda.so.1"];
    env::compile(SOURCE, Compiler::Gcc, FLAGS)
}

/// The library that plays CUPTI: its records are those of NVIDIA's headers.
fn stand_in(major: u32) -> PathBuf {
    let root = env::root();
    let include = |folder: PathBuf| format!("-I{}", folder.display());
    let flags = [
        "-fno-openmp".into(),
        "-shared".into(),
        "-fPIC".into(),
        "-Werror".into(),
        format!("-Wl,-soname,libcupti.so.{major}"),
        include(root.join("tests/tools/cuda")),
        include(folder(major)),
    ];
    let flags = flags.each_ref().map(|flag: &String| flag.as_str());
    env::compile(SOURCE, Compiler::Gcc, &flags)
}

/// NVIDIA's CUPTI with its headers.
fn folder(major: u32) -> PathBuf {
    env::tools().join(format!("cupti/{major}"))
}

fn nvidias_own(major: u32) -> PathBuf {
    folder(major).join(format!("libcupti.so.{major}"))
}

/// Threads that offload to each of the devices.
fn script(devices: u32) -> Script {
    let all = |call: &dyn Fn(u32) -> Call| (0..devices).map(|device| call(device).into()).collect();
    let initialize = |device: u32| Call::DeviceInitialize {
        device_num: device as i32,
        r#type: Text::new("sm_90"),
        device: Address(u64::from(device) + 1),
        lookup: Lookup::FindsNothing,
        documentation: Text(None),
    };
    let finalize = |device: u32| Call::DeviceFinalize { device_num: device as i32 };
    let offloads = |thread: u32| {
        (0..devices).map(move |device| {
            Step::Offload(Offload {
                device,
                slot: 2 * (thread * devices + device),
                times: REGIONS,
                busy_us: 2,
                associates: false,
            })
        })
    };
    let threads = (0..THREADS).map(|thread| {
        let mut steps: Vec<Step> = Vec::new();
        if thread == 0 {
            steps = all(&initialize);
        }
        steps.push(Step::Sync(0));
        steps.extend(offloads(thread));
        steps.push(Step::Sync(1));
        if thread == 0 {
            let ends: Vec<Step> = all(&finalize);
            steps.extend(ends);
        }
        steps
    });
    let device = Device { driver: Some(driver()), ..Device::default() };
    Script {
        rounds: vec![Round::new(threads.collect())],
        devices: vec![device; devices as usize],
        ..Script::default()
    }
}

struct Traced {
    played: Vec<Played>,
    folder: tempfile::TempDir,
}

/// Traces the script with this library for CUPTI, which behaves so.
fn trace_with(script: &Script, cupti: &OsStr, behaviour: &str) -> Traced {
    trace_in(script, cupti, &[("CUPTI_STAND_IN", behaviour)])
}

fn trace_in(script: &Script, cupti: &OsStr, variables: &[(&str, &str)]) -> Traced {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (report, output): (Report, _) = play(
        script,
        reference_runtime()
            .env("OMP_TOOL_LIBRARIES", env::tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
            .env("OMPTRACE_CUPTI", cupti)
            .envs(variables.iter().copied()),
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Traced { played: report.rounds[0].devices.clone(), folder }
}

/// A piece of work on a device's track.
#[derive(Debug)]
struct Slice {
    name: String,
    begin_ns: i64,
    end_ns: i64,
    arguments: Value,
}

impl Slice {
    fn is_observed(&self) -> bool {
        self.arguments["observed_by"] == "host"
    }
}

impl Traced {
    fn file(&self) -> PathBuf {
        self.folder.path().join("t.omptrace")
    }

    fn device(&self, number: usize) -> Value {
        trace::info(&self.file())["devices"][number.to_string()].clone()
    }

    fn count(&self, number: usize, what: &str) -> u64 {
        let device = self.device(number);
        let counts = device["counts"].as_object().into_iter().flatten();
        let counts = counts.filter(|(words, _)| words.contains(what));
        counts.filter_map(|(_, count)| count.as_u64()).sum()
    }

    fn chrome(&self) -> Vec<Value> {
        trace::chrome_events(&self.file())
    }

    /// The slices of devices' tracks.
    fn slices(&self) -> Vec<Slice> {
        let events = self.chrome();
        let name_of_track = |event: &&Value| event["ph"] == "M" && event["name"] == "thread_name";
        let tracks: BTreeMap<(u64, u64), String> = events
            .iter()
            .filter(name_of_track)
            .map(|event| (track(event), text(&event["args"]["name"])))
            .filter(|(_, name)| name.starts_with("device "))
            .collect();
        let mut open: BTreeMap<(u64, u64), Vec<Slice>> = BTreeMap::new();
        let mut slices = Vec::new();
        let ns = |event: &Value| (event["ts"].as_f64().expect("a time") * 1000.0).round() as i64;
        for event in &events {
            if event["ph"] == "M" || !tracks.contains_key(&track(event)) {
                continue;
            }
            let open = open.entry(track(event)).or_default();
            match event["ph"].as_str() {
                Some("B") => open.push(Slice {
                    name: text(&event["name"]),
                    begin_ns: ns(event),
                    end_ns: 0,
                    arguments: event["args"].clone(),
                }),
                Some("E") => {
                    let mut slice = open.pop().expect("a begin");
                    slice.end_ns = ns(event);
                    slices.push(slice);
                }
                _ => {}
            }
        }
        slices
    }

    fn operations(&self) -> Vec<Operation> {
        let played = self.played.iter();
        played.flat_map(|played| played.operations.clone()).collect()
    }
}

fn track(event: &Value) -> (u64, u64) {
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    (number(&event["pid"]), number(&event["tid"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn hex(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// Asserts that each operation shows once, by a record, when it really was.
#[track_caller]
fn check(what: &str, traced: &Traced) {
    let start = Reader::open(&traced.file()).expect("a trace");
    let start = start.clock().start_realtime_ns() as i64;
    let mut by_id: BTreeMap<u64, Slice> = BTreeMap::new();
    for slice in traced.slices() {
        let id = hex(&slice.arguments["host_op_id"]);
        assert!(!slice.is_observed(), "{what}: {slice:?}");
        assert!(by_id.insert(id, slice).is_none(), "{what}: {id:x} twice");
    }
    let operations = traced.operations();
    assert_eq!(
        operations.len(),
        THREADS as usize * REGIONS as usize * OPERATIONS * traced.played.len(),
        "{what}: played"
    );
    assert_eq!(by_id.len(), operations.len(), "{what}");
    for operation in operations {
        /// The clocks of the host and of the stand-in are read one after the other.
        const CLOSE_NS: u64 = 1_000_000;
        let slice =
            by_id.get(&operation.host_op_id).unwrap_or_else(|| panic!("{what}: {operation:?} is missing"));
        let off = slice.begin_ns.abs_diff(operation.begin_ns as i64 - start);
        assert!(off < CLOSE_NS, "{what}: {slice:?} begins off by {off} ns");
        // Of memory CUPTI says only when.
        let is_of_memory = operation.data_op.is_some_and(|optype| optype == 1 || optype == 4);
        let lasts = if is_of_memory { 0 } else { operation.end_ns - operation.begin_ns };
        let shown = slice.end_ns.abs_diff(slice.begin_ns);
        assert!(shown.abs_diff(lasts) < 1000, "{what}: {slice:?} lasts {lasts} ns");
        if operation.data_op.is_none() {
            assert_eq!(slice.name.split(' ').nth(1), Some("work"), "{what}");
            assert_eq!(slice.arguments["granted_num_teams"], 6, "{what}");
            assert_eq!(slice.arguments["requested_num_teams"], 4, "{what}");
        } else {
            assert_eq!(slice.arguments["bytes"], operation.bytes, "{what}");
        }
    }
    let check = trace::omptrace(["check".as_ref(), traced.file().as_os_str()]);
    assert!(check.status.success(), "{what}: {check:?}");
}

#[test]
fn kernels_copies_and_memory_of_nvidias_devices_show_as_they_were() {
    for major in MAJORS {
        for behaviour in [
            "",
            "fill=1000",
            "late,fill=2000",
            "split,fill=1500",
            "split,devices_first",
            "split,late,devices_first,fill=3000,ordinals=REVERSE",
        ] {
            let library = stand_in(major);
            let traced = trace_with(&script(2), library.as_os_str(), behaviour);
            let what = format!("CUPTI {major}, {behaviour}");
            check(&what, &traced);
            for number in 0..2 {
                let device = traced.device(number);
                let provider = text(&device["provider"]);
                assert!(provider.starts_with("CUPTI "), "{what}: {device}");
                assert_eq!(device["problems"], serde_json::json!([]), "{what}");
                assert_eq!(traced.count(number, "records"), 600, "{what}: {device}");
                assert!(device["timeline"]["clock"]["uncertainty_ns"].is_u64(), "{what}: {device}");
            }
        }
    }
}

#[test]
fn arrows_lead_from_the_host_to_what_cupti_recorded() {
    let traced = trace_with(&script(1), stand_in(12).as_os_str(), "late");
    let events = traced.chrome();
    let begins = |phase: &str| events.iter().filter(|event| event["ph"] == *phase).count();
    let operations = traced.operations().len();
    // Chrome's export leaves out one of them now and then.
    let all_but_few = operations - operations / 100..=operations;
    assert!(all_but_few.contains(&begins("s")), "{}", begins("s"));
    assert_eq!(begins("s"), begins("f"));
}

#[test]
fn all_formats_have_what_cupti_recorded() {
    let traced = trace_with(&script(2), stand_in(13).as_os_str(), "split,late,fill=4000");
    let (file, out) = (traced.file(), traced.folder.path());
    let operations = traced.operations().len();
    let kernels = operations / OPERATIONS;

    trace::convert(&file, "text", &out.join("t.txt"), &[]);
    let lines = std::fs::read_to_string(out.join("t.txt")).expect("text");
    let kernel_lines = lines.lines().filter(|line| line.contains("kernel work"));
    assert!(kernel_lines.count() >= kernels);

    trace::convert(&file, "perfetto", &out.join("t.perfetto"), &[]);
    let perfetto = std::fs::read(out.join("t.perfetto")).expect("a trace");
    assert!(perfetto.windows(11).any(|bytes| bytes == b"kernel work"));

    trace::convert(&file, "otf2", &out.join("archive"), &[]);
    let anchor = out.join("archive/traces.otf2");
    otf2::assert_sound(&anchor);
    let answer = otf2::events(&anchor);
    let rows = otf2::rows(&answer["intervals"]).chain(otf2::rows(&answer["transfers"]));
    let of_devices = rows.filter(|row| otf2::text(&row[0]).starts_with("device "));
    assert_eq!(of_devices.count(), operations);
}

#[test]
fn what_cupti_drops_shows_as_the_host_observed_it_and_is_counted() {
    let traced = trace_with(&script(1), stand_in(12).as_os_str(), "drop=7");
    let operations = traced.operations().len();
    assert_eq!(traced.count(0, "dropped"), operations as u64 / 7);
    let slices = traced.slices();
    assert_eq!(slices.len(), operations);
    let observed = slices.iter().filter(|slice| slice.is_observed()).count();
    assert_eq!(observed, operations / 7);
    // Memory may come from the runtime's pool, which CUPTI does not see.
    let expected = traced.device(0)["timeline"]["without_record"].as_u64();
    assert!(expected.is_some_and(|number| number > 0 && number < observed as u64), "{expected:?}");
    let check = trace::omptrace(["check".as_ref(), traced.file().as_os_str()]);
    let words = String::from_utf8_lossy(&check.stdout);
    let warning = "operations of traced devices have no device record";
    assert!(words.contains(warning), "{words}");
}

#[test]
fn cupti_gets_no_more_memory_than_there_is() {
    // The stand-in never gives a buffer back before the end, and asks for one per record.
    let traced = trace_in(
        &script(1),
        stand_in(12).as_os_str(),
        &[("CUPTI_STAND_IN", "fill=1"), ("OMPTRACE_DEVICE_BUFFER", "4K")],
    );
    assert_eq!(traced.slices().len(), traced.operations().len());
}

#[test]
fn a_kernel_beside_openmp_shows_on_the_device_without_an_arrow() {
    let traced = trace_with(&script(2), stand_in(13).as_os_str(), "beside,ordinals=REVERSE");
    let slices = traced.slices();
    let beside = slices.iter().filter(|slice| slice.name == "kernel beside(int)");
    assert_eq!(beside.count(), traced.operations().len() / OPERATIONS);
    for number in 0..2 {
        let uncorrelated = &traced.device(number)["timeline"]["uncorrelated"];
        assert_eq!(*uncorrelated, u64::from(THREADS * REGIONS));
    }
}

/// Asserts that all shows as the host observed it, and that the trace says why.
#[track_caller]
fn check_observed(what: &str, traced: &Traced, reason: &str) {
    let device = traced.device(0);
    assert_eq!(device["records"], "", "{what}: {device}");
    let problems = device["problems"].to_string();
    assert!(problems.contains(reason), "{what}: {problems}");
    let slices = traced.slices();
    assert_eq!(slices.len(), traced.operations().len(), "{what}");
    assert!(slices.iter().all(Slice::is_observed), "{what}");
}

#[test]
fn says_why_there_is_no_cupti() {
    let (twelve, thirteen) = (stand_in(12), stand_in(13));
    let one = script(1);
    for (cupti, behaviour, reason) in [
        (OsStr::new("off"), "", "switched off by OMPTRACE_CUPTI"),
        (OsStr::new("/nowhere/libcupti.so.12"), "", "cannot be loaded"),
        (driver().as_os_str(), "", "does not define cuptiGetVersion"),
        (twelve.as_os_str(), "version=18", "has version 18 of the CUPTI interface"),
        (thirteen.as_os_str(), "version=140000", "has version 140000 of the CUPTI interface"),
        (twelve.as_os_str(), "refuse=15", "CUPTI_ERROR_NOT_INITIALIZED"),
        (thirteen.as_os_str(), "refuse=35", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
    ] {
        let traced = trace_with(&one, cupti, behaviour);
        check_observed(&format!("{cupti:?} {behaviour}"), &traced, reason);
    }
}

#[test]
fn nothing_is_loaded_where_the_process_does_not_use_cuda() {
    let mut one = script(1);
    one.devices[0].driver = None;
    let traced = trace_with(&one, stand_in(12).as_os_str(), "");
    let problems = traced.device(0)["problems"].to_string();
    assert!(problems.contains("the process has not loaded libcuda.so.1"), "{problems}");
}

#[test]
fn a_driver_that_is_too_old_gets_no_newer_library() {
    let variables = [("CUDA_STAND_IN_VERSION", "11080")];
    let traced = trace_in(&script(1), OsStr::new("auto"), &variables);
    check_observed("CUDA 11", &traced, "supports only CUDA versions up to 11");
}

#[test]
fn finds_the_library_that_fits_the_driver() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for major in MAJORS {
        let name = folder.path().join(format!("libcupti.so.{major}"));
        std::fs::copy(stand_in(major), name).expect("it can be copied");
    }
    let path = folder.path().to_str().expect("UTF-8");
    for (driver, found) in
        [("12090", "CUPTI 28 (libcupti.so.12)"), ("13010", "CUPTI 130500 (libcupti.so.13)")]
    {
        let variables = [("CUDA_STAND_IN_VERSION", driver), ("LD_LIBRARY_PATH", path)];
        let traced = trace_in(&script(1), OsStr::new("auto"), &variables);
        check(driver, &traced);
        assert_eq!(traced.device(0)["provider"], found);
    }
}

/// NVIDIA's library loads and binds. Without a device it refuses, each version in its own way, and the program runs on.
#[test]
fn nvidias_own_library_refuses_without_a_device_and_harms_nothing() {
    for (major, refusal) in [
        (12, "cuptiActivityEnable of EXTERNAL_CORRELATION returned CUPTI_ERROR_NOT_INITIALIZED"),
        (13, "libcupti.so.13 returned CUPTI_ERROR_UNKNOWN"),
    ] {
        let library = nvidias_own(major);
        let traced = trace_with(&script(1), library.as_os_str(), "");
        check_observed(&format!("NVIDIA's CUPTI {major}"), &traced, refusal);
    }
}
