//! TALP's JSON, which TALP-Pages makes its pages from: <https://github.com/bsc-pm/dlb>, `src/talp/talp_output.c`.
//!
//! TALP has three kinds of loss in OpenMP, and one in the runtime of devices. Each of our causes is mapped to one of
//! them:
//!
//! | TALP | ours |
//! | --- | --- |
//! | MPI | `mpi`, `mpi_wait`, `mpi_transfer`, `mpi_other`, `idle_in_mpi` |
//! | serialisation | `serial`, `narrow_team`, `unobserved` |
//! | load imbalance | `imbalance`, `task_starvation` |
//! | device runtime | `target` |
//! | scheduling | all other losses |
//!
//! If a process uses MPI and its calls were not recorded, the fields that depend on it are `null`: useful time, and time
//! in MPI calls. For single regions, time in MPI is not known for each process, so MPI's load balance and communication
//! efficiency are `null`, unless there is no such time.
//!
//! A device is *useful* while a kernel runs, and *active* while a kernel runs or bytes move. Values that devices did
//! not record are `null`, and so are all device values of single regions.
//!
//! TALP's user regions are the phases that the program names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::devices::DeviceUse;
use crate::model::accounting::Accounting;
use crate::model::cause::Cause;
use crate::model::process_stats::ProcessStats;
use crate::model::stats::Stats;
use crate::model::sum::sum;

/// The version of TALP whose JSON format is written.
const VERSION: &str = "3.7.0";
/// The name of the region that stands for the whole run.
const WHOLE: &str = "Global";

/// A kind of loss.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    None,
    Serialisation,
    Imbalance,
    Scheduling,
    Device,
    Mpi,
}

impl Loss {
    fn of(cause: Cause) -> Loss {
        match cause {
            Cause::Useful => Loss::None,
            // TALP counts the other CPUs of a process that is in an MPI call outside of parallel regions.
            cause if cause.is_of_mpi() => Loss::Mpi,
            Cause::Serial | Cause::NarrowTeam | Cause::Unobserved => Loss::Serialisation,
            Cause::Imbalance | Cause::TaskStarvation => Loss::Imbalance,
            Cause::Target => Loss::Device,
            _ => Loss::Scheduling,
        }
    }
}

/// The resources of a run: fields that each region repeats.
#[derive(Clone, Copy)]
struct Resources {
    /// A process uses MPI without recorded calls.
    has_unseen_mpi: bool,
    threads: u32,
    ranks: usize,
    nodes: usize,
    devices: usize,
}

/// The times of all devices, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct DeviceTimes {
    /// The sums over all devices.
    useful: u64,
    active: u64,
    /// The largest value of any device.
    max_useful: u64,
    max_active: u64,
}

impl DeviceTimes {
    /// `None` if one of the devices recorded nothing.
    fn of(devices: &[DeviceUse]) -> Option<DeviceTimes> {
        let mut times = DeviceTimes::default();
        for device in devices {
            let (kernels, transfers) = device.kernels_ns.zip(device.transfers_ns)?;
            let active = kernels.saturating_add(transfers);
            let active = active.saturating_sub(device.overlap_ns?);
            times.useful = times.useful.saturating_add(kernels);
            times.active = times.active.saturating_add(active);
            times.max_useful = times.max_useful.max(kernels);
            times.max_active = times.max_active.max(active);
        }
        Some(times)
    }
}

/// Times in MPI that differ between processes.
#[derive(Clone, Copy, Debug, Default)]
struct MpiTimes {
    /// The number of calls.
    calls: u64,
    /// The least time in MPI of a process and of a node, divided by the number of its CPUs. As in TALP, processes and nodes
    /// without such time are ignored.
    least_of_process: f64,
    least_of_node: f64,
}

