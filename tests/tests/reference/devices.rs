//! Devices under the tracer: every record drained once, whatever the runtime does.

use std::path::PathBuf;

use ompt_sys::*;
use omptrace_tests::env;
use omptrace_tests::reference::argument::{Address, Lookup, Text};
use omptrace_tests::reference::device::{Clock, Device, Format, Misbehaviour, Operation, Played};
use omptrace_tests::reference::{Call, Offload, Round, Script, Step};
use omptrace_tests::trace;
use serde_json::Value;

use crate::{play, reference_runtime};

/// Bytes of a record of the reference runtime in the standard format.
const RECORD_BYTES: usize = size_of::<ompt_record_ompt_t>();
/// Operations of a target region.
const OPERATIONS: usize = 5;
/// Target regions per device.
const REGIONS: u32 = 20;

/// A trace of a script with devices.
struct Traced {
    /// What each device really did.
    played: Vec<Played>,
    folder: tempfile::TempDir,
}

/// What follows `device_initialize` of `device`, up to `device_finalize`.
fn life(device: u32, steps: Vec<Step>) -> Vec<Step> {
    let initialize = Call::DeviceInitialize {
        device_num: device as i32,
        r#type: Text::new("toy"),
        device: Address(u64::from(device) + 1),
        lookup: Lookup::Device(device),
        documentation: Text(None),
    };
    let finalize = Call::DeviceFinalize {
        device_num: device as i32,
    };
    let mut life = vec![initialize.into()];
    life.extend(steps);
    life.push(finalize.into());
    life
}

/// Target regions on `device`.
fn regions(device: u32) -> Vec<Step> {
    vec![Step::Offload(Offload {
        device,
        slot: 2 * device,
        times: REGIONS,
        busy_us: 3,
    })]
}

/// A script in which each device works on a thread of its own.
fn script(devices: Vec<Device>) -> Script {
    let numbers = 0..devices.len() as u32;
    let threads = numbers
        .map(|device| life(device, regions(device)))
        .collect();
    Script {
        devices,
        rounds: vec![Round::new(threads)],
        ..Script::default()
    }
}

fn trace(script: &Script, buffer_bytes: usize) -> Traced {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (report, output) = play(
        script,
        reference_runtime()
            .env("OMP_TOOL_LIBRARIES", env::tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
            .env("OMPTRACE_DEVICE_BUFFER", buffer_bytes.to_string()),
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Traced {
        played: report.rounds[0].devices.clone(),
        folder,
    }
}

fn with(misbehaviours: &[Misbehaviour]) -> Device {
    Device {
        misbehaviours: misbehaviours.to_vec(),
        ..Device::default()
    }
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
        let records = self
            .events("omptrace_device_record")
            .into_iter()
            .filter(of_device);
        let record = |event: Value| {
            let is_kernel = event["type"] == "target_submit";
            (
                hex(&event["record"][0]),
                hex(&event["target_id"]),
                is_kernel,
            )
        };
        records.map(record).collect()
    }

    /// What the trace says of `device`.
    fn device(&self, device: usize) -> Value {
        trace::info(&self.file())["devices"][device.to_string()].clone()
    }

    fn count(&self, device: usize, what: &str) -> u64 {
        self.device(device)["counts"][what].as_u64().unwrap_or(0)
    }
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
        assert_eq!(
            played.operations.len(),
            REGIONS as usize * OPERATIONS,
            "{what}: played"
        );
        assert_eq!(
            traced.records(device),
            truth(played),
            "{what}: device {device}"
        );
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
            let device = Device {
                foreign_threads,
                ..with(misbehaviours)
            };
            let traced = trace(&script(vec![device]), 5 * RECORD_BYTES);
            check(&format!("{misbehaviours:?}"), &traced);
        }
    }
}
