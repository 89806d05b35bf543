//! Runs with different numbers of threads or processes: how a program scales, by POP's metrics.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::MpiEfficiency;
use crate::compare::run::Run;
use crate::compare::useful::{UsefulGrowth, by_place};
use crate::model::accounting::Accounting;
use crate::model::answers::{Efficiency, SCHEMA};
use crate::model::cause::Cause;
use crate::model::place::Place;

/// The least growth of a share, or fall of an efficiency, that is named. For useful time, relative to all useful time.
const MIN_GROWTH: f64 = 0.01;

/// How a program scales.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// The version of the JSON schema.
    pub schema: u32,
    /// Whether the work grows with the number of threads (weak scaling); otherwise all runs do the same work.
    pub is_weak: bool,
    /// One column per number of threads, fewest first. Each is compared with the first.
    pub columns: Vec<Column>,
    /// A note on useful time if a run uses MPI; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_note: Option<String>,
    /// The number of runs in which other programs or threads used the CPUs: see [`cpu_note`](crate::answers::Answers::cpu_note).
    pub busy_runs: usize,
    /// The factor of the global efficiency that falls most from the first to the last column; `None` where none falls.
    pub falling: Option<Falling>,
    /// The place where useful time grows most from the first to the last column, beyond the growth of the work; `None`
    /// if useful time as a whole does not grow.
    pub useful_growth: Option<UsefulGrowth>,
    /// The causes of loss whose share grows from the first to the last column, largest growth first.
    pub growing: Vec<Growing>,
}

/// A factor of the global efficiency that falls from the first to the last column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Falling {
    /// The name of its field in a column.
    pub factor: &'static str,
    /// Its value in the first column.
    pub first: f64,
    /// Its value in the last column.
    pub last: f64,
}

/// A factor: its name, and its value in a column.
type Factor = (&'static str, fn(&Column) -> Option<f64>);

/// The factors of the global efficiency.
const FACTORS: [Factor; 4] = [
    ("load_balance", |of| of.efficiency.load_balance),
    ("serialisation", |of| of.efficiency.serialisation),
    ("transfer", |of| of.efficiency.transfer),
    ("computation_scalability", |of| of.computation_scalability),
];

/// The factors of the global efficiency of hybrid jobs.
const HYBRID_FACTORS: [Factor; 6] = [
    ("mpi_load_balance", |of| Some(of.mpi_efficiency.as_ref()?.load_balance)),
    ("mpi_serialisation", |of| of.mpi_efficiency.as_ref()?.serialisation),
    ("mpi_transfer", |of| of.mpi_efficiency.as_ref()?.transfer),
    ("openmp_load_balance", |of| of.mpi_efficiency.as_ref()?.openmp_load_balance),
    ("openmp_communication", |of| of.mpi_efficiency.as_ref()?.openmp_communication),
    ("computation_scalability", |of| of.computation_scalability),
];

impl Falling {
    /// The factor that falls most. Because the factors are multiplied, this is the one with the smallest quotient of
    /// last and first value.
    fn of(first: &Column, last: &Column) -> Option<Falling> {
        let is_hybrid = first.mpi_efficiency.is_some() && last.mpi_efficiency.is_some();
        let factors: &[Factor] = if is_hybrid { &HYBRID_FACTORS } else { &FACTORS };
        let factors = factors.iter().filter_map(|(factor, of)| {
            let (first, last) = (of(first)?, of(last)?);
            (first - last >= MIN_GROWTH).then_some(Falling { factor, first, last })
        });
        let quotient = |falling: &Falling| falling.last / falling.first;
        factors.min_by(|a, b| quotient(a).total_cmp(&quotient(b)))
    }
}

/// The mean of the runs with the same number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Column {
    /// Number of threads, of all processes together.
    pub threads: u32,
    /// Number of processes.
    pub processes: usize,
    /// Number of runs.
    pub runs: usize,
    /// Their mean wall time.
    pub duration_ns: u64,
    /// Efficiencies: `parallel` from the sums over the runs, the others as means of the runs.
    #[serde(flatten)]
    pub efficiency: Efficiency,
    /// Means of the efficiencies of MPI and OpenMP; left out unless there were traces of all MPI ranks of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_efficiency: Option<MpiEfficiency>,
    /// Useful time of the first column divided by useful time of this column; with weak scaling, per thread.
    pub computation_scalability: Option<f64>,
    /// Parallel efficiency times computation scalability.
    pub global_efficiency: Option<f64>,
    /// Wall time of the first column divided by wall time of this column; with weak scaling, times the growth of the
    /// number of threads.
    pub speed_up: Option<f64>,
    /// The speed-up divided by the growth of the number of threads.
    pub efficiency_of_speed_up: Option<f64>,
    /// The sums of all runs, by cause.
    pub accounting: Accounting,
}

