//! A location as the format sees it, and the list of events that it writes to.

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
    /// The buffer, where the next event begins.
    pub(super) fn next(&mut self) -> &mut Vec<u8> {
        self.out.written();
        let out = self.out.buffer();
        if !std::mem::replace(&mut self.empty, false) {
            out.extend_from_slice(SEPARATOR);
        }
        out
    }
}

/// A location as the format sees it.
pub(super) struct Lane {
    pub(super) before_time: BeforeTime,
    /// The regions of the slices that are open, the outermost first.
    pub(super) open: Vec<u32>,
    /// When the newest slice began, if nothing came after.
    pub(super) newest: Option<Ns>,
    /// Whether its start is still to be written.
    pub(super) is_kept: bool,
    /// When the newest event was, if that is an instant: Perfetto's importer takes it for the innermost slice until the next one.
    pub(super) instant: Option<Ns>,
    /// Its arguments, as [`write_arguments`] leaves them.
    pub(super) arguments: Vec<u8>,
    /// The arrows that lead to it.
    pub(super) arrows: Vec<(u64, LinkKind)>,
    /// The end of an interval, if that is the newest.
    pub(super) held: Option<Ns>,
    /// The text after its time.
    pub(super) end: Vec<u8>,
}

impl Lane {
    /// The thread goes on at `time`: its newest slice's start, arrows to it, and the interval's end come before.
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

    /// The newest slice ends when it began. Its start was kept.
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

    /// A slice without duration, with an arrow's end inside that `write` writes.
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
