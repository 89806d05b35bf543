//! A location in the format, and the list of events to which it writes.

use crate::chrome::event_text::{
    BeforeTime, Called, FlowTexts, begin, flow_event, instant_event, slice_begin, slice_end,
};
use crate::writer::decimal::put;
use crate::writer::interned_text::ByWord;
use crate::writer::output::Output;
use omptrace_timeline::model::{LinkKind, Ns};

/// The file's list of events.
pub(super) struct Events {
    pub(super) out: Output,
    pub(super) empty: bool,
}

impl Events {
    /// The buffer, positioned for the next event.
    pub(super) fn next(&mut self) -> &mut Vec<u8> {
        self.out.written();
        let out = self.out.buffer();
        if !std::mem::replace(&mut self.empty, false) {
            out.extend_from_slice(SEPARATOR);
        }
        out
    }
}

/// A location in the format.
pub(super) struct Track {
    pub(super) before_time: BeforeTime,
    /// The regions of the open slices, outermost first.
    pub(super) open: Vec<u32>,
    /// The start of the newest slice, if nothing has happened since.
    pub(super) newest: Option<Ns>,
    /// Whether that start has not been written yet.
    pub(super) is_kept: bool,
    /// The time of the newest event, if it is an instant: Perfetto's importer takes an instant for the innermost slice
    /// until the next event.
    pub(super) instant: Option<Ns>,
    /// The arguments of the newest slice, as written by `write_arguments`.
    pub(super) arguments: Vec<u8>,
    /// The arrows that lead to the newest slice.
    pub(super) arrows: Vec<(u64, LinkKind)>,
    /// The end of the newest interval, if it has not been written yet.
    pub(super) held: Option<Ns>,
    /// The text after the time in that end.
    pub(super) end: Vec<u8>,
}

impl Track {
    /// The thread continues at `time`: writes what was held back, which are the newest slice's start, the arrows to it,
    /// and the end of the interval.
    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        events: &mut Events,
        regions: &[Called],
        flows: &mut ByWord<FlowTexts>,
        time: Ns,
    ) {
        self.write_begin(events, regions);
        if !self.arrows.is_empty() {
            self.write_arrows(events, flows, time);
        }
        if self.held.is_some() {
            self.write_held(events);
        }
    }

    #[inline(always)]
    pub(super) fn write_begin(&mut self, events: &mut Events, regions: &[Called]) {
        if !std::mem::replace(&mut self.is_kept, false) {
            return;
        }
        if let (Some(begin), Some(region)) = (self.newest, self.open.last()) {
            let called = &regions[*region as usize];
            let out = events.next();
            slice_begin(out, &self.before_time, begin, called, &self.arguments);
        }
    }

    /// Writes a slice that ends when it started, and whose start was held back.
    #[cold]
    pub(super) fn write_moment(&mut self, events: &mut Events, regions: &[Called]) {
        (self.is_kept, self.instant) = (false, self.newest);
        if let (Some(time), Some(region)) = (self.newest.take(), self.open.pop()) {
            let called = &regions[region as usize];
            let out = events.next();
            instant_event(out, &self.before_time, time, called, &self.arguments);
        }
    }

    #[inline(never)]
    pub(super) fn write_arrows(&mut self, events: &mut Events, flows: &mut ByWord<FlowTexts>, time: Ns) {
        let begin = self.newest.unwrap_or(time);
        let time = self.held.unwrap_or(time);
        let inside = if begin + 1 < time { begin + 1 } else { begin };
        for (id, kind) in self.arrows.drain(..) {
            let text = &flows.get(kind.name(), || FlowTexts::of(kind)).finish;
            flow_event(events.next(), b'f', &self.before_time, inside, id, text);
        }
    }

    #[inline(never)]
    pub(super) fn write_held(&mut self, events: &mut Events) {
        if let Some(end) = self.held.take() {
            let out = events.next();
            put::<80>(out, |pieces| begin(pieces, b'E', &self.before_time, end));
            out.extend_from_slice(&self.end);
        }
    }

    /// Writes a slice without duration, containing the end of an arrow that `write` writes.
    pub(super) fn mark(
        &self,
        events: &mut Events,
        time: Ns,
        called: &Called,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        slice_begin(events.next(), &self.before_time, time, called, &[]);
        write(events.next());
        slice_end(events.next(), &self.before_time, time, called, &[]);
    }
}

/// Between two events.
pub(super) const SEPARATOR: &[u8] = b",\n";
