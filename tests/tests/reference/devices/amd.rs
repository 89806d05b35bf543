//! The ways of AMD's runtime, and operations of which no record comes.

use super::*;

/// A device as AMD's runtime has them.
fn amds() -> Device {
    with(&[Misbehaviour::Amd2026])
}

/// Only the first thread initializes and finalizes the device.
fn on_threads(threads: u32, between: &[Step]) -> Vec<Vec<Step>> {
    let (begin, end) = (Step::Sync(1), Step::Sync(2));
    let life_of = |thread: u32| {
        let regions = Step::Offload(Offload { slot: 2 * thread, ..offload(0) });
        let again = between.iter().cloned().chain([regions.clone()]);
        let again: Vec<Step> = if between.is_empty() || thread > 0 { Vec::new() } else { again.collect() };
        let steps = [vec![begin.clone(), regions], again, vec![end.clone()]].concat();
        if thread > 0 {
            return steps;
        }
        // The device is there before the others begin, and goes after they have ended.
        life(0, steps)
    };
    (0..threads).map(life_of).collect()
}

/// The records of device 0 in any order: threads have buffers of their own.
#[track_caller]
fn check_unordered(what: &str, traced: &Traced, operations: usize) {
    let sorted = |mut records: Vec<(u64, u64, bool)>| {
        records.sort_unstable();
        records
    };
    assert_eq!(traced.played[0].operations.len(), operations, "{what}");
    assert_eq!(sorted(traced.records(0)), sorted(truth(&traced.played[0])), "{what}");
}

#[test]
fn amds_devices_are_drained_and_their_programs_end() {
    for bytes in [MIN_BUFFER, 5000, 1 << 20] {
        for threads in [1, 6] {
            let mut script = script(vec![amds()]);
            script.rounds[0].threads = on_threads(threads, &[]);
            let traced = trace_with(&script, bytes);
            let operations = threads as usize * OPERATIONS_PLAYED;
            check_unordered(&format!("{bytes}, {threads}"), &traced, operations);
        }
    }
}

/// The ways that AMD's runtime has all at once, one by one: none needs another to be harmless.
#[test]
fn each_of_amds_ways_alone_is_drained() {
    for misbehaviour in AMDS {
        let mut script = script(vec![with(&[*misbehaviour])]);
        script.rounds[0].threads = on_threads(3, &[]);
        let traced = trace_with(&script, 5000);
        check_unordered(&format!("{misbehaviour:?}"), &traced, 3 * OPERATIONS_PLAYED);
    }
}

/// AMD's runtime keeps a buffer for each pair of a thread and a device: here 80, and 64M are lent altogether.
#[test]
fn amds_devices_are_drained_where_not_all_buffers_fit() {
    for bytes in [1 << 20, 16 << 20, 32 << 20, 64 << 20] {
        check_many_buffers(bytes);
    }
}

#[track_caller]
fn check_many_buffers(bytes: usize) {
    const THREADS: u32 = 20;
    const DEVICES: u32 = 4;
    const TIMES: u32 = 2;
    let (begin, end) = (Step::Sync(1), Step::Sync(2));
    let on_all = |thread: u32| {
        let on_device =
            |device| Step::Offload(Offload { device, slot: 2 * thread, times: TIMES, ..Offload::default() });
        let work: Vec<Step> = (0..DEVICES).map(on_device).collect();
        let steps = [vec![begin.clone()], work, vec![end.clone()]].concat();
        match thread {
            // The devices are there before the others begin, and go after they have ended.
            0 => (0..DEVICES).fold(steps, |steps, device| life(device, steps)),
            _ => steps,
        }
    };
    let mut script = script(vec![amds(); DEVICES as usize]);
    script.rounds[0].threads = (0..THREADS).map(on_all).collect();
    let traced = trace_with(&script, bytes);
    for (device, played) in traced.played.iter().enumerate() {
        let operations = THREADS as usize * TIMES as usize * OPERATIONS;
        assert_eq!(played.operations.len(), operations, "{bytes}, device {device}");
        let (mut records, mut truth) = (traced.records(device), truth(played));
        records.sort_unstable();
        truth.sort_unstable();
        assert_eq!(records, truth, "{bytes}, device {device}");
    }
    assert_eq!(traced.count("buffer requests that were refused"), 0);
}

#[test]
fn a_variable_that_costs_records_is_named() {
    const VARIABLE: &str = "LIBOMPTARGET_OMPT_FLUSH_ON_SHUTDOWN";
    let problems = |value: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (report, output) = play(
            &script(vec![amds()]),
            reference_runtime()
                .env("OMP_TOOL_LIBRARIES", env::tool_library())
                .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
                .env(VARIABLE, value),
        );
        assert!(output.status.success(), "{output:?}");
        let played = report.rounds[0].devices.clone();
        Traced { played, folder }.device()["problems"].to_string()
    };
    assert_eq!(problems("true"), "[]");
    let named = problems("False");
    assert!(named.contains(&format!("{VARIABLE} is set to False")), "{named}");
}

