//! What all parts of interpretation share: the sink, the names, the numbers that were given out.

use std::rc::Rc;

use ompt_sys as ompt;
use omptrace_trace_format::field::Address;

use crate::Manner;
use crate::names::{Construct, Names};
use crate::repair::Repairs;
use crate::sink::{
    Anchor, Counter, CounterId, Flow, FlowKind, Location, LocationId, LocationKind, Ns, Point,
    ProcessId, RegionId, Sink, ThreadEvent,
};
use omptrace_symbols::Table;

/// Combinations of flags whose words are kept.
const MAX_TASK_FLAGS: usize = 64;

pub(crate) struct Stage<'s> {
    pub(crate) sink: &'s mut dyn Sink,
    wants_thread_events: bool,
    pub(crate) names: Names,
    /// Whether the chunks of loops are wanted.
    pub(crate) chunks: bool,
    /// Regions that lie in as many others, or more, are not shown.
    pub(crate) max_depth: usize,
    /// Repairs of the process that is interpreted now.
    pub(crate) repairs: Repairs,
    /// When recording was off last, in the process that is interpreted now.
    pub(crate) pause: Option<(Ns, Ns)>,
    process: ProcessId,
    next_location: u32,
    next_counter: u32,
    next_flow: u64,
    /// The words for the flags of tasks that were met: few.
    task_flags: Vec<(ompt::ompt_task_flag_t, Rc<str>)>,
}

impl<'s> Stage<'s> {
    pub(crate) fn new(sink: &'s mut dyn Sink, manner: Manner) -> Stage<'s> {
        Stage {
            wants_thread_events: sink.wants_thread_events(),
            sink,
            names: Names::default(),
            chunks: manner.chunks,
            max_depth: manner.max_depth.unwrap_or(usize::MAX),
            repairs: Repairs::default(),
            pause: None,
            process: ProcessId(0),
            next_location: 0,
            next_counter: 0,
            next_flow: 1,
            task_flags: Vec::new(),
        }
    }

    /// What comes now belongs to `process`, whose code addresses have these names.
    pub(crate) fn begin_process(&mut self, process: ProcessId, symbols: Table) {
        self.process = process;
        self.names.next_process(symbols);
        self.repairs = Repairs::default();
        self.pause = None;
    }

    pub(crate) fn location(&mut self, kind: LocationKind, name: String) -> LocationId {
        let id = LocationId(self.next_location);
        self.next_location += 1;
        self.sink.location(&Location {
            id,
            process: self.process,
            kind,
            name,
        });
        id
    }

    pub(crate) fn counter(&mut self, name: String, unit: &'static str) -> CounterId {
        let id = CounterId(self.next_counter);
        self.next_counter += 1;
        self.sink.counter(&Counter {
            id,
            process: self.process,
            name,
            unit,
        });
        id
    }

    /// The region of `construct` at `codeptr_ra`; `around` are the open regions that it lies in, from the innermost.
    #[inline(always)]
    pub(crate) fn region(
        &mut self,
        construct: Construct,
        codeptr_ra: Address,
        around: impl Iterator<Item = RegionId>,
    ) -> RegionId {
        self.names.region(self.sink, construct, codeptr_ra, around)
    }

    /// The names of a task's flags, and the bits that have none.
    #[inline]
    pub(crate) fn task_flags(&mut self, flags: ompt::ompt_task_flag_t) -> Rc<str> {
        match self.task_flags.iter().find(|(known, _)| *known == flags) {
            Some((_, words)) => Rc::clone(words),
            None => self.new_task_flags(flags),
        }
    }

    #[cold]
    fn new_task_flags(&mut self, flags: ompt::ompt_task_flag_t) -> Rc<str> {
        let mut words: Vec<String> = flags.names().map(str::to_owned).collect();
        if flags.unknown_bits() != 0 {
            words.push(format!("{:#x}", flags.unknown_bits()));
        }
        let words: Rc<str> = words.join(" ").into();
        // Nonsense may have any.
        if self.task_flags.len() < MAX_TASK_FLAGS {
            self.task_flags.push((flags, Rc::clone(&words)));
        }
        words
    }

    /// A thread meets others.
    #[inline(always)]
    pub(crate) fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        if self.wants_thread_events {
            self.sink.thread_event(at, event);
        }
    }

    pub(crate) fn flow(
        &mut self,
        kind: FlowKind,
        (from, cause): (Point, Anchor),
        (to, effect): (Point, Anchor),
    ) {
        self.sink.flow(&Flow {
            id: self.next_flow,
            kind,
            from,
            cause,
            to,
            effect,
        });
        self.next_flow += 1;
    }

    /// When a region ended whose own end is missing, on a thread where something new was seen at `time` and nothing
    /// since `last`: when recording was switched off, if that lies between.
    pub(crate) fn end_of_unended(&self, last: Ns, time: Ns) -> Ns {
        match self.pause {
            Some((begin, end)) if last <= begin && end <= time => begin,
            _ => time,
        }
    }
}
