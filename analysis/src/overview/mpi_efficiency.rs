//! The efficiency of an MPI job, as the product of the efficiency of its processes and that of the threads in the
//! processes: POP's multiplicative hybrid model.
//!
//! ```text
//! parallel = mpi x openmp
//! mpi      = load balance x communication
//! communication = serialisation x transfer
//! ```

use omptrace_timeline::Ranks;
use serde::{Deserialize, Serialize};

use crate::model::answers::Efficiency;
use crate::model::process_stats::ProcessStats;
use crate::overview::additive::AdditiveEfficiency;

/// Efficiencies from 0 to 1. The time of a process outside of MPI is measured on the thread that initialized MPI.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MpiEfficiency {
    /// Mean time outside of MPI, weighted by the number of threads / T.
    pub parallel: f64,
    /// Mean time outside of MPI / longest time outside of MPI.
    pub load_balance: f64,
    /// Longest time outside of MPI / T.
    pub communication: f64,
    /// Longest time outside of MPI / duration of the job with an ideal network, on which messages take no time. This field and the next
    /// are `None` if that duration is not known.
    pub serialisation: Option<f64>,
    /// Duration of the job with an ideal network / T.
    pub transfer: Option<f64>,
    /// Parallel efficiency of all threads / `parallel`. This field and the next two are `None` if unknown.
    pub openmp: Option<f64>,
    /// Load balance of all threads / `load_balance`.
    pub openmp_load_balance: Option<f64>,
    /// Communication efficiency of all threads / `communication`.
    pub openmp_communication: Option<f64>,
    /// The efficiencies of POP's additive model; `None` if they are not known.
    pub additive: Option<AdditiveEfficiency>,
    /// The factors that are not known, each with the reason.
    pub unknown: Vec<String>,
}

/// A process's time outside of MPI, in nanoseconds, and its number of threads.
type Outside = (u64, u32);

/// The time that each process of a job spends outside of MPI; `None` unless the traces of all ranks are present.
pub(crate) fn outside_ns(ranks: &Ranks, processes: &[ProcessStats]) -> Option<Vec<u64>> {
    let is_job = ranks.are_complete() && ranks.size == processes.len();
    let outside = processes.iter().enumerate().map(|(number, process)| {
        Some(process.duration_ns.saturating_sub(ranks.process(number)?.in_calls_ns))
    });
    outside.collect::<Option<Vec<u64>>>().filter(|_| is_job)
}

impl MpiEfficiency {
    /// The efficiency of a job; `None` unless the traces of all ranks are present. `ideal`: how long it would take on an ideal network,
    /// or why this is not known.
    pub(crate) fn of(
        ranks: Option<&Ranks>,
        processes: &[ProcessStats],
        (duration_ns, efficiency): (u64, &Efficiency),
        ideal: Result<u64, &str>,
    ) -> Option<MpiEfficiency> {
        let times = outside_ns(ranks?, processes)?.into_iter();
        let outside = times.zip(processes).map(|(ns, process)| (ns, process.threads.max(1)));
        MpiEfficiency::of_times(&outside.collect::<Vec<Outside>>(), duration_ns, efficiency, ideal)
    }