/// As by `omp_control_tool`, after which the device goes on.
#[test]
fn amds_devices_are_drained_where_tracing_ends_early() {
    let mut script = script(vec![amds()]);
    script.rounds[0].threads = on_threads(1, &[command(omp_control_tool_end)]);
    let traced = trace_with(&script, 64 << 10);
    check_unordered("end", &traced, OPERATIONS_PLAYED);
}

/// The version of AMD's runtime is LLVM's.
const VERSION_OF_AMDS: &str = "LLVM OMP version: 5.0.20140926";

/// As by `omp_control_tool`. A flush of AMD's runtime would be the last one of the buffer.
#[test]
fn amds_devices_are_drained_where_the_program_asks_for_a_flush() {
    let mut script = script(vec![amds()]);
    script.runtime_version = VERSION_OF_AMDS.into();
    let flush = command(omp_control_tool_flush);
    let steps = [regions(0), vec![flush.clone()], regions(0), vec![flush], regions(0)];
    script.rounds[0].threads = vec![life(0, steps.concat())];
    let traced = trace_with(&script, 64 << 10);
    check_unordered("flush", &traced, 3 * OPERATIONS_PLAYED);
}

#[test]
fn a_child_of_a_program_with_amds_devices_ends_and_its_parent_is_traced_on() {
    for end in [ChildEnd::Exit, ChildEnd::QuickExit] {
        let finalize = Call::DeviceFinalize { device_num: 0 };
        let fork = Step::from(Fork { end, steps: vec![finalize.into()], ..Fork::default() });
        let mut script = script(vec![amds()]);
        script.rounds[0].threads = on_threads(1, &[fork]);
        let traced = trace_with(&script, 64 << 10);
        check_unordered("fork", &traced, 2 * OPERATIONS_PLAYED);
        let files = fs::read_dir(traced.folder.path()).expect("the folder is there");
        assert_eq!(files.count(), 1, "the child has used no OpenMP");
    }
}

/// A flush waits for a pass of the runtime's one thread over the buffers of all devices, and so does a stop.
#[test]
fn a_fork_flushes_each_of_amds_devices_once_and_one_more_time() {
    const DEVICES: u32 = 4;
    let offloads: Vec<Step> = (0..DEVICES).flat_map(regions).collect();
    let fork = Step::from(Fork { end: ChildEnd::Exit, ..Fork::default() });
    let steps = [offloads.clone(), vec![fork], offloads].concat();
    let mut script = script(vec![amds(); DEVICES as usize]);
    script.rounds[0].threads = vec![(0..DEVICES).fold(steps, |steps, device| life(device, steps))];
    let traced = trace_with(&script, 64 << 10);
    for (device, played) in traced.played.iter().enumerate() {
        let (mut records, mut truth) = (traced.records(device), truth(played));
        assert_eq!(truth.len(), 2 * OPERATIONS_PLAYED, "device {device}");
        records.sort_unstable();
        truth.sort_unstable();
        assert_eq!(records, truth, "device {device}");
    }
    let flushes: u64 = traced.played.iter().map(|played| played.flushes).sum();
    assert_eq!(flushes, u64::from(DEVICES) + 1);
}

/// Asserts that each operation shows once: where the device recorded it, else as the host observed it, which is counted and
/// reported.
#[track_caller]
fn check_unrecorded(what: &str, traced: &Traced, unrecorded: usize) {
    let played = &traced.played[0];
    assert_eq!(played.unrecorded.len(), unrecorded, "{what}");
    let observed = |operations: &[Operation], host_observed: bool| -> Vec<(u64, bool)> {
        let ids = operations.iter().map(|operation| operation.host_op_id);
        ids.map(|id| (id, host_observed)).collect()
    };
    let mut expected = observed(&played.operations, false);
    expected.extend(observed(&played.unrecorded, true));
    expected.sort_unstable();
    let slices = traced.slices();
    let shown: Vec<(u64, bool)> = slices.iter().map(|(id, slice)| (*id, slice.host_observed)).collect();
    assert_eq!(shown, expected, "{what}");

    let timeline = &traced.device()["timeline"];
    assert_eq!(timeline["records"], played.operations.len(), "{what}");
    assert_eq!(timeline["host_observed"], unrecorded, "{what}");
    assert_eq!(timeline["without_record"], unrecorded, "{what}");
    let output = trace::omptrace([OsStr::new("check"), traced.file().as_os_str()]);
    let words = String::from_utf8_lossy(&output.stdout);
    let warning = format!(
        "warning: operations of traced devices have no device record; these operations are shown with the timestamps that the host observed ({unrecorded} on"
    );
    assert!(words.contains(&warning), "{what}: {words}");
    assert_eq!(output.status.code(), Some(1), "{what}");
}

