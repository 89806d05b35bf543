//! What programs say of themselves, word for word, for sinks that [want](crate::model::Wants::ANNOTATIONS) it.
//!
//! Ranges of a thread are regions, too, which are cut where two domains overlap. Here each is whole.

use std::collections::BTreeMap;

use omptrace_trace_format::field::{AnnotationKind, AnnotationSource, PayloadType};

use super::super::Interpreter;
use super::{Texts, is_of_process};
use crate::model::{Annotated, Annotation, Item, Looks, Ns, Payload};

/// Ranges that are open at once. Stops a program that ends none: it would fill the memory.
const MAX_OPEN: usize = 1 << 20;

/// What tells an open range from others: its thread, unless it is one of the process, its kind, source, domain and instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RangeKey {
    thread: Option<usize>,
    kind: Option<u32>,
    source: u32,
    domain: u32,
    instance: u64,
}

impl RangeKey {
    /// The end of a range of the process may have another kind than its begin.
    pub(super) fn new(
        thread: usize,
        kind: AnnotationKind,
        (source, domain, instance): (AnnotationSource, u32, u64),
    ) -> RangeKey {
        let of_thread = (!is_of_process(kind)).then_some((thread, kind.0));
        RangeKey {
            thread: of_thread.map(|(thread, _)| thread),
            kind: of_thread.map(|(_, kind)| kind),
            source: source.0,
            domain,
            instance,
        }
    }
}

/// The numbers in an event that stand for texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) source: AnnotationSource,
    pub(super) domain: u32,
    pub(super) name: u32,
    pub(super) instance: u64,
}

/// The ranges that are open.
#[derive(Debug, Default)]
pub(super) struct OpenRanges {
    ranges: BTreeMap<RangeKey, Vec<Annotation>>,
    count: usize,
}

impl OpenRanges {
    fn begin(&mut self, key: RangeKey, range: Annotation) {
        if self.count < MAX_OPEN {
            self.ranges.entry(key).or_default().push(range);
            self.count += 1;
        }
    }

    fn end(&mut self, key: RangeKey) -> Option<Annotation> {
        let open = self.ranges.get_mut(&key)?;
        let range = open.pop();
        if open.is_empty() {
            self.ranges.remove(&key);
        }
        self.count -= usize::from(range.is_some());
        range
    }

    fn take(&mut self) -> impl Iterator<Item = Annotation> {
        self.count = 0;
        std::mem::take(&mut self.ranges).into_values().flatten()
    }
}

impl Interpreter<'_, '_> {
    /// A range begins.
    pub(super) fn begin_verbatim(&mut self, key: RangeKey, range: Annotation) {
        self.annotations.verbatim.begin(key, range);
    }

    /// A range ends.
    pub(super) fn end_verbatim(&mut self, key: RangeKey, time: Ns) {
        if let Some(mut range) = self.annotations.verbatim.end(key) {
            if let Annotated::Range { end, .. } = &mut range.what {
                *end = Some(time.max(range.time));
            }
            self.stage.item(&Item::Annotation(&range));
        }
    }

    /// The trace ends.
    pub(super) fn finish_verbatim(&mut self) {
        for range in self.annotations.verbatim.take() {
            self.stage.item(&Item::Annotation(&range));
        }
    }

    /// Something that a thread says.
    pub(super) fn verbatim(
        &self,
        thread: usize,
        time: Ns,
        named: Named,
        payload: Payload,
        what: Annotated,
    ) -> Annotation {
        let texts = &self.annotations.texts;
        let domain = texts.text(named.domain).filter(|domain| !domain.is_empty());
        Annotation {
            thread: self.threads[thread].location,
            time,
            source: named.source,
            domain: domain.map(|domain| domain.into_owned()),
            name: texts.text(named.name).unwrap_or_default().into_owned(),
            instance: named.instance,
            payload,
            what,
        }
    }

    /// How a range or a mark is to look.
    pub(super) fn looks(&self, domain: u32, category: u32, colour: u32) -> Looks {
        let texts = &self.annotations.texts;
        let category = (category != 0).then(|| texts.category(domain, category).into_owned());
        Looks { category, colour }
    }
}

/// A number or a text that the program gives.
pub(super) fn payload(texts: &Texts, payload_type: PayloadType, word: u64) -> Payload {
    match payload_type {
        PayloadType::none => Payload::None,
        PayloadType::int64 => Payload::Int(word.cast_signed()),
        PayloadType::float64 => Payload::Float(f64::from_bits(word)),
        PayloadType::text => {
            let number = u32::try_from(word).unwrap_or(0);
            Payload::Text(texts.text(number).unwrap_or_default().into_owned())
        }
        _ => Payload::Uint(word),
    }
}