    /// The mean of several jobs' efficiencies, as far as all of them are known.
    pub(crate) fn mean<'e>(jobs: impl Iterator<Item = Option<&'e MpiEfficiency>>) -> Option<MpiEfficiency> {
        let jobs = jobs.collect::<Option<Vec<&MpiEfficiency>>>().filter(|jobs| !jobs.is_empty())?;
        let mean = |of: &dyn Fn(&MpiEfficiency) -> Option<f64>| {
            let values = jobs.iter().map(|job| of(job)).collect::<Option<Vec<f64>>>()?;
            Some(values.iter().sum::<f64>() / values.len() as f64)
        };
        let additive = |of: fn(&AdditiveEfficiency) -> f64| mean(&|job| job.additive.as_ref().map(of));
        Some(MpiEfficiency {
            parallel: mean(&|job| Some(job.parallel))?,
            load_balance: mean(&|job| Some(job.load_balance))?,
            communication: mean(&|job| Some(job.communication))?,
            serialisation: mean(&|job| job.serialisation),
            transfer: mean(&|job| job.transfer),
            openmp: mean(&|job| job.openmp),
            openmp_load_balance: mean(&|job| job.openmp_load_balance),
            openmp_communication: mean(&|job| job.openmp_communication),
            additive: additive(|of| of.parallel).and_then(|parallel| {
                Some(AdditiveEfficiency {
                    parallel,
                    process: additive(|of| of.process)?,
                    process_load_balance: additive(|of| of.process_load_balance)?,
                    process_communication: additive(|of| of.process_communication)?,
                    thread: additive(|of| of.thread)?,
                    openmp: additive(|of| of.openmp)?,
                    serial_regions: additive(|of| of.serial_regions)?,
                })
            }),
            unknown: Vec::new(),
        })
    }

    /// With the efficiencies of the additive model, or why they are not known.
    pub(crate) fn with_additive(mut self, additive: Option<AdditiveEfficiency>) -> MpiEfficiency {
        if additive.is_none() {
            let reason = "additive efficiencies: the time of each thread in parallel regions is not known";
            self.unknown.push(reason.to_owned());
        }
        self.additive = additive;
        self
    }

    fn of_times(
        outside: &[Outside],
        duration_ns: u64,
        efficiency: &Efficiency,
        ideal: Result<u64, &str>,
    ) -> Option<MpiEfficiency> {
        let threads: f64 = outside.iter().map(|(_, threads)| f64::from(*threads)).sum();
        let weighted: f64 = outside.iter().map(|(ns, threads)| *ns as f64 * f64::from(*threads)).sum();
        let longest = outside.iter().map(|(ns, _)| *ns).max().filter(|longest| *longest > 0)? as f64;
        let duration = Some(duration_ns as f64).filter(|duration| *duration > 0.0)?;
        let mean = weighted / threads;
        let (parallel, load_balance, communication) = (mean / duration, mean / longest, longest / duration);
        // The quotient may exceed 1 if threads are not members of teams, or if processes start late.
        let of_threads =
            |all: Option<f64>, mpi: f64| all.map(|all| all / mpi).filter(|part| (0.0..=1.0).contains(part));
        let openmp = [
            ("OpenMP parallel efficiency", of_threads(efficiency.parallel, parallel)),
            ("OpenMP load balance", of_threads(efficiency.load_balance, load_balance)),
            ("OpenMP communication efficiency", of_threads(efficiency.communication, communication)),
        ];
        let missing = openmp.iter().filter(|(_, factor)| factor.is_none());
        let missing = missing
            .map(|(name, _)| format!("{name}: this factor is the quotient of the value for all threads and the value for MPI, and cannot be computed, because the value for all threads is unknown or is higher than the value for MPI"));
        let no_transfer = ideal.err().map(|reason| format!("MPI serialisation and transfer: {reason}"));
        let unknown = no_transfer.into_iter().chain(missing).collect();
        let ideal = ideal.ok().filter(|ideal| *ideal > 0).map(|ideal| ideal as f64);
        let [openmp, openmp_load_balance, openmp_communication] = openmp.map(|(_, factor)| factor);
        (communication <= 1.0).then_some(MpiEfficiency {
            parallel,
            load_balance,
            communication,
            serialisation: ideal.map(|ideal| longest / ideal),
            transfer: ideal.map(|ideal| ideal / duration),
            openmp,
            openmp_load_balance,
            openmp_communication,
            additive: None,
            unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factors_are_those_of_pop() {
        let efficiency = Efficiency { parallel: Some(0.3), load_balance: Some(0.6), ..Efficiency::default() };
        let found =
            MpiEfficiency::of_times(&[(80, 2), (40, 2)], 100, &efficiency, Ok(90)).expect("efficiencies");
        let expected = [0.6, 0.75, 0.8];
        for (found, expected) in
            [found.parallel, found.load_balance, found.communication].iter().zip(expected)
        {
            assert!((found - expected).abs() < 1e-9, "{found}");
        }
        assert!((found.openmp.expect("it") - 0.5).abs() < 1e-9);
        assert!((found.openmp_load_balance.expect("it") - 0.8).abs() < 1e-9);
        assert_eq!(found.openmp_communication, None);
        // Factors multiply to the whole.
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(found.load_balance * found.communication, found.parallel);
        near(found.parallel * found.openmp.expect("it"), 0.3);
        near(found.serialisation.expect("it") * 90.0, 80.0);
        near(found.serialisation.expect("it") * found.transfer.expect("it"), found.communication);
        assert_eq!(found.unknown.len(), 1, "{:?}", found.unknown);
        assert!(found.unknown[0].starts_with("OpenMP communication efficiency:"), "{:?}", found.unknown);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        assert_eq!(MpiEfficiency::of_times(&[(0, 1), (0, 1)], 100, &Efficiency::default(), Ok(90)), None);
        assert_eq!(MpiEfficiency::of_times(&[(200, 1)], 100, &Efficiency::default(), Ok(90)), None);
        let efficiency = Efficiency { parallel: Some(0.9), ..Efficiency::default() };
        let found = MpiEfficiency::of_times(&[(40, 1), (60, 1)], 100, &efficiency, Err("no replay"))
            .expect("efficiencies");
        assert_eq!((found.openmp, found.serialisation, found.transfer), (None, None, None));
        assert_eq!(found.unknown[0], "MPI serialisation and transfer: no replay");
    }
}
