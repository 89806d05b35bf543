//! The second pass over a process: replays with changes, phases, and durations of chunks.

use super::*;
use crate::model::accounting::Accounting;
use crate::overview::by_step::StepTimes;
use crate::passes::in_segments::of_logs;
use crate::passes::replay_log::ReplayLog;
use crate::passes::segments::Continues;
use crate::what_if::MAX_SCENARIOS;

/// Maximum number of threads that schedule regions on other numbers of threads. Each thread may hold some large phases.
const MAX_SCHEDULERS: usize = 4;

/// The results of a process in the second pass.
pub(super) struct Second {
    pub(super) predicted: Option<Predicted>,
    pub(super) phases: Vec<MergeableAnswers>,
    pub(super) chunks: ChunkDurations,
    /// By bin of time steps.
    pub(super) steps: Vec<Accounting>,
}

/// The changes to replay, within these windows.
#[derive(Clone, Copy)]
pub(super) struct Changes<'p> {
    pub(super) plans: &'p [Plan],
    /// The numbers of threads on which regions are scheduled.
    pub(super) numbers: &'p [u32],
    pub(super) windows: Option<&'p Windows>,
    /// Also collects the durations of loop chunks.
    pub(super) has_chunks: bool,
    /// What threads did in these time steps is.
    pub(super) steps: Option<&'p StepTimes>,
    /// What the first pass has kept of each segment.
    pub(super) logs: &'p [ReplayLog],
}

/// Number of scenarios that are replayed at once if there are no more: most runs have as few, and each costs time.
const FEW_SCENARIOS: usize = 8;

/// The second pass over a segment of the only process.
struct Segment<const S: usize> {
    replayed: Option<Windowed<collector::Collector<S>>>,
    phases: Vec<Windowed<collector::Collector<0>>>,
    chunks: Option<ChunkCollector>,
    by_step: Option<collector::Collector<0>>,
}

impl<const S: usize> Segment<S> {
    fn results(self) -> Second {
        Second {
            predicted: self.replayed.and_then(|replayed| replayed.inner.predicted()),
            phases: self.phases.into_iter().map(|of_phase| of_phase.inner.finish()).collect(),
            chunks: self.chunks.map_or(ChunkDurations::default(), ChunkCollector::durations),
            steps: self.by_step.map_or(Vec::new(), collector::Collector::finish_with_steps),
        }
    }
}

impl<const S: usize> Sink for Segment<S> {
    fn wants(&self) -> Wants {
        let replayed = self.replayed.iter().map(Sink::wants);
        let phases = self.phases.iter().map(Sink::wants);
        let chunks = self.chunks.iter().map(Sink::wants);
        let by_step = self.by_step.iter().map(Sink::wants);
        replayed.chain(phases).chain(chunks).chain(by_step).fold(Wants::NONE, Wants::and)
    }

    fn item(&mut self, item: &Item<'_>) {
        if let Some(replayed) = &mut self.replayed {
            replayed.item(item);
        }
        for phase in &mut self.phases {
            phase.item(item);
        }
        if let Some(chunks) = &mut self.chunks {
            chunks.item(item);
        }
        if let Some(by_step) = &mut self.by_step {
            by_step.item(item);
        }
    }
}

impl<const S: usize> Continues for Segment<S> {
    fn end_segment(&mut self) -> bool {
        // No short circuit: all must end their segment, even if one of them does not fit.
        let replayed = self.replayed.iter_mut().fold(true, |fits, it| it.end_segment() & fits);
        let phases = self.phases.iter_mut().fold(true, |fits, it| it.end_segment() & fits);
        let by_step = self.by_step.iter_mut().fold(true, |fits, it| it.end_segment() & fits);
        replayed & phases & by_step
    }

    fn append(&mut self, next: Self) -> bool {
        if let (Some(chunks), Some(next)) = (&mut self.chunks, next.chunks) {
            chunks.append(next);
        }
        let mut pairs = self.phases.iter_mut().zip(next.phases);
        self.replayed.as_mut().zip(next.replayed).is_none_or(|(own, next)| own.append(next))
            && pairs.all(|(own, next)| own.append(next))
            && self.by_step.as_mut().zip(next.by_step).is_none_or(|(own, next)| own.append(next))
    }

    fn complete(&mut self) {
        self.replayed.iter_mut().for_each(Continues::complete);
        self.phases.iter_mut().for_each(Continues::complete);
        self.by_step.iter_mut().for_each(Continues::complete);
    }
}

impl Second {
    /// The results of replaying changes alone.
    fn of<const S: usize>(replayed: collector::Collector<S>) -> Second {
        Second {
            predicted: replayed.predicted(),
            phases: Vec::new(),
            chunks: ChunkDurations::default(),
            steps: Vec::new(),
        }
    }
}