impl MpiTimes {
    fn of(stats: &Stats) -> MpiTimes {
        let in_mpi = |process: &ProcessStats| {
            let causes = process.accounting.iter();
            let of_mpi = causes.filter(|(cause, _)| Loss::of(*cause) == Loss::Mpi);
            sum(of_mpi.map(|(_, ns)| ns)) as f64
        };
        let cpus =
            |process: &ProcessStats| process.accounting.total() as f64 / process.duration_ns.max(1) as f64;
        let mut nodes: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for process in &stats.processes {
            let (ns, of_node) = nodes.entry(&process.host).or_default();
            *ns += in_mpi(process);
            *of_node += cpus(process);
        }
        let least = |all: &mut dyn Iterator<Item = (f64, f64)>| {
            let known = all.filter(|(ns, cpus)| *ns > 0.0 && *cpus > 0.0);
            known.map(|(ns, cpus)| ns / cpus).min_by(f64::total_cmp).unwrap_or(0.0)
        };
        let calls = stats.constructs.iter().filter(|row| row.place.is_call() && row.category == "mpi");
        MpiTimes {
            calls: sum(calls.map(|row| row.times.count)),
            least_of_process: least(&mut stats.processes.iter().map(|it| (in_mpi(it), cpus(it)))),
            least_of_node: least(&mut nodes.into_values()),
        }
    }
}

/// The quotient; 0 if `whole` is 0, as in TALP.
fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// What is known of a region beside its accounting.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    visits: Option<u64>,
    tasks: Option<u64>,
    devices: Option<DeviceTimes>,
    mpi: Option<MpiTimes>,
}

/// A region's metrics, by TALP's formulas.
fn metrics(resources: &Resources, accounting: &Accounting, elapsed_ns: u64, known: Known) -> Value {
    let sum = |loss: Loss| {
        let causes = accounting.iter();
        let causes = causes.filter(|(cause, _)| Loss::of(*cause) == loss);
        causes.fold(0u64, |sum, (_, ns)| sum.saturating_add(ns))
    };
    let useful = accounting[Cause::Useful];
    let (serialisation, imbalance, scheduling, device, mpi) = (
        sum(Loss::Serialisation),
        sum(Loss::Imbalance),
        sum(Loss::Scheduling),
        sum(Loss::Device),
        sum(Loss::Mpi),
    );
    let outside_openmp = useful + device + mpi;
    let with_serialisation = outside_openmp + serialisation;
    let with_imbalance = with_serialisation + imbalance;
    let all = with_imbalance + scheduling;
    let devices = known.devices;
    let of_devices = |value: &dyn Fn(DeviceTimes) -> Value| devices.map_or(Value::Null, value);
    let without_mpi = |value: Value| match resources.has_unseen_mpi {
        true => Value::Null,
        false => value,
    };
    // Of processes and nodes, and whether that is known.
    let times = match (known.mpi, mpi) {
        (_, 0) => Some(MpiTimes::default()),
        (times, _) => times,
    };
    let elapsed = elapsed_ns as f64;
    let mean_outside = elapsed - mpi as f64 / f64::from(resources.threads.max(1));
    let of_times = |value: &dyn Fn(MpiTimes) -> f64| {
        let value = times.filter(|_| elapsed > 0.0).map(value).filter(|value| value.is_finite());
        without_mpi(value.map_or(Value::Null, Value::from))
    };
    let outside_process = |times: MpiTimes| elapsed - times.least_of_process;
    let outside_node = |times: MpiTimes| elapsed - times.least_of_node;
    let number = resources.devices as u64;
    let all_devices = elapsed_ns.saturating_mul(number);
    json!({
        "numCpus": resources.threads,
        "numNodes": resources.nodes,
        "numMpiRanks": resources.ranks,
        "numGpus": resources.devices,
        "avgCpus": resources.threads,
        // The values that DLB writes, and that readers of its files expect, if CPU counters were not read.
        "cycles": 0,
        "instructions": 0,
        "numMeasurements": 1,
        "numMpiCalls": without_mpi(times.map_or(Value::Null, |times| times.calls.into())),
        "numOmpParallels": known.visits,
        "numOmpTasks": known.tasks,
        "elapsedTime": elapsed_ns,
        "usefulTime": without_mpi(useful.into()),
        "mpiTime": without_mpi(mpi.into()),
        "ompLoadImbalanceTime": imbalance,
        "ompSchedulingTime": scheduling,
        "ompSerializationTime": serialisation,
        "gpuRuntimeTime": device,
        "minMpiNormdProc": of_times(&|times| times.least_of_process),
        "minMpiNormdNode": of_times(&|times| times.least_of_node),
        "gpuUsefulTime": of_devices(&|of| of.useful.into()),
        "gpuCommunicationTime": of_devices(&|of| (of.active - of.useful).into()),
        "gpuInactiveTime": of_devices(&|of| all_devices.saturating_sub(of.active).into()),
        "maxGpuUsefulTime": of_devices(&|of| of.max_useful.into()),
        "maxGpuActiveTime": of_devices(&|of| of.max_active.into()),
        "parallelEfficiency": without_mpi(share(useful, all).into()),
        "mpiParallelEfficiency": of_times(&|_| mean_outside / elapsed),
        "mpiCommunicationEfficiency": of_times(&|times| outside_process(times) / elapsed),
        "mpiLoadBalance": of_times(&|times| mean_outside / outside_process(times)),
        "mpiLoadBalanceIn": of_times(&|times| outside_node(times) / outside_process(times)),
        "mpiLoadBalanceOut": of_times(&|times| mean_outside / outside_node(times)),
        "ompParallelEfficiency": share(outside_openmp, all),
        "ompLoadBalance": share(with_serialisation, with_imbalance),
        "ompSchedulingEfficiency": share(with_imbalance, all),
        "ompSerializationEfficiency": share(outside_openmp, with_serialisation),
        "deviceOffloadEfficiency": 1.0 - share(device, all - mpi),
        "gpuParallelEfficiency": of_devices(&|of| share(of.useful, all_devices).into()),
        "gpuLoadBalance": of_devices(&|of| share(of.useful, of.max_useful.saturating_mul(number)).into()),
        "gpuCommunicationEfficiency": of_devices(&|of| share(of.max_useful, of.max_active).into()),
        "gpuOrchestrationEfficiency": of_devices(&|of| share(of.max_active, elapsed_ns).into()),
    })
}

