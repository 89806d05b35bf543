//! The clocks of several hosts as one.

use std::collections::BTreeMap;

use omptrace_trace_format::{ClockMap, Reader};

use crate::model::Ns;
use crate::ranks::host_clocks::{self, Fact, HostTime};
use crate::ranks::matching::{Job, Pair};
use crate::ranks::process_calls::ReceiveState;

/// A process's corrected clock, and when its session began by that; `None` where its own is right.
pub(super) type Corrected = Option<(ClockMap, Ns)>;

/// How the clocks of several hosts were made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClocks {
    /// How many hosts there are.
    pub hosts: usize,
    /// How often clocks were compared while the program ran.
    pub measurements: u64,
    /// How far two clocks may be apart; `None` where one of them is aligned by the time of day.
    pub error_ns: Option<u64>,
    /// How many messages were moved, since they would have been received before they were sent.
    pub moved: u64,
}

impl HostClocks {
    /// Words about it; the time of day is off by no more than `uncertainty_ns`, as far as the traces say.
    pub fn note(&self, uncertainty_ns: u64) -> String {
        let HostClocks { hosts, measurements, error_ns, moved } = self;
        let by = match measurements {
            0 => "by MPI messages between them".to_owned(),
            1 => "by a measurement and by MPI messages between them".to_owned(),
            _ => format!("by {measurements} measurements and by MPI messages between them"),
        };
        let mut text = match error_ns {
            Some(error) => format!(
                "the clocks of the {hosts} hosts were aligned {by}; two of them differ by at most {error} ns"
            ),
            None => format!(
                "the clocks of the processes were aligned by the hosts' time of day; the alignment may be wrong by up to {uncertainty_ns} ns, and by more if the hosts' clocks are not synchronised"
            ),
        };
        if *moved > 0 {
            text +=
                &format!("; {moved} messages that would have been received before they were sent were moved");
        }
        text
    }
}

/// What is known of the clocks of hosts.
pub(super) struct Hosts<'r> {
    inputs: Vec<(&'r Reader, Ns)>,
    /// The host of each process.
    hosts: Vec<usize>,
    count: usize,
    facts: Vec<Fact>,
    measurements: u64,
    /// How many measurements of each process are among the facts.
    taken: Vec<usize>,
}

impl<'r> Hosts<'r> {
    /// The hosts of processes, which begin at these times. `None` where there is one.
    pub(super) fn of(inputs: &[(&'r Reader, Ns)]) -> Option<Hosts<'r>> {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let hosts: Vec<usize> = inputs
            .iter()
            .enumerate()
            .map(|(process, (reader, _))| {
                let machine = reader.metadata().machine.as_ref();
                let boot = machine.map_or("", |machine| &machine.boot);
                let next = numbers.len();
                // A process whose host is not known is on one of its own.
                let key = if boot.is_empty() { format!("process {process}") } else { boot.to_owned() };
                *numbers.entry(key).or_insert(next)
            })
            .collect();
        let taken = vec![0; inputs.len()];
        let inputs = inputs.to_vec();
        let count = numbers.len();
        (count > 1).then(|| Hosts { inputs, hosts, count, facts: Vec::new(), measurements: 0, taken })
    }

    /// Adds what measurements and messages tell.
    pub(super) fn add(&mut self, job: &Job, pairs: &[Pair]) {
        let Hosts { inputs, hosts, facts, measurements, taken, .. } = self;
        let at = |process: usize, time| HostTime { host: hosts[process], time };
        // What the raw clock of a process's host shows, on the timeline.
        let raw = |process: usize, raw_ns: u64| {
            let (reader, start) = inputs[process];
            let since = i64::try_from(i128::from(raw_ns) - i128::from(reader.clock().start_raw_ns()));
            at(process, start.saturating_add(since.unwrap_or(0)))
        };
        for ((process, calls), taken) in job.processes.iter().enumerate().zip(taken) {
            for it in calls.measured.iter().skip(*taken) {
                let Some(peer) = job.process(it.peer).map(|peer| peer as usize) else { continue };
                if hosts[peer] != hosts[process] {
                    *measurements += 1;
                    let error_ns = i64::try_from(it.round_trip_ns / 2).unwrap_or(i64::MAX);
                    facts.push(Fact::Measured {
                        own: raw(process, it.own_ns),
                        peer: raw(peer, it.peer_ns),
                        error_ns,
                    });
                }
            }
            *taken = calls.measured.len();
        }
        for pair in pairs {
            let (sender, receiver) = (pair.sender as usize, pair.receiver as usize);
            let receive = &job.processes[receiver].receives[pair.receive as usize];
            let is_received = receive.state == ReceiveState::Complete && hosts[sender] != hosts[receiver];
            if let Some(done) = receive.wait.filter(|_| is_received) {
                let sent = job.processes[sender].sends[pair.send as usize].posted.begin;
                facts.push(Fact::Message { sent: at(sender, sent), received: at(receiver, done.end) });
            }
        }
    }

    /// What is known, and the corrected clock of each process.
    pub(super) fn one_clock(self) -> (HostClocks, Vec<Corrected>) {
        let Hosts { inputs, hosts, count, facts, measurements, .. } = self;
        let mut aligned = host_clocks::aligned(count, &facts);
        let starts = inputs.iter().zip(&hosts);
        let first = starts.map(|((_, start), host)| aligned.corrections[*host].apply(*start)).min();
        // No time is before the timeline's begin.
        if let Some(first) = first.filter(|first| *first < 0) {
            aligned.corrections.iter_mut().for_each(|correction| correction.shift(-first));
        }
        let clocks = inputs.iter().zip(&hosts).map(|((reader, start), host)| {
            let correction = &aligned.corrections[*host];
            let bends: Vec<i64> = correction.bends().iter().map(|time| time - start).collect();
            let corrected = |ns: i64| correction.apply(start.saturating_add(ns)).saturating_sub(*start);
            (!correction.is_none())
                .then(|| (reader.clock().corrected(&bends, corrected), correction.apply(*start)))
        });
        let known =
            HostClocks { hosts: count, measurements, error_ns: aligned.error_ns, moved: aligned.moved };
        let clocks = clocks.collect();
        (known, clocks)
    }
}