/// A cause of loss whose share grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growing {
    /// The cause.
    pub cause: Cause,
    /// Its share of the threads' time in the first column.
    pub first: f64,
    /// Its share in the last column.
    pub last: f64,
    /// The place with the most of this loss in the last column, if known.
    pub place: Option<Place>,
}

fn quotient(one: u64, other: u64) -> Option<f64> {
    (other > 0).then(|| one as f64 / other as f64)
}

impl Scaling {
    /// How the program of these runs scales.
    pub fn of(runs: &[Run], is_weak: bool) -> Scaling {
        let mut groups: BTreeMap<(u32, usize), Vec<&Run>> = BTreeMap::new();
        for run in runs {
            let key = (run.answers.threads, run.processes);
            groups.entry(key).or_default().push(run);
        }
        let mut columns: Vec<Column> = groups.values().map(|runs| Column::of(runs)).collect();
        if let Some(first) = columns.first().cloned() {
            for column in &mut columns {
                column.compare(&first, is_weak);
            }
        }
        let mut groups = groups.values();
        let (mut falling, mut useful_growth, mut of_causes) = (None, None, Vec::new());
        if let ([first, .., last], Some(few), Some(many)) = (&columns[..], groups.next(), groups.next_back())
        {
            falling = Falling::of(first, last);
            useful_growth = most_growing(few, many, is_weak);
            of_causes = growing(first, last, many);
        }
        Scaling {
            schema: SCHEMA,
            is_weak,
            columns,
            mpi_note: runs.iter().find_map(|run| run.answers.mpi_note.clone()),
            busy_runs: runs.iter().filter(|run| run.answers.cpu_note.is_some()).count(),
            falling,
            useful_growth,
            growing: of_causes,
        }
    }
}

impl Column {
    fn of(runs: &[&Run]) -> Column {
        let mut accounting = Accounting::default();
        let mut duration_ns: u128 = 0;
        for run in runs {
            accounting.merge(&run.answers.accounting);
            duration_ns += u128::from(run.answers.duration_ns);
        }
        let mean = |of: fn(&Efficiency) -> Option<f64>| {
            let values = runs.iter().map(|run| of(&run.answers.efficiency));
            let values: Option<Vec<f64>> = values.collect();
            values.map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
        };
        Column {
            threads: runs.first().map_or(0, |run| run.answers.threads),
            processes: runs.first().map_or(0, |run| run.processes),
            runs: runs.len(),
            duration_ns: (duration_ns / runs.len().max(1) as u128) as u64,
            efficiency: Efficiency {
                parallel: accounting.share(Cause::Useful),
                load_balance: mean(|of| of.load_balance),
                communication: mean(|of| of.communication),
                serialisation: mean(|of| of.serialisation),
                transfer: mean(|of| of.transfer),
            },
            mpi_efficiency: MpiEfficiency::mean(runs.iter().map(|run| run.mpi_efficiency.as_ref())),
            accounting,
            ..Column::default()
        }
    }