impl Run<'_> {
    pub(super) fn second_pass(&self, number: usize, changes: Changes<'_>, phases: &[Phase]) -> Second {
        match changes.plans.len() {
            0..=FEW_SCENARIOS => self.second_pass_of::<FEW_SCENARIOS>(number, changes, phases),
            _ => self.second_pass_of::<MAX_SCENARIOS>(number, changes, phases),
        }
    }

    /// The second pass with up to `S` plans.
    fn second_pass_of<const S: usize>(
        &self,
        number: usize,
        changes: Changes<'_>,
        phases: &[Phase],
    ) -> Second {
        let Changes { plans, numbers, windows, has_chunks, steps, logs } = changes;
        let with_chunks = Manner { chunks: true, ..self.manner };
        let only_changes = phases.is_empty() && !has_chunks && steps.is_none() && !plans.is_empty();
        let (log, logs) = match logs {
            _ if !only_changes => (None, None),
            [] => (None, None),
            [log] => (Some(log), None),
            logs => (None, Some(logs)),
        };
        let new_segment = || Segment::<S> {
            replayed: (!plans.is_empty()).then(|| {
                let collector = collector::Collector::<S>::replaying(plans, numbers.to_vec());
                Windowed::new(windows.cloned(), collector.of_segment())
            }),
            phases: phases
                .iter()
                .map(|(_, _, when)| Windowed::new(Some(when.clone()), self.collector().of_segment()))
                .collect(),
            chunks: has_chunks.then(ChunkCollector::default),
            by_step: steps.map(|times| self.collector().with_steps(times.clone()).of_segment()),
        };
        if let Some(segments) = logs.and_then(|logs| of_logs(logs, new_segment)) {
            return segments.results();
        }
        // If there is a log of the whole process, its segments do not fit together.
        let segments = self.segments.as_ref().filter(|_| log.is_none());
        if let Some((segments, _)) = self.of_segments(segments, with_chunks, new_segment) {
            return segments.results();
        }
        if let Some(log) = log.filter(|_| self.sink_threads == 0) {
            let mut replayed = collector::Collector::<S>::replaying(plans, numbers.to_vec());
            if log.replay(&mut replayed).is_ok() {
                return Second::of(replayed);
            }
        }
        // Replays of changes and scheduling on other numbers of threads are independent, so they can be separate sinks.
        let is_apart = self.sink_threads > 1 && !numbers.is_empty();
        let numbers = numbers.to_vec();
        let (replayed, scheduled) = match is_apart {
            true => (Vec::new(), Some(numbers)),
            false => (numbers, None),
        };
        let mut replayed = (!plans.is_empty()).then(|| {
            let collector = collector::Collector::<S>::replaying(plans, replayed);
            Windowed::new(windows.cloned(), collector)
        });
        let mut scheduled = scheduled.map(|numbers| {
            let schedulers = (self.sink_threads - 2).min(MAX_SCHEDULERS);
            collector::Collector::scheduling(numbers, schedulers)
        });
        let mut of_phases: Vec<_> =
            phases.iter().map(|(_, _, when)| Windowed::new(Some(when.clone()), self.collector())).collect();
        let mut sinks: Vec<&mut dyn Sink> = Vec::new();
        sinks.extend(replayed.iter_mut().map(|sink| sink as &mut dyn Sink));
        sinks.extend(scheduled.iter_mut().map(|sink| sink as &mut dyn Sink));
        sinks.extend(of_phases.iter_mut().map(|sink| sink as &mut dyn Sink));
        let mut chunks = ChunkCollector::default();
        if has_chunks {
            sinks.push(&mut chunks);
        }
        let mut by_step = steps.map(|times| self.collector().with_steps(times.clone()));
        sinks.extend(by_step.iter_mut().map(|sink| sink as &mut dyn Sink));
        match log {
            Some(log) => {
                if self.handed_over(sinks, |sink| log.replay(sink)).is_err() {
                    return self.second_pass_of::<S>(number, Changes { logs: &[], ..changes }, phases);
                }
            }
            None => {
                self.replay_in(with_chunks, number, sinks);
            }
        }
        let of_phases = of_phases.into_iter();
        let predicted = replayed.and_then(|replayed| replayed.inner.predicted());
        Second {
            predicted: match scheduled {
                Some(scheduled) => scheduled.scheduled(predicted),
                None => predicted,
            },
            phases: of_phases.map(|of_phase| of_phase.inner.finish()).collect(),
            chunks: chunks.durations(),
            steps: by_step.map_or(Vec::new(), collector::Collector::finish_with_steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    #[test]
    fn a_log_of_the_first_pass_gives_the_same_results_as_the_trace() {
        parallel::limit_threads(NonZero::<usize>::MIN);
        let mut replayed = 0;
        for reader in super::super::tests::historic_traces() {
            let options = Options::default();
            let json = |stats: &Stats| serde_json::to_string(stats).expect("JSON");
            let (of_log, _) = Stats::with(&[&reader], &options).expect("nothing is selected");
            // With an overview, the second pass reads the trace.
            let (of_trace, ..) = Stats::with_overview(&[&reader], &options);
            assert_eq!(json(&of_log), json(&of_trace), "{}", reader.path().display());
            replayed += usize::from(!of_log.answers.what_if.is_empty());
        }
        assert!(replayed > 5, "{replayed}");
    }
}
