//! The efficiency of an MPI job in POP's additive hybrid model: losses of MPI and of OpenMP add up.
//!
//! ```text
//! 1 - parallel = (1 - process) + (1 - thread)
//! 1 - process  = (1 - process load balance) + (1 - process communication)
//! 1 - thread   = (1 - OpenMP) + (1 - serial regions)
//! ```

use serde::{Deserialize, Serialize};

/// Efficiencies. A thread is in OpenMP while a region of its process is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AdditiveEfficiency {
    /// Useful time of all threads / (threads x T).
    pub parallel: f64,
    /// Mean active time of the processes, weighted by their numbers of threads / T. A process is active in regions and in useful serial
    /// code.
    pub process: f64,
    /// 1 - (longest - mean active time) / T.
    pub process_load_balance: f64,
    /// Longest active time / T.
    pub process_communication: f64,
    /// `openmp` + `serial_regions` - 1.
    pub thread: f64,
    /// 1 - mean time of the threads in OpenMP that is not useful / T. Time in MPI calls inside of regions is not useful.
    pub openmp: f64,
    /// 1 - useful serial time of the other threads, which do nothing meanwhile / (threads x T).
    pub serial_regions: f64,
}

/// A process's times in nanoseconds, and its number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessTimes {
    pub(crate) threads: u32,
    pub(crate) in_regions: u64,
    pub(crate) serial_useful: u64,
    /// Of all threads, including serial code.
    pub(crate) useful: u64,
}

impl AdditiveEfficiency {
    /// The efficiency of a job that takes this long; `None` if threads worked in regions of which they are not members, or longer
    /// than the job takes.
    pub(crate) fn of(processes: &[ProcessTimes], duration_ns: u64) -> Option<AdditiveEfficiency> {
        let duration = Some(duration_ns as f64).filter(|duration| *duration > 0.0)?;
        let sum = |of: fn(&ProcessTimes) -> f64| processes.iter().map(of).sum::<f64>();
        let threads = Some(sum(|it| f64::from(it.threads))).filter(|threads| *threads > 0.0)?;
        let all = threads * duration;
        let active = |it: &ProcessTimes| it.in_regions as f64 + it.serial_useful as f64;
        let longest = processes.iter().map(active).fold(0.0, f64::max) / duration;
        let process =
            sum(|it| f64::from(it.threads) * (it.in_regions as f64 + it.serial_useful as f64)) / all;
        let in_openmp = sum(|it| f64::from(it.threads) * it.in_regions as f64);
        let useful_in_openmp = sum(|it| it.useful.saturating_sub(it.serial_useful) as f64);
        let others = sum(|it| f64::from(it.threads.saturating_sub(1)) * it.serial_useful as f64);
        let openmp = 1.0 - (in_openmp - useful_in_openmp) / all;
        let serial_regions = 1.0 - others / all;
        (longest <= 1.0 && openmp <= 1.0).then_some(AdditiveEfficiency {
            parallel: sum(|it| it.useful as f64) / all,
            process,
            process_load_balance: 1.0 - (longest - process),
            process_communication: longest,
            thread: openmp + serial_regions - 1.0,
            openmp,
            serial_regions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_add_up() {
        let process = |in_regions, serial_useful, useful| ProcessTimes {
            threads: 2,
            in_regions,
            serial_useful,
            useful,
        };
        let found =
            AdditiveEfficiency::of(&[process(60, 20, 110), process(40, 10, 70)], 100).expect("efficiencies");
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}: {found:?}");
        near(found.parallel, 0.45);
        near(found.process, 0.65);
        near(found.process_communication, 0.8);
        near(found.process_load_balance, 0.85);
        near(found.openmp, 1.0 - 50.0 / 400.0);
        near(found.serial_regions, 1.0 - 30.0 / 400.0);
        near(1.0 - found.parallel, (1.0 - found.process) + (1.0 - found.thread));
        near(1.0 - found.process, (1.0 - found.process_load_balance) + (1.0 - found.process_communication));
        near(1.0 - found.thread, (1.0 - found.openmp) + (1.0 - found.serial_regions));
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let process = ProcessTimes { threads: 1, in_regions: 50, serial_useful: 10, useful: 70 };
        assert_eq!(AdditiveEfficiency::of(&[process], 100), None);
        assert_eq!(AdditiveEfficiency::of(&[ProcessTimes { useful: 10, ..process }], 50), None);
        assert_eq!(AdditiveEfficiency::of(&[], 100), None);
        assert_eq!(AdditiveEfficiency::of(&[process], 0), None);
    }
}