    fn compare(&mut self, first: &Column, is_weak: bool) {
        let growth = f64::from(self.threads) / f64::from(first.threads.max(1));
        let work = if is_weak { growth } else { 1.0 };
        let useful = |column: &Column| column.accounting[Cause::Useful] / column.runs.max(1) as u64;
        self.computation_scalability =
            quotient(useful(first), useful(self)).map(|scalability| scalability * work);
        let global = self.efficiency.parallel.zip(self.computation_scalability);
        self.global_efficiency = global.map(|(parallel, scalability)| parallel * scalability);
        let speed_up = quotient(first.duration_ns, self.duration_ns);
        self.speed_up = speed_up.map(|speed_up| speed_up * work);
        self.efficiency_of_speed_up = self.speed_up.map(|speed_up| speed_up / growth);
    }

    /// The column's heading: `8`, or `2x4` for several processes.
    pub fn heading(&self) -> String {
        match self.processes {
            0 | 1 => self.threads.to_string(),
            processes => {
                let threads = f64::from(self.threads) / processes as f64;
                format!("{processes}x{}", (threads * 10.0).round() / 10.0)
            }
        }
    }
}

/// The place where useful time grows most, if useful time as a whole grows; with weak scaling, per thread.
fn most_growing(few: &[&Run], many: &[&Run], is_weak: bool) -> Option<UsefulGrowth> {
    let threads = |runs: &[&Run]| runs.first().map_or(1, |run| run.answers.threads.max(1));
    let mean = |runs: &[&Run], times: &[f64]| {
        let by = if is_weak { threads(runs) } else { 1 };
        times.iter().sum::<f64>() / times.len().max(1) as f64 / f64::from(by)
    };
    let all = |runs: &[&Run]| {
        let times = runs.iter().map(|run| run.answers.accounting[Cause::Useful] as f64);
        mean(runs, &times.collect::<Vec<f64>>())
    };
    let least = MIN_GROWTH * all(few);
    let places = by_place(few, many);
    let rows = places.iter().map(|row| (mean(few, &row.before), mean(many, &row.after), &row.place));
    let most = rows.max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let (before, after, place) =
        most.filter(|(before, after, _)| all(many) - all(few) >= least && after - before >= least)?;
    Some(UsefulGrowth { place: place.clone(), before_ns: before as u64, after_ns: after as u64 })
}