#[test]
fn operations_without_a_record_show_as_the_host_observed_them() {
    let associating = |misbehaviours: &[Misbehaviour]| {
        let regions = Step::Offload(Offload { associates: true, ..offload(0) });
        let mut script = script(vec![with(misbehaviours)]);
        script.rounds[0].threads = vec![life(0, vec![regions])];
        trace_with(&script, 64 << 10)
    };
    // An association and its end, and a transfer there and back, in each region.
    let regions = REGIONS as usize;
    let amds = Misbehaviour::Amd2026;
    let traced = associating(&[amds]);
    check_unrecorded("associations", &traced, 2 * regions);
    let traced = associating(&[amds, Misbehaviour::NoTransferRecords]);
    check_unrecorded("transfers", &traced, 4 * regions);
}

/// As on AMD's runtime where a library that offloads was closed.
#[test]
fn operations_after_the_last_delivery_show_as_the_host_observed_them() {
    let unload = Call::DeviceUnload { device_num: 0, module_id: 0 };
    let steps = [regions(0), vec![unload.into()], regions(0)].concat();
    let mut script = script(vec![amds()]);
    script.rounds[0].threads = vec![life(0, steps)];
    let traced = trace_with(&script, 64 << 10);
    check_unrecorded("unload", &traced, OPERATIONS_PLAYED);
}

/// AMD's runtime has the records in its buffers then.
#[test]
fn what_a_killed_program_offloaded_shows_as_the_host_observed_it() {
    let mut script = script(vec![amds()]);
    let mut steps = life(0, regions(0));
    steps.pop();
    script.rounds[0].threads = vec![steps];
    script.rounds[0].end.how = How::QuickExit;
    let traced = trace_with(&script, 64 << 10);
    let timeline = &traced.device()["timeline"];
    assert_eq!(timeline["records"], 0, "{timeline}");
    assert_eq!(timeline["host_observed"], OPERATIONS_PLAYED, "{timeline}");
    assert_eq!(timeline["without_record"], OPERATIONS_PLAYED, "{timeline}");
}

#[test]
fn devices_that_are_not_announced_show_as_the_host_observed_them() {
    let device = with(&[Misbehaviour::Amd2026, Misbehaviour::OnlyFirstAnnounced]);
    let mut script = script(vec![device; 2]);
    for (device, steps) in (0..).zip(&mut script.rounds[0].threads) {
        let regions = Step::Offload(Offload { associates: true, ..offload(device) });
        *steps = life(device, vec![regions]);
    }
    let traced = trace_with(&script, 64 << 10);
    let devices = trace::info(&traced.file())["devices"].clone();
    let numbers: Vec<&String> = devices.as_object().expect("devices").keys().collect();
    assert_eq!(numbers, ["0", "1"], "{devices}");
    let timeline = &devices["1"]["timeline"];
    let operations = REGIONS as usize * (OPERATIONS + 2);
    assert_eq!(timeline["host_observed"], operations, "{timeline}");
    assert_eq!(timeline["without_record"], 0, "{timeline}");
}

/// Asserts that a program which offloads before, in and after a pause shows what was not in the pause, once.
#[track_caller]
fn check_pause(what: &str, steps: &[Vec<Step>], shown: usize) {
    let mut script = script(vec![amds()]);
    script.rounds[0].threads = vec![life(0, steps.concat())];
    let traced = trace_with(&script, 64 << 10);
    let timeline = &traced.device()["timeline"];
    assert_eq!(timeline["records"], shown, "{what}: {timeline}");
    assert_eq!(timeline["host_observed"], 0, "{what}: {timeline}");
    assert_eq!(timeline["uncorrelated"], 0, "{what}: {timeline}");
    assert_eq!(traced.slices().len(), shown, "{what}");
}

/// AMD's runtime cannot pause its tracing.
#[test]
fn what_amds_devices_do_in_a_pause_does_not_show() {
    let pause = vec![command(omp_control_tool_pause)];
    let start = vec![command(omp_control_tool_start)];
    let steps = [regions(0), pause.clone(), regions(0), start, regions(0)];
    check_pause("start", &steps, 2 * OPERATIONS_PLAYED);
    for last in [omp_control_tool_end, omp_control_tool_flush] {
        let last = vec![command(last)];
        let steps = [regions(0), pause.clone(), regions(0), last, regions(0)];
        check_pause("no start", &steps, OPERATIONS_PLAYED);
    }
}

#[test]
fn amds_translation_is_bad_and_not_used() {
    let mut script = script(vec![amds()]);
    let steps = vec![Step::Offload(Offload { times: 40, busy_us: 1000, ..offload(0) })];
    script.rounds[0].threads = vec![life(0, steps)];
    let traced = trace_with(&script, MIN_BUFFER);
    check_times("amd-2026", &traced);
    let clock = &traced.device()["timeline"]["clock"];
    assert_eq!(clock["source"], "clock_pairs", "{clock}");
    let differs = clock["translation_differs_ns"].as_u64();
    assert!(differs.is_some_and(|ns| ns > 10_000), "{clock}");
}

#[test]
fn a_buffer_is_no_smaller_than_a_record() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, output) = play(
        &script(vec![amds()]),
        reference_runtime()
            .env("OMP_TOOL_LIBRARIES", env::tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
            .env("OMPTRACE_DEVICE_BUFFER", "100"),
    );
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("from 4K to 64M"), "{words}");
}
