//! Tests that `docs/stats.md` documents the fields of the JSON, and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::constructs::counters::CounterStats;
use crate::constructs::functions::{FunctionStats, SampledTime};
use crate::constructs::ranges::RangeStats;
use crate::constructs::steps::{Step, StepBin, Steps};
use crate::devices::{DeviceUse, PlaceMemory, PlaceTransfers};
use crate::model::answers::{
    Answers, Blame, Blocked, CriticalPath, Finding, FunctionShare, LoopAnswer, Moment, NotPredicted, NotSeen,
    OtherThreads, PathRow, RegionAnswer, ScheduleTime, TaskRegion, WhatIf,
};
use crate::model::cause::Cause;
use crate::model::job_gains::{JobChange, JobGain, JobGains};
use crate::model::job_path::{JobPath, JobPathRow, PathCause, PathRank};
use crate::model::place::Place;
use crate::model::process_stats::ProcessStats;
use crate::model::rank_traffic::{
    CollectiveCalls, MatrixCell, MessageMatrix, PairTraffic, RankTests, RankTraffic,
};
use crate::model::rank_waits::{Charge, RankWait, RankWaits, WaitState};
use crate::model::stats::{
    Analysed, BasedOn, ConstructStats, DeviceStats, LockStats, LoopStats, PhaseStats, Stats, TeamStats,
    ThreadStats, Times,
};
use crate::overview::additive::AdditiveEfficiency;
use crate::overview::mpi_efficiency::MpiEfficiency;
use crate::overview::ranks::{Outlier, Ranks};

