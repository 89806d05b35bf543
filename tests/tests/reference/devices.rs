//! Devices under the tracer: every record drained once, whatever the runtime does.

mod amd;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use ompt_reference_runtime::argument::{Address, ControlArgument, Lookup, Text};
use ompt_reference_runtime::device::{
    AMDS, BIG_RECORD_BYTES, Clock, Device, Format, Misbehaviour, Operation, Played,
};
use ompt_reference_runtime::{Call, ChildEnd, Fork, How, Offload, Round, Script, Step};
use ompt_sys::*;
use omptrace_tests::trace;
use omptrace_tests::{env, otf2};
use omptrace_trace_format::Reader;
use serde_json::Value;

use crate::{play, reference_runtime};

/// Bytes of a record of the reference runtime in the standard format.
const RECORD_BYTES: usize = size_of::<ompt_record_ompt_t>();
/// The smallest buffer that a user can ask for.
const MIN_BUFFER: usize = 4 << 10;
/// Operations of a target region.
const OPERATIONS: usize = 5;
/// Target regions per device.
const REGIONS: u32 = 20;

/// A trace of a script with devices.
struct Traced {
    /// The real work of each device.
    played: Vec<Played>,
    folder: tempfile::TempDir,
}

/// The steps from behind `device_initialize` of `device` up to `device_finalize`.
fn life(device: u32, steps: Vec<Step>) -> Vec<Step> {
    let initialize = Call::DeviceInitialize {
        device_num: device as i32,
        r#type: Text::new("toy"),
        device: Address(u64::from(device) + 1),
        lookup: Lookup::Device(device),
        documentation: Text(None),
    };
    let finalize = Call::DeviceFinalize { device_num: device as i32 };
    let mut life = vec![initialize.into()];
    life.extend(steps);
    life.push(finalize.into());
    life
}

/// Target regions on `device`.
fn regions(device: u32) -> Vec<Step> {
    vec![Step::Offload(offload(device))]
}

fn offload(device: u32) -> Offload {
    Offload { device, slot: 2 * device, times: REGIONS, busy_us: 3, associates: false }
}

/// A script in which each device works on a thread of its own.
fn script(devices: Vec<Device>) -> Script {
    let numbers = 0..devices.len() as u32;
    let threads = numbers.map(|device| life(device, regions(device))).collect();
    Script { devices, rounds: vec![Round::new(threads)], ..Script::default() }
}

/// Traces with buffers of which the devices use this many bytes, fewer than the tracer lends.
fn trace(script: &Script, buffer_bytes: usize) -> Traced {
    let mut script = script.clone();
    for device in &mut script.devices {
        device.uses_bytes = buffer_bytes;
    }
    trace_with(&script, buffer_bytes.max(MIN_BUFFER))
}