fn growing(first: &Column, last: &Column, runs: &[&Run]) -> Vec<Growing> {
    let causes = Cause::ALL.iter().filter(|cause| cause.is_loss());
    let mut growing: Vec<Growing> = causes
        .filter_map(|cause| {
            let share = |column: &Column| column.accounting.share(*cause);
            let (first, last) = (share(first)?, share(last)?);
            let place = runs.first().and_then(|run| run.answers.mostly_due_to(*cause));
            (last - first >= MIN_GROWTH).then_some(Growing {
                cause: *cause,
                first,
                last,
                place: place.cloned(),
            })
        })
        .collect();
    growing.sort_by(|a, b| (b.last - b.first).total_cmp(&(a.last - a.first)));
    growing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::answers::{Answers, Blame, RegionAnswer, UsefulAt};
    use crate::model::place::Place;

    /// A run with one second of serial code, eight seconds of work spread over the threads, and 0.1 s of imbalance per
    /// thread.
    fn run(threads: u32, processes: usize) -> Run {
        let n = u64::from(threads);
        let mut answers =
            Answers { threads, duration_ns: (10 + 80 / n + n) * 100_000_000, ..Answers::default() };
        for (cause, tenths) in [(Cause::Useful, 90), (Cause::Serial, 10 * (n - 1)), (Cause::Imbalance, n * n)]
        {
            answers.accounting.add(cause, tenths * 100_000_000);
        }
        answers.blame.push(Blame {
            cause: Cause::Imbalance,
            place: Place::at("!$omp for", Some("a.c"), Some(35), None),
            ns: n * n * 100_000_000,
            functions: Vec::new(),
            no_sample_ns: None,
        });
        Run { name: threads.to_string(), answers, processes, ..Run::default() }
    }

    /// Useful time grows from 9 seconds to 18, in the loop, and little is lost.
    #[test]
    fn the_factor_that_falls_most_and_the_place_of_more_useful_time_are_named() {
        let run = |threads: u32, seconds: u64| {
            let mut run = run(threads, 1);
            run.answers.accounting[Cause::Useful] = (seconds + 1) * 1_000_000_000;
            let place = |line| Place::at("!$omp for", Some("a.c"), Some(line), None);
            run.answers.useful = [(place(35), seconds), (place(50), 1)]
                .map(|(place, seconds)| UsefulAt { place, ns: seconds * 1_000_000_000 })
                .into();
            run.answers.efficiency.load_balance = Some(1.0 - f64::from(threads) / 1000.0);
            run
        };
        let scaling = Scaling::of(&[run(1, 8), run(2, 17)], true);
        assert_eq!((scaling.falling, scaling.useful_growth), (None, None));
        let json = serde_json::to_value(Scaling::of(&[run(1, 8), run(2, 17)], false)).expect("JSON");
        assert_eq!(json["falling"]["factor"], "computation_scalability");
        assert_eq!((&json["falling"]["first"], &json["falling"]["last"]), (&1.0.into(), &0.5.into()));
        assert_eq!(
            (&json["useful_growth"]["line"], &json["useful_growth"]["after_ns"]),
            (&35.into(), &17_000_000_000_u64.into())
        );
    }

    /// JSON contains the useful time of regions only.
    #[test]
    fn without_useful_time_by_place_the_region_is_named() {
        let run = |threads: u32, seconds: u64| {
            let mut run = run(threads, 1);
            run.answers.accounting[Cause::Useful] = seconds * 1_000_000_000;
            run.answers.regions.push(RegionAnswer {
                place: Place::at("!$omp parallel", Some("a.c"), Some(33), None),
                accounting: run.answers.accounting,
                ..RegionAnswer::default()
            });
            run
        };
        let growth = Scaling::of(&[run(1, 9), run(2, 18)], false).useful_growth.expect("grows");
        assert_eq!((growth.place.line, growth.before_ns), (Some(33), 9_000_000_000));
    }

    /// Ranks of a job that has more of them wait for each other, and threads do not.
    #[test]
    fn of_hybrid_jobs_the_factor_of_mpi_or_openmp_that_falls_is_named() {
        let job = |processes: usize, transfer: f64| Run {
            mpi_efficiency: Some(MpiEfficiency {
                parallel: transfer,
                load_balance: 1.0,
                communication: transfer,
                serialisation: Some(1.0),
                transfer: Some(transfer),
                ..MpiEfficiency::default()
            }),
            ..run(8 * processes as u32, processes)
        };
        let scaling = Scaling::of(&[job(1, 1.0), job(2, 0.75), job(2, 0.25)], false);
        let expected = Falling { factor: "mpi_transfer", first: 1.0, last: 0.5 };
        assert_eq!(scaling.falling, Some(expected));
        // A run without traces of all ranks says nothing of MPI.
        let scaling = Scaling::of(&[job(1, 1.0), job(2, 0.25), run(16, 2)], false);
        assert_eq!(scaling.columns[1].mpi_efficiency, None);
        assert_ne!(scaling.falling.map(|falling| falling.factor), Some("mpi_transfer"));
    }

    /// The global efficiency equals the efficiency of the speed-up, although it is computed differently.
    #[test]
    fn efficiency_is_that_of_the_speed_up() {
        let scaling = Scaling::of(&[run(1, 1), run(2, 1), run(4, 1), run(8, 1)], false);
        let first = scaling.columns[0].global_efficiency.expect("known");
        for column in &scaling.columns {
            let global = column.global_efficiency.expect("known") / first;
            let speed_up = column.efficiency_of_speed_up.expect("known");
            assert!((global - speed_up).abs() < 1e-9, "{column:?}");
        }
    }
}
