//! The first pass over a process: all numbers but those that need a replay.

use super::*;
use crate::passes::replay_log::{Logged, ReplayLog};

impl Run<'_> {
    /// The results of the first pass for one process.
    pub(super) fn first_pass(
        &self,
        number: usize,
        windows: Option<Windows>,
        awaited: Option<Arc<AwaitedTimes>>,
    ) -> Result<Merged, NoAnswer> {
        let member = &self.members[number];
        if let Some(summary) = member.summary {
            return self.of_summary(number as u32, summary, &member.start);
        }
        let (of_functions, of_counters) = (windows.clone(), windows.clone());
        let collector = || Collector::new(number as u32, self.selected.clone());
        let in_segments = self.of_segments(self.manner, || First {
            phases: PhaseCollector::default(),
            numbers: collector().of_segment(),
            answers: self.collector().of_segment(),
        });
        let mut numbers = Numbers {
            phases: PhaseCollector::within(windows.clone()),
            windowed: Windowed::new(windows.clone(), collector()),
        };
        let is_whole = windows.is_none();
        let processes = self.members.len();
        let gathering = self.has_overview.then(|| OverviewCollector::new(processes));
        let has_spans = awaited.is_some();
        let ranks = awaited.zip(member.reader).map(|(awaited, reader)| RankSpans::of(awaited, reader));
        let collector = self.collector().with_observers(gathering, ranks).with_functions();
        let mut answers = Windowed::new(windows, collector);
        let mut functions = FunctionCollector::new(of_functions, self.selected.clone());
        if self.has_overview {
            functions = functions.with_stacks();
        }
        let counting = member.reader.and_then(|it| it.metadata().counting.as_ref());
        let mut counters = CounterCollector::new(of_counters, self.selected.clone(), counting);
        let mut earliest = Earliest(Ns::MAX);
        let mut levels = LevelCollector::default();
        let calls =
            self.timeline.ranks().and_then(|ranks| ranks.process(number)).filter(|_| has_spans && is_whole);
        let mut sites = calls.zip(member.reader).map(|(calls, reader)| SitePlaces::of(&calls.sites, reader));
        let mut sinks: Vec<&mut dyn Sink> = vec![&mut numbers, &mut answers];
        // Every item goes to every sink, so a sink is added only if the trace has items for it.
        let reader = member.reader;
        if reader.is_some_and(|reader| why_no_samples(reader).is_none()) {
            sinks.push(&mut functions);
        }
        if counting.is_some() {
            sinks.push(&mut counters);
        }
        if self.is_summarised {
            sinks.push(&mut earliest);
        }
        if self.has_overview {
            sinks.push(&mut levels);
        }
        if let Some(sites) = &mut sites {
            sinks.push(sites);
        }
        let is_logged = in_segments.is_none() && is_whole && self.is_logged(reader);
        let with_checkpoints = Manner {
            chunks: is_logged,
            checkpoints: reader.filter(|_| self.is_summarised && is_whole).map(checkpoint_distance),
            ..self.manner
        };
        let mut replay_log = None;
        let report = match in_segments {
            Some((first, report)) => {
                numbers.phases = first.phases;
                numbers.windowed.inner = first.numbers;
                answers.inner = first.answers;
                report
            }
            None if is_logged => {
                let (report, log) = self.handed_over(sinks, |sink| {
                    let mut logged = Logged { log: ReplayLog::default(), sink };
                    let report = self.interpret(with_checkpoints, number, &mut logged);
                    (report, logged.log)
                });
                replay_log = Some(log).filter(ReplayLog::is_complete);
                report
            }
            None => self.replay_in(with_checkpoints, number, sinks),
        };
        let (mut part, gathered, mut spans) = answers.inner.finish_with_observed();
        spans.sites = sites.map_or(Vec::new(), SitePlaces::places);
        if reader.is_some_and(mpi::is_unseen) {
            part.set_unseen_mpi();
        }
        let (phases, ranges) = numbers.phases.finish();
        let mut sums = numbers.windowed.inner.sums().folded(&ranges.folding);
        let process = report.processes.first();
        if is_whole && let Some(process) = process {
            sums.set_memory(number as u32, &process.devices);
        }
        if is_whole
            && self.selected.is_all()
            && self.options.threads.is_none()
            && let (Some(reader), Some(process)) = (reader, process)
        {
            let metadata = reader.metadata();
            sums.set_cpu_times(number as u32, metadata);
            if let Some(of_process) = sums.processes.get(&(number as u32)) {
                part.set_effort(|life| effort::of_process(metadata, process, of_process, life));
            }
        }
        let ending = process.and_then(|process| process.ending);
        sums.set_account(number as u32, ending, part.account());
        Ok(Merged {
            reports: vec![report],
            sums,
            part,
            gathered: gathered.into_iter().collect(),
            rank_spans: has_spans.then_some(spans).into_iter().collect(),
            levels: levels.levels(),
            phases,
            ranges,
            functions: functions.sums(),
            counters: counters.sums(),
            alone: None,
            earliest: earliest.0,
            replay_log,
        })
    }

    /// Whether the first pass keeps what the second one needs.
    fn is_logged(&self, reader: Option<&Reader>) -> bool {
        self.replays
            && self.members.len() == 1
            && self.selected.is_all()
            && !self.has_overview
            && reader.is_some_and(|reader| ReplayLog::is_enough_for(reader.summary().event_bytes))
    }

    fn of_summary(&self, number: u32, summary: &Summary, start: &Start) -> Result<Merged, NoAnswer> {
        let start = start.offset(self.origin);
        let body = summary.body(number, start);
        let body = body.ok_or_else(|| NoAnswer::Summary(summary.path().to_owned()))?;
        let (end, process) = summary.report(start);
        Ok(Merged {
            reports: vec![Report { processes: vec![process], end, ..Report::default() }],
            sums: body.sums,
            part: body.part,
            gathered: Vec::new(),
            rank_spans: Vec::new(),
            levels: Levels::default(),
            phases: body.phases.unwrap_or_default(),
            ranges: Ranges::default(),
            functions: body.functions,
            counters: body.counters,
            alone: body.alone,
            earliest: 0,
            replay_log: None,
        })
    }
}

/// Collects phases in addition to the numbers.
struct Numbers {
    phases: PhaseCollector,
    windowed: Windowed<Collector>,
}

impl Sink for Numbers {
    fn wants(&self) -> Wants {
        self.windowed.wants().and(self.phases.wants())
    }

    fn item(&mut self, item: &Item<'_>) {
        self.phases.item(item);
        self.windowed.item(item);
    }
}