/// Traces with buffers of this many bytes.
fn trace_with(script: &Script, lent_bytes: usize) -> Traced {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (report, output) = play(
        script,
        reference_runtime()
            .env("OMP_TOOL_LIBRARIES", env::tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
            .env("OMPTRACE_DEVICE_BUFFER", lent_bytes.to_string()),
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Traced { played: report.rounds[0].devices.clone(), folder }
}

fn with(misbehaviours: &[Misbehaviour]) -> Device {
    Device { misbehaviours: misbehaviours.to_vec(), ..Device::default() }
}

impl Traced {
    fn file(&self) -> PathBuf {
        self.folder.path().join("t.omptrace")
    }

    /// The events of a name.
    fn events(&self, name: &str) -> Vec<Value> {
        let mut events = trace::dump(&self.file());
        events.retain(|event| event["event"] == name);
        events
    }

    /// The records of `device` as (host_op_id, target_id, is kernel), in their order.
    fn records(&self, device: usize) -> Vec<(u64, u64, bool)> {
        let of_device = |event: &Value| event["device_num"] == device;
        let records = self.events("omptrace_device_record").into_iter().filter(of_device);
        let record = |event: Value| {
            let is_kernel = event["type"] == "target_submit";
            (hex(&event["record"][0]), hex(&event["target_id"]), is_kernel)
        };
        records.map(record).collect()
    }

    /// The trace's metadata of device 0.
    fn device(&self) -> Value {
        trace::info(&self.file())["devices"]["0"].clone()
    }

    /// The sum of the counts whose names contain `what`.
    fn count(&self, what: &str) -> u64 {
        let device = self.device();
        let counts = device["counts"].as_object().into_iter().flatten();
        let counts = counts.filter(|(words, _)| words.contains(what));
        counts.map(|(_, count)| count.as_u64().expect("a number")).sum()
    }

    /// The slices of queues, by the number of the host's operation.
    fn slices(&self) -> BTreeMap<u64, Slice> {
        let events = trace::chrome_events(&self.file());
        // Those of a queue come one after the other.
        let ends = events.iter().filter(|event| event["ph"] == "E");
        let mut ends_of: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
        for end in ends {
            ends_of.entry(end["tid"].as_u64().expect("a number")).or_default().push(end);
        }
        let ns = |event: &Value| (event["ts"].as_f64().expect("a time") * 1000.0).round() as i64;
        let mut begun: BTreeMap<u64, usize> = BTreeMap::new();
        let mut slice = |event: &Value| {
            let arguments = &event["args"];
            // Slices of the host's threads have the number too, but not both addresses or teams.
            let is_of_device = arguments["src_addr"].is_string() || arguments["target_data"].is_string();
            let is_slice = event["ph"] == "B" && is_of_device && arguments["host_op_id"].is_string();
            is_slice.then(|| {
                let tid = event["tid"].as_u64().expect("a number");
                let number = begun.entry(tid).or_default();
                let end = ends_of[&tid][*number];
                *number += 1;
                let slice = Slice {
                    begin_ns: ns(event),
                    end_ns: ns(end),
                    host_observed: arguments["observed_by"] == "host",
                };
                (hex(&arguments["host_op_id"]), slice)
            })
        };
        events.iter().filter_map(&mut slice).collect()
    }
}

/// A piece of work on a device's queue, in nanoseconds since the session's start.
struct Slice {
    begin_ns: i64,
    end_ns: i64,
    host_observed: bool,
}

fn hex(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    u64::from_str_radix(digits.expect("hex digits"), 16).expect("hex digits")
}

/// The operations as [`Traced::records`] has them.
fn truth(played: &Played) -> Vec<(u64, u64, bool)> {
    let record = |operation: &Operation| {
        let is_kernel = operation.data_op.is_none();
        (operation.host_op_id, operation.target_id, is_kernel)
    };
    played.operations.iter().map(record).collect()
}

/// Asserts that each device's records are all that it wrote, in order.
#[track_caller]
fn check(what: &str, traced: &Traced) {
    for (device, played) in traced.played.iter().enumerate() {
        assert_eq!(played.operations.len(), REGIONS as usize * OPERATIONS, "{what}: played");
        assert_eq!(traced.records(device), truth(played), "{what}: device {device}");
    }
}

#[test]
fn drains_every_record_once_whatever_the_size_of_buffers() {
    for records in [1, 2, 3, 7, 64, 10_000] {
        for spare in [0, 40] {
            let bytes = records * RECORD_BYTES + spare;
            let traced = trace(&script(vec![Device::default(); 3]), bytes);
            check(&format!("buffers of {bytes} bytes"), &traced);
        }
    }
}

#[test]
fn drains_buffers_that_come_back_in_unusual_ways() {
    use Misbehaviour::*;
    for misbehaviours in [
        &[CompletesInParts][..],
        &[CompletesAfterStop],
        &[CompletesTwice],
        &[CompletesForeignBuffers],
        &[SaysDeviceZero],
        &[TooManyBytes],
        &[CompletesInParts, CompletesAfterStop],
    ] {
        for foreign_threads in [false, true] {
            let device = Device { foreign_threads, ..with(misbehaviours) };
            let traced = trace(&script(vec![device]), 5 * RECORD_BYTES);
            check(&format!("{misbehaviours:?}"), &traced);
        }
    }
}

/// The number of records in a buffer, where something is wrong with each second record.
const RECORDS_PER_BUFFER: usize = 5;
const OPERATIONS_PLAYED: usize = REGIONS as usize * OPERATIONS;

#[test]
fn takes_the_records_that_are_sound_and_counts_the_others() {
    use Misbehaviour::*;
    // Of five, the first, third and fifth are sound.
    let sound = OPERATIONS_PLAYED / RECORDS_PER_BUFFER * 3;
    for (misbehaviour, counted) in
        [(NullRecords, "null pointers"), (InvalidRecords, "invalid type"), (BadPointers, "cannot be read")]
    {
        let bytes = RECORDS_PER_BUFFER * RECORD_BYTES;
        let traced = trace(&script(vec![with(&[misbehaviour])]), bytes);
        let records = traced.records(0);
        assert_eq!(records.len(), sound, "{misbehaviour:?}");
        assert_eq!(traced.count(counted), (OPERATIONS_PLAYED - sound) as u64);
        let all = truth(&traced.played[0]);
        let expected =
            all.iter().enumerate().filter(|(index, _)| (index % RECORDS_PER_BUFFER).is_multiple_of(2));
        assert!(expected.map(|(_, record)| record).eq(&records), "{misbehaviour:?}");
    }
}

#[test]
fn counts_what_is_wrong_with_buffers() {
    use Misbehaviour::*;
    for (misbehaviour, counted, times) in [
        (CompletesTwice, "the device was not using", 20),
        (CompletesForeignBuffers, "the device was not using", 20),
        (TooManyBytes, "more bytes than they can hold", 20),
        (EndlessCursor, "did not reach the end", 20),
    ] {
        let bytes = RECORDS_PER_BUFFER * RECORD_BYTES;
        let traced = trace(&script(vec![with(&[misbehaviour])]), bytes);
        assert_eq!(traced.count(counted), times, "{misbehaviour:?}");
    }
}

#[test]
fn an_endless_cursor_costs_its_buffer_only() {
    let bytes = RECORDS_PER_BUFFER * RECORD_BYTES;
    let traced = trace(&script(vec![with(&[Misbehaviour::EndlessCursor])]), bytes);
    assert_eq!(traced.records(0).len(), OPERATIONS_PLAYED / RECORDS_PER_BUFFER);
}

#[test]
fn repairs_records_on_the_timeline() {
    use Misbehaviour::*;
    let all = OPERATIONS_PLAYED as u64;
    for (misbehaviour, shown, words) in [
        (SwapsTimes, all, "had an end before their start"),
        (ZeroTimes, all / 2, "device records without timestamps"),
        (UnknownKinds, all / 2, "neither kernels nor data operations"),
        (ReusesIds, all, ""),
        (SwapsIds, all, ""),
        (ReversesBuffers, all, ""),
        (TranslatesToZero, all, ""),
    ] {
        let traced = trace(&script(vec![with(&[misbehaviour])]), 3 * RECORD_BYTES);
        let timeline = &traced.device()["timeline"];
        assert_eq!(timeline["records"], shown, "{misbehaviour:?}");
        assert_eq!(timeline["uncorrelated"], 0, "{misbehaviour:?}");
        let findings = trace::info(&traced.file())["findings"].to_string();
        assert!(findings.contains(words), "{misbehaviour:?}: {findings}");
        if shown == all {
            check_times(&format!("{misbehaviour:?}"), &traced);
        }
    }
}

/// Asserts that all operations are on the timeline when they really were, as exactly as `info` promises.
#[track_caller]
fn check_times(what: &str, traced: &Traced) {
    let reader = Reader::open(&traced.file()).expect("a trace");
    let start = reader.clock().start_realtime_ns();
    let clock = &traced.device()["timeline"]["clock"];
    let promised = clock["uncertainty_ns"].as_u64().expect("a clock");
    // The truth is in the time of day; a microsecond is what reading that clock may take.
    let promised = promised + reader.clock().realtime_uncertainty_ns() + 1000;
    assert!(promised < 500_000, "{what}: {promised} ns is no promise");
    let slices = traced.slices();
    for operation in &traced.played[0].operations {
        let slice =
            slices.get(&operation.host_op_id).unwrap_or_else(|| panic!("{what}: {operation:?} is missing"));
        for (shown, truth) in [(slice.begin_ns, operation.begin_ns), (slice.end_ns, operation.end_ns)] {
            let off = shown.abs_diff((truth - start) as i64);
            assert!(off <= promised, "{what}: off by {off} ns, promised {promised}");
        }
        assert!(!slice.host_observed, "{what}");
    }
}

#[test]
fn maps_device_clocks_within_their_uncertainty() {
    for (offset, drift_ppm, jitter_us) in
        [(0, 0.0, 0), (u64::MAX / 3, 200.0, 0), (1 << 40, -200.0, 50), (123_456_789, 200.0, 50)]
    {
        for misbehaviours in [&[][..], &[Misbehaviour::TranslatesToZero]] {
            let device = Device { clock: Clock { offset, drift_ppm, jitter_us }, ..with(misbehaviours) };
            let mut script = script(vec![device]);
            script.rounds[0].threads =
                vec![life(0, vec![Step::Offload(Offload { times: 40, busy_us: 1000, ..offload(0) })])];
            let traced = trace(&script, 7 * RECORD_BYTES);
            check_times(&format!("offset {offset}, drift {drift_ppm}, jitter {jitter_us}"), &traced);
        }
    }
}

#[test]
fn maps_clocks_that_only_the_translation_or_the_host_reports() {
    for missing in [&["get_device_time"][..], &["get_device_time", "translate_time"]] {
        let device =
            Device { missing: missing.iter().map(|name| name.to_string()).collect(), ..Device::default() };
        let traced = trace(&script(vec![device]), RECORD_BYTES);
        check_times(&format!("without {missing:?}"), &traced);
    }
}

#[test]
fn native_records_show_as_far_as_they_can_be_understood() {
    let device = Device { format: Format::Native, ..Device::default() };
    let traced = trace(&script(vec![device]), 600);
    let device = traced.device();
    assert_eq!(device["records"], "native");
    assert_eq!(device["timeline"]["records"], OPERATIONS_PLAYED);
    assert_eq!(traced.events("omptrace_device_native_record").len(), OPERATIONS_PLAYED);
    check_times("native", &traced);
}

#[test]
fn says_what_is_missing_and_shows_what_the_host_saw() {
    use Misbehaviour::*;
    let refusing = |misbehaviour| with(&[misbehaviour]);
    let missing = |names: &[&str]| Device {
        missing: names.iter().map(|name| name.to_string()).collect(),
        ..Device::default()
    };
    for (device, problem) in [
        (
            refusing(RefusesOmpt),
            "ompt_set_trace_ompt returned never for target_data_op, never for target_submit",
        ),
        (refusing(RefusesStart), "ompt_start_trace refused"),
        (
            Device { format: Format::Native, ..refusing(RefusesNative) },
            "ompt_set_trace_native returned never",
        ),
        (missing(&["start_trace"]), "ompt_start_trace is missing"),
        (missing(&["advance_buffer_cursor"]), "ompt_advance_buffer_cursor is missing"),
        (missing(&["get_record_ompt", "get_record_abstract"]), "ompt_get_record_ompt or _native is missing"),
    ] {
        let traced = trace(&script(vec![device]), 4096);
        let device = traced.device();
        assert!(device["problems"].to_string().contains(problem), "{device}");
        assert_eq!(device["records"], "", "{problem}");
        assert_eq!(device["timeline"]["host_observed"], OPERATIONS_PLAYED, "{problem}");
        let slices = traced.slices();
        assert_eq!(slices.len(), OPERATIONS_PLAYED, "{problem}");
        assert!(slices.values().all(|slice| slice.host_observed), "{problem}");
    }
}

#[test]
fn does_without_what_it_does_not_need() {
    let all =
        ["get_device_num_procs", "get_buffer_limits", "set_trace_ompt", "get_record_type", "flush_trace"];
    for missing in all {
        let device = Device { missing: vec![missing.to_string()], ..Device::default() };
        check(missing, &trace(&script(vec![device]), 3 * RECORD_BYTES));
    }
    let refuses = with(&[Misbehaviour::RefusesEmi]);
    let traced = trace(&script(vec![refuses]), 3 * RECORD_BYTES);
    check("first numbers only", &traced);
    assert_eq!(traced.device()["problems"], Value::Array(vec![]));
}

/// A device that keeps its buffers and writes more than all of them hold. Its runtime aborts where it gets no buffer.
#[test]
fn a_device_that_keeps_its_buffers_gets_no_more_than_the_limit() {
    let storm = Step::Storm { device: 0, records: 700_000 };
    let steps = [vec![storm], regions(0)].concat();
    let greedy = with(&[Misbehaviour::KeepsBuffers, Misbehaviour::BigRecords]);
    let mut script = script(vec![greedy]);
    script.rounds[0].threads = vec![life(0, steps)];
    let traced = trace_with(&script, 4 << 20);
    let room = ((64 << 20) / BIG_RECORD_BYTES) as u64;
    // A part of a record may be left at the end of each buffer, and less than the smallest buffer after the last.
    let buffers = 8 + traced.count("beyond the limit of the buffer pool");
    let records = traced.count("records") - traced.count("buffer requests that were refused");
    assert!(records <= room && records + buffers + 8 >= room, "{records} of {room}, {buffers} buffers");
    let played = &traced.played[0];
    let written = played.alone + played.operations.len() as u64;
    assert!(records < written, "{records} of {written}");
    assert!(traced.count("buffer requests that were refused") > 0);
    assert!(buffers > 8000, "{buffers}");
    assert_eq!(traced.device()["problems"], Value::Array(vec![]));
}

fn command(command: omp_control_tool_t) -> Step {
    Step::from(Call::ControlTool {
        command: command.0.into(),
        modifier: 0,
        arg: ControlArgument::Address(0),
        codeptr_ra: Address(0),
    })
}

/// A translation is a second opinion on a reading of both clocks.
#[test]
fn a_completion_asks_for_no_translation_of_its_own() {
    let device = with(&[Misbehaviour::CompletesInParts]);
    let traced = trace(&script(vec![device]), 5 * RECORD_BYTES);
    assert!(traced.count("completions") >= OPERATIONS_PLAYED as u64);
    assert_eq!(
        traced.events("omptrace_device_translation").len(),
        // The reading at `device_finalize` is the last call of an entry point.
        traced.events("omptrace_device_clock").len() - 1
    );
}

#[test]
fn pauses_resumes_and_flushes_with_the_program() {
    let steps = [
        regions(0),
        vec![command(omp_control_tool_flush), command(omp_control_tool_pause)],
        regions(0),
        vec![command(omp_control_tool_start)],
        regions(0),
        vec![command(omp_control_tool_end)],
        regions(0),
    ];
    let mut script = script(vec![Device::default()]);
    script.rounds[0].threads = vec![life(0, steps.concat())];
    let traced = trace(&script, 1 << 20);
    assert_eq!(traced.played[0].operations.len(), 2 * OPERATIONS_PLAYED);
    assert_eq!(traced.records(0), truth(&traced.played[0]));
}

#[test]
fn devices_that_nobody_finalizes_are_stopped_at_the_end() {
    let mut script = script(vec![Device::default(); 2]);
    for steps in &mut script.rounds[0].threads {
        steps.pop();
    }
    check("no device_finalize", &trace(&script, 1 << 20));
}

/// The archive's content of the devices: begin, end and bytes (none for a kernel), by who did it.
fn in_archive(traced: &Traced) -> (BTreeMap<u64, Slice>, Value) {
    let out = traced.folder.path().join("archive");
    trace::convert(&traced.file(), "otf2", &out, &[]);
    let anchor = out.join("traces.otf2");
    otf2::assert_sound(&anchor);
    let answer = otf2::events(&anchor);
    let mut slices = BTreeMap::new();
    let ns = |value: &Value| value.as_i64().expect("a time");
    for row in otf2::rows(&answer["intervals"]).chain(otf2::rows(&answer["transfers"])) {
        let details = row.last().expect("attributes");
        if otf2::text(&row[0]).starts_with("device ") {
            let slice = Slice {
                begin_ns: ns(&row[1]),
                end_ns: ns(&row[2]),
                host_observed: details["observed_by"] == "host",
            };
            let host_op_id = otf2::number(&details["host_op_id"]);
            assert!(slices.insert(host_op_id, slice).is_none(), "{row:?}: twice");
        }
    }
    (slices, answer)
}

#[test]
fn archives_report_what_devices_reported() {
    use Misbehaviour::*;
    for misbehaviours in [
        &[][..],
        &[ReversesBuffers],
        &[SwapsTimes],
        &[CompletesInParts, CompletesAfterStop],
        &[SaysDeviceZero],
        &[RefusesStart],
        &[NoTransferRecords],
    ] {
        let devices = vec![with(misbehaviours); 2];
        let traced = trace(&script(devices), 3 * RECORD_BYTES);
        let (found, answer) = in_archive(&traced);
        let shown = traced.slices();
        let of = |slices: &BTreeMap<u64, Slice>| -> Vec<(u64, i64, i64, bool)> {
            let flat = |(id, slice): (&u64, &Slice)| (*id, slice.begin_ns, slice.end_ns, slice.host_observed);
            slices.iter().map(flat).collect()
        };
        assert_eq!(of(&found), of(&shown), "{misbehaviours:?}");
        assert_eq!(found.len(), 2 * OPERATIONS_PLAYED, "{misbehaviours:?}");
        let transfers = Vec::from_iter(otf2::rows(&answer["transfers"]));
        for row in &transfers {
            assert_eq!(row[4], 4096, "{misbehaviours:?}: bytes");
        }
        // Each region has a transfer there and one back.
        assert_eq!(transfers.len(), 2 * 2 * REGIONS as usize, "{misbehaviours:?}");
        let groups: BTreeSet<String> = otf2::rows(&answer["locations"])
            .filter(|row| row[3] == "ACCELERATOR")
            .map(|row| otf2::text(&row[2]))
            .collect();
        assert_eq!(groups.len(), 2, "{misbehaviours:?}: {groups:?}");
    }
}

#[test]
fn native_records_are_in_archives() {
    let device = Device { format: Format::Native, ..Device::default() };
    let traced = trace(&script(vec![device]), 600);
    let (found, answer) = in_archive(&traced);
    assert_eq!(found.len(), OPERATIONS_PLAYED);
    assert_eq!(otf2::rows(&answer["transfers"]).count(), 0);
}