/// Statistics in which each list has an element, and all optional fields are present.
fn sample() -> Stats {
    let place = || {
        let mut place = Place::default();
        place.code = Some(String::new());
        place
    };
    let charge = || Charge {
        rank: 0,
        cause: Some(Cause::Lock),
        place: Some(place()),
        state: "",
        waits_at: place(),
        ns: 0,
        ranks: 0,
    };
    let moment = Moment { begin_ns: 0, end_ns: 0, process: String::new(), thread: String::new() };
    Stats {
        answers: Answers {
            regions: vec![RegionAnswer { place: place(), ..RegionAnswer::default() }],
            blame: vec![Blame {
                cause: Cause::Lock,
                place: place(),
                ns: 0,
                functions: vec![FunctionShare::default()],
                no_sample_ns: None,
            }],
            blocked: vec![Blocked {
                cause: Cause::Lock,
                process: String::new(),
                lock: None,
                holder_thread: None,
                holder: Some(place()),
                waiter_thread: String::new(),
                waiter: place(),
                ns: 0,
            }],
            critical_path: CriticalPath {
                rows: vec![PathRow { place: place(), ns: 0 }],
                functions: vec![FunctionShare::default()],
                ..CriticalPath::default()
            },
            findings: vec![Finding {
                id: String::new(),
                place: place(),
                gain_ns: 0,
                text: String::new(),
                evidence: serde_json::Map::new(),
                instances: vec![moment],
            }],
            what_if: vec![WhatIf { change: String::new(), place: place(), gain_ns: 0, gain_percent: 0.0 }],
            other_threads: vec![OtherThreads::default()],
            not_predicted: vec![NotPredicted { place: place(), ..NotPredicted::default() }],
            task_regions: vec![TaskRegion { place: place(), ..TaskRegion::default() }],
            loops: vec![LoopAnswer {
                place: place(),
                schedules: vec![ScheduleTime::default()],
                lengths: vec![0],
                ..LoopAnswer::default()
            }],
            not_seen: vec![NotSeen { cause: Cause::Lock, reason: String::new() }],
            damage_note: Some(String::new()),
            mpi_note: Some(String::new()),
            cpu_note: Some(String::new()),
            waits_note: Some(String::new()),
            what_if_note: Some(String::new()),
            ..Answers::default()
        },
        analysed: Some(Analysed {
            threads: vec![String::new()],
            first_step: Some(1),
            last_step: Some(1),
            ..Analysed::default()
        }),
        based_on: Some(BasedOn { windows: Some(1), ..BasedOn::default() }),
        phases: vec![PhaseStats::default()],
        ranges: vec![RangeStats { path: vec![String::new()], ..RangeStats::default() }],
        steps: Some(Steps {
            drift_ns: Some(0.0),
            warm_up_ns: Some(0),
            worst: vec![Step { cause: Some(Cause::Lock), share: Some(0.0), ..Step::default() }],
            bins: vec![StepBin::default()],
            ..Steps::default()
        }),
        mpi_efficiency: Some(MpiEfficiency {
            openmp: Some(0.0),
            openmp_load_balance: Some(0.0),
            openmp_communication: Some(0.0),
            serialisation: Some(0.0),
            transfer: Some(0.0),
            additive: Some(AdditiveEfficiency::default()),
            unknown: vec![String::new()],
            ..MpiEfficiency::default()
        }),
        rank_waits: Some(RankWaits {
            states: vec![WaitState::default()],
            waits: vec![RankWait { rank: 0, state: "", place: place(), waits_for: 0, ns: 0, count: 0 }],
            charged: vec![charge()],
            first_causes: vec![charge()],
            more_waits_ns: 1,
            more_charged_ns: 1,
            more_first_causes_ns: 1,
            ..RankWaits::default()
        }),
        job_path: Some(JobPath {
            before_ns: 1,
            ranks: vec![PathRank { rank: 0, ns: 0 }],
            causes: vec![PathCause { cause: Some(Cause::Lock), ns: 0 }],
            rows: vec![JobPathRow { rank: 0, cause: Some(Cause::Lock), place: Some(place()), ns: 0 }],
            more_rows_ns: 1,
            ..JobPath::default()
        }),
        job_gains: Some(JobGains {
            gains: vec![JobGain {
                change: JobChange::FasterRegion,
                place: Some(place()),
                duration_ns: 0,
                gain_ns: 0,
                gain_percent: 0.0,
            }],
            unknown: vec![String::new()],
        }),
        rank_traffic: Some(RankTraffic {
            pairs: vec![PairTraffic::default()],
            more_pairs: 1,
            matrix: MessageMatrix { cells: vec![MatrixCell::default()], ..MessageMatrix::default() },
            collectives: vec![CollectiveCalls { place: place(), ..CollectiveCalls::default() }],
            unsuccessful_tests: vec![RankTests { place: place(), ..RankTests::default() }],
            ..RankTraffic::default()
        }),
        ranks: Some(Ranks {
            outliers: vec![Outlier {
                process_id: 0,
                rank: 0,
                distance_ns: 0,
                cause: Cause::Lock,
                ns: 0,
                median_ns: 0,
            }],
            missing: vec![0],
            died: vec![0],
            ..Ranks::default()
        }),
        processes: vec![ProcessStats {
            unknown: vec![String::new()],
            cpu_ns: Some(0),
            event_cost_ns: Some(0.0),
            ..ProcessStats::default()
        }],
        constructs: vec![ConstructStats {
            is_near_event_cost: true,
            place: place(),
            team: Some(TeamStats::default()),
            schedule: Some(String::new()),
            of_loop: Some(LoopStats::default()),
            lengths: vec![0],
            ..ConstructStats::default()
        }],
        sampling: Some(SampledTime::default()),
        no_samples: Some(String::new()),
        functions: vec![FunctionStats::default()],
        counters: vec![CounterStats {
            place: place(),
            no_ratios: Some(String::new()),
            ..CounterStats::default()
        }],
        not_counted: vec![String::new()],
        threads: vec![ThreadStats { cpu_ns: Some(0), ..ThreadStats::default() }],
        locks: vec![LockStats {
            place: Some(place()),
            times: Some(Times::default()),
            ..LockStats::default()
        }],
        device_use: vec![DeviceUse {
            places: vec![PlaceTransfers::default()],
            memory: vec![PlaceMemory::default()],
            ..DeviceUse::default()
        }],
        devices: vec![DeviceStats::default()],
        notes: vec![String::new()],
    }
}

/// The paths of all fields.
fn paths(value: &Value, path: &str, paths_of: &mut BTreeSet<String>) {
    match value {
        // The causes have a table of their own.
        Value::Object(fields) if fields.contains_key("total_ns") && path.ends_with("accounting") => {}
        Value::Object(fields) => {
            for (name, field) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                let list = if field.is_array() { "[]" } else { "" };
                let path = format!("{path}{dot}{name}{list}");
                paths_of.insert(path.clone());
                paths(field, &path, paths_of);
            }
        }
        Value::Array(elements) => {
            let element = elements.first().unwrap_or_else(|| panic!("{path} is empty"));
            paths(element, path, paths_of);
        }
        _ => {}
    }
}

#[test]
fn the_document_has_every_field() {
    let mut fields = BTreeSet::new();
    let json = serde_json::to_value(sample()).expect("JSON");
    paths(&json, "", &mut fields);
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/stats.md");
    let document = fs::read_to_string(document).expect("the document");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeSet<String> =
        rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect();
    let missing: Vec<_> = fields.difference(&documented).collect();
    let gone: Vec<_> = documented.difference(&fields).collect();
    assert!(missing.is_empty() && gone.is_empty(), "missing: {missing:?}, gone: {gone:?}");
    for (name, meaning) in TeamStats::ROWS.iter().chain(LoopStats::ROWS) {
        let row = format!("| `constructs[].{name}` | {meaning} |\n");
        assert!(document.contains(&row), "docs/stats.md lacks: {row}");
    }
}