impl Stats {
    /// The run as TALP's JSON. `timestamp`: the start of the run in RFC 3339 format.
    pub fn talp(&self, timestamp: &str) -> Value {
        let answers = &self.answers;
        let hosts: BTreeSet<&str> = self.processes.iter().map(|of| &*of.host).collect();
        let resources = Resources {
            has_unseen_mpi: answers.mpi_note.is_some(),
            threads: answers.threads,
            ranks: self.processes.iter().filter(|of| of.rank.is_some()).count(),
            nodes: hosts.len().max(1),
            devices: self.device_use.len(),
        };
        let devices = DeviceTimes::of(&self.device_use);
        let visits = answers.regions.iter().map(|region| region.visits).sum();
        let tasks = self.threads.iter().map(|thread| thread.tasks).sum();
        let mut regions = Map::new();
        let known = Known { visits: Some(visits), tasks, devices, mpi: Some(MpiTimes::of(self)) };
        let whole = metrics(&resources, &answers.accounting, answers.duration_ns, known);
        regions.insert(WHOLE.to_owned(), whole);
        for region in &answers.regions {
            let known = Known {
                visits: Some(region.visits),
                // Tasks are counted per thread only.
                tasks: None,
                // Without devices, device times are known: 0.
                devices: devices.filter(|_| self.device_use.is_empty()),
                mpi: None,
            };
            let metrics = metrics(&resources, &region.accounting, region.duration_ns, known);
            // Regions in different functions may have the same name.
            regions.entry(region.place.key_with_sentinel()).or_insert(metrics);
        }
        for phase in &self.phases {
            let resources = Resources { threads: phase.threads, ..resources };
            let devices = devices.filter(|_| self.device_use.is_empty());
            // Regions and tasks are not counted per phase.
            let known = Known { devices, ..Known::default() };
            let metrics = metrics(&resources, &phase.accounting, phase.duration_ns, known);
            regions.entry(phase.name.clone()).or_insert(metrics);
        }
        json!({
            "dlbVersion": VERSION,
            "timestamp": timestamp,
            "resources": {
                "numCpus": resources.threads,
                "numNodes": resources.nodes,
                "numMpiRanks": resources.ranks,
                "numGpus": resources.devices,
            },
            "Application": regions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::answers::{Answers, RegionAnswer};
    use crate::model::stats::PhaseStats;

    #[test]
    fn efficiencies_multiply_to_the_whole() {
        let mut answers = Answers {
            threads: 4,
            duration_ns: 250,
            regions: vec![RegionAnswer::default()],
            ..Answers::default()
        };
        for (cause, ns) in
            [(Cause::Useful, 600), (Cause::Serial, 150), (Cause::Imbalance, 50), (Cause::Lock, 200)]
        {
            answers.accounting.add(cause, ns);
        }
        let stats = Stats { answers, ..Stats::default() };
        let talp = stats.talp("2026-01-01T00:00:00Z");
        let global = &talp["Application"]["Global"];
        let share = |name: &str| global[name].as_f64().expect("a share");
        assert_eq!(
            [
                share("ompSerializationEfficiency"),
                share("ompLoadBalance"),
                share("ompSchedulingEfficiency"),
                share("parallelEfficiency")
            ],
            [0.8, 0.9375, 0.8, 0.6]
        );
        assert_eq!(global["ompSchedulingTime"], 200);
        assert_eq!((&global["numCpus"], &global["numMpiRanks"]), (&json!(4), &json!(0)));
        assert_eq!(talp["Application"].as_object().expect("regions").len(), 2);
        for name in ["gpuParallelEfficiency", "gpuLoadBalance", "gpuOrchestrationEfficiency"] {
            assert_eq!(share(name), 0.0, "{name}");
        }
        assert_eq!(share("deviceOffloadEfficiency"), 1.0);
    }

    #[test]
    fn phases_are_regions() {
        let mut phase = PhaseStats {
            name: "solver/step".to_owned(),
            duration_ns: 100,
            threads: 2,
            ..PhaseStats::default()
        };
        phase.accounting.add(Cause::Useful, 150);
        phase.accounting.add(Cause::Imbalance, 50);
        let global = PhaseStats { name: WHOLE.to_owned(), ..phase.clone() };
        let answers = Answers { threads: 4, duration_ns: 400, ..Answers::default() };
        let stats = Stats { answers, phases: vec![phase, global], ..Stats::default() };
        let talp = stats.talp("2026-01-01T00:00:00Z");
        let step = &talp["Application"]["solver/step"];
        assert_eq!(
            (&step["ompLoadBalance"], &step["elapsedTime"], &step["numCpus"], &step["numOmpParallels"]),
            (&json!(0.75), &json!(100), &json!(2), &Value::Null)
        );
        assert_eq!(talp["Application"]["Global"]["elapsedTime"], 400, "a phase does not replace the run");
    }

    #[test]
    fn what_mpi_takes_is_not_known() {
        let mut answers = Answers {
            threads: 2,
            duration_ns: 100,
            mpi_note: Some(crate::model::mpi::MPI_NOT_SEEN.to_owned()),
            ..Answers::default()
        };
        answers.accounting.add(Cause::Useful, 150);
        answers.accounting.add(Cause::Lock, 50);
        let stats = Stats { answers, ..Stats::default() };
        let talp = stats.talp("2026-01-01T00:00:00Z");
        let global = talp["Application"]["Global"].as_object().expect("fields");
        let of_mpi = global.iter().filter(|(name, _)| name.to_lowercase().contains("mpi"));
        for (name, value) in of_mpi.filter(|(name, _)| *name != "numMpiRanks") {
            assert!(value.is_null(), "{name}: {value}");
        }
        for name in ["usefulTime", "parallelEfficiency"] {
            assert!(global[name].is_null(), "{name}");
        }
        assert_eq!(global["ompParallelEfficiency"], 0.75);
    }

    /// TALP's formulas for two ranks with two threads each, on one node: 100 ns, of which one rank is in MPI for 30 ns, and the
    /// other for 10 ns. The other threads are idle meanwhile.
    #[test]
    fn time_in_mpi_has_efficiencies() {
        let process = |ns: u64| {
            let mut process = ProcessStats { duration_ns: 100, threads: 2, ..ProcessStats::default() };
            process.accounting.add(Cause::Useful, 200 - 2 * ns);
            process.accounting.add(Cause::MpiWait, ns);
            process.accounting.add(Cause::IdleInMpi, ns);
            process.rank = Some(ns as u32);
            process
        };
        let processes = vec![process(30), process(10)];
        let mut answers = Answers { threads: 4, duration_ns: 100, ..Answers::default() };
        processes.iter().for_each(|process| answers.accounting.merge(&process.accounting));
        let stats = Stats { answers, processes, ..Stats::default() };
        let talp = stats.talp("2026-01-01T00:00:00Z");
        let global = &talp["Application"]["Global"];
        let of = |name: &str| global[name].as_f64().expect("a number");
        assert_eq!((of("mpiTime"), of("usefulTime")), (80.0, 320.0));
        assert_eq!((of("minMpiNormdProc"), of("minMpiNormdNode")), (10.0, 20.0));
        let near = |name: &str, expected: f64| {
            assert!((of(name) - expected).abs() < 1e-9, "{name}: {global}");
        };
        near("parallelEfficiency", 0.8);
        near("mpiParallelEfficiency", 0.8);
        near("mpiCommunicationEfficiency", 0.9);
        near("mpiLoadBalance", 80.0 / 90.0);
        near("mpiLoadBalanceIn", 80.0 / 90.0);
        near("mpiLoadBalanceOut", 1.0);
        near("ompParallelEfficiency", 1.0);
    }

    /// TALP's formulas. One of two devices runs kernels for 100 of 400 ns, the other for 300 ns. Each transfers data
    /// for 80 ns, of which 20 ns overlap with kernels.
    #[test]
    fn devices_have_efficiencies() {
        let mut answers = Answers {
            threads: 2,
            duration_ns: 400,
            regions: vec![RegionAnswer::default()],
            ..Answers::default()
        };
        for (cause, ns) in [(Cause::Useful, 400), (Cause::Target, 200), (Cause::Serial, 200)] {
            answers.accounting.add(cause, ns);
        }
        let device = |kernels_ns| DeviceUse {
            kernels_ns,
            transfers_ns: kernels_ns.map(|_| 80),
            overlap_ns: kernels_ns.map(|_| 20),
            ..DeviceUse::default()
        };
        let talp = |answers: Answers, devices: [Option<u64>; 2]| {
            let stats = Stats { answers, device_use: devices.map(device).into(), ..Stats::default() };
            stats.talp("2026-01-01T00:00:00Z")
        };
        let known = talp(answers.clone(), [Some(100), Some(300)]);
        let global = &known["Application"]["Global"];
        let of = |name: &str| global[name].as_f64().expect("a number");
        assert_eq!(
            [
                of("deviceOffloadEfficiency"),
                of("gpuParallelEfficiency"),
                of("gpuLoadBalance"),
                of("gpuOrchestrationEfficiency"),
                of("ompParallelEfficiency"),
                of("ompSerializationEfficiency"),
                of("parallelEfficiency"),
            ],
            [0.75, 0.5, 400.0 / 600.0, 0.9, 0.75, 0.75, 0.5]
        );
        assert_eq!(of("gpuCommunicationEfficiency"), 300.0 / 360.0);
        assert_eq!(
            [of("gpuUsefulTime"), of("gpuCommunicationTime"), of("gpuInactiveTime")],
            [400.0, 120.0, 280.0]
        );
        assert_eq!(known["resources"]["numGpus"], 2);
        let regions = known["Application"].as_object().expect("regions");
        let region = regions.iter().find(|(name, _)| *name != WHOLE).expect("a region").1;
        assert!(region["gpuLoadBalance"].is_null(), "{region}");

        let unknown = talp(answers, [Some(100), None]);
        let global = &unknown["Application"]["Global"];
        assert!(global["gpuParallelEfficiency"].is_null(), "{global}");
        assert_eq!(global["deviceOffloadEfficiency"], 0.75);
    }
}
