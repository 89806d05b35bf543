//! The first pass over a process: all numbers but those that need a replay.

use omptrace_timeline::Boundary;

use super::*;
use crate::overview::fixed_bins::FixedBins;
use crate::passes::replay_log::{Logged, ReplayLog};
use crate::passes::segments::Continues;

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
        let is_whole = windows.is_none();
        let has_spans = awaited.is_some();
        let overview = self.has_overview.then(|| self.overview_collector(member.reader));
        let first = |is_segment: bool| {
            let ranks = awaited.clone().zip(member.reader);
            let ranks = ranks.map(|(awaited, reader)| RankSpans::of(awaited, reader));
            let numbers = Collector::new(number as u32, self.selected.clone());
            let answers = self.collector().with_observers(overview.clone(), ranks);
            let (numbers, answers) = match is_segment {
                true => (numbers.of_segment(), answers.of_segment()),
                // Traces with samples have no segments.
                false => (numbers, answers.with_functions()),
            };
            First {
                numbers: Numbers {
                    phases: PhaseCollector::within(windows.clone()),
                    windowed: Windowed::new(windows.clone(), numbers),
                },
                answers: Windowed::new(windows.clone(), answers),
                levels: self.has_overview.then(LevelCollector::default),
                earliest: self.is_summarised.then_some(Earliest(Ns::MAX)),
            }
        };
        let reader = member.reader;
        let is_logged = is_whole && self.is_logged(reader);
        let in_segments =
            self.of_segments_with_logs(self.segments.as_ref(), self.manner, is_logged, || first(true));
        let (mut first, in_segments) = match in_segments {
            Some((first, report, logs)) => (first, Some((report, logs))),
            None => (first(false), None),
        };
        let mut functions = FunctionCollector::new(of_functions, self.selected.clone());
        if self.has_overview {
            functions = functions.with_stacks();
        }
        let counting = member.reader.and_then(|it| it.metadata().counting.as_ref());
        let mut counters = CounterCollector::new(of_counters, self.selected.clone(), counting);
        let calls =
            self.timeline.ranks().and_then(|ranks| ranks.process(number)).filter(|_| has_spans && is_whole);
        let mut sites = calls.zip(member.reader).map(|(calls, reader)| SitePlaces::of(&calls.sites, reader));
        // Every item goes to every sink, so a sink is added only if the trace has items for it.
        let mut sinks: Vec<&mut dyn Sink> = Vec::new();
        if reader.is_some_and(|reader| why_no_samples(reader).is_none()) {
            sinks.push(&mut functions);
        }
        if counting.is_some() {
            sinks.push(&mut counters);
        }
        if let Some(sites) = &mut sites {
            sinks.push(sites);
        }
        let with_checkpoints = Manner {
            chunks: is_logged,
            checkpoints: reader
                .filter(|_| self.is_summarised && is_whole && self.checkpoints.is_none())
                .map(checkpoint_distance),
            ..self.manner
        };
        let mut replay_logs = Vec::new();
        let report = match in_segments {
            Some((report, logs)) => {
                replay_logs = logs;
                report
            }
            None if is_logged && sinks.is_empty() && self.sink_threads == 0 => {
                let mut logged = Logged { log: ReplayLog::default(), sink: &mut first };
                let report = self.interpret(with_checkpoints, number, &mut logged);
                replay_logs.push(logged.log);
                report
            }
            None => {
                if self.sink_threads == 0 {
                    sinks.push(&mut first);
                } else {
                    let First { numbers, answers, levels, earliest } = &mut first;
                    let own: [&mut dyn Sink; 2] = [numbers, answers];
                    sinks.splice(0..0, own);
                    sinks.extend(levels.iter_mut().map(|levels| levels as &mut dyn Sink));
                    sinks.extend(earliest.iter_mut().map(|earliest| earliest as &mut dyn Sink));
                }
                self.handed_over(sinks, |sink| match is_logged {
                    true => {
                        let mut logged = Logged { log: ReplayLog::default(), sink };
                        let report = self.interpret(with_checkpoints, number, &mut logged);
                        replay_logs.push(logged.log);
                        report
                    }
                    false => self.interpret(with_checkpoints, number, sink),
                })
            }
        };
        if !replay_logs.iter().all(ReplayLog::is_complete) {
            replay_logs.clear();
        }
        let First { numbers, answers, levels, earliest } = first;
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
            levels: levels.map_or(Levels::default(), LevelCollector::levels),
            phases,
            ranges,
            functions: functions.sums(),
            counters: counters.sums(),
            alone: None,
            earliest: earliest.map_or(Ns::MAX, |Earliest(begin)| begin),
            replay_logs,
        })
    }

    fn overview_collector(&self, reader: Option<&Reader>) -> OverviewCollector {
        let collector = OverviewCollector::new(self.members.len());
        match reader.filter(|_| self.members.len() == 1) {
            Some(reader) => {
                let boundaries = Boundary::all(reader).iter().map(|boundary| boundary.time).collect();
                collector.in_fixed_bins(FixedBins::new(reader.clock().ns(reader.last_ticks()), boundaries))
            }
            None => collector,
        }
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
            replay_logs: Vec::new(),
        })
    }
}

/// The first pass over a process or a segment of it.
struct First {
    numbers: Numbers,
    answers: Windowed<collector::Collector<0>>,
    /// For the overview.
    levels: Option<LevelCollector>,
    /// For a summary.
    earliest: Option<Earliest>,
}

impl Sink for First {
    fn wants(&self) -> Wants {
        let wants = self.numbers.wants().and(self.answers.wants());
        self.levels.iter().fold(wants, |wants, levels| wants.and(levels.wants()))
    }

    #[inline(always)]
    fn item(&mut self, item: &Item<'_>) {
        self.numbers.item(item);
        self.answers.item(item);
        if let Some(levels) = &mut self.levels {
            levels.item(item);
        }
        if let Some(earliest) = &mut self.earliest {
            earliest.item(item);
        }
    }
}

impl Continues for First {
    fn end_segment(&mut self) -> bool {
        // No short circuit: both must end their segment, even if the first one does not fit.
        self.numbers.windowed.end_segment() & self.answers.end_segment()
    }

    fn append(&mut self, next: First) -> bool {
        self.numbers.phases.append(next.numbers.phases);
        if let (Some(levels), Some(next)) = (&mut self.levels, next.levels) {
            levels.append(next);
        }
        if let (Some(Earliest(own)), Some(Earliest(next))) = (&mut self.earliest, next.earliest) {
            *own = next.min(*own);
        }
        self.numbers.windowed.append(next.numbers.windowed) && self.answers.append(next.answers)
    }

    fn complete(&mut self) {
        self.numbers.windowed.complete();
        self.answers.complete();
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

    #[inline(always)]
    fn item(&mut self, item: &Item<'_>) {
        self.phases.item(item);
        self.windowed.item(item);
    }
}
