//! What programs say of themselves, word for word, for sinks that [want](crate::model::Wants::ANNOTATIONS) it.
//!
//! Ranges of a thread are regions, too, which are cut where two domains overlap. Here each is whole.

use std::collections::BTreeMap;

use omptrace_trace_format::field::{AnnotationKind, AnnotationSource, PayloadType};

use super::texts::Texts;
use crate::model::{Annotation, Payload};

/// Ranges that are open at once. Stops a program that ends none: it would fill the memory.
const MAX_OPEN: usize = 1 << 20;

/// Whether ranges of this kind are the process's.
pub(crate) fn is_of_process(kind: AnnotationKind) -> bool {
    matches!(kind, AnnotationKind::process | AnnotationKind::frame)
}

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
    pub(super) fn begin(&mut self, key: RangeKey, range: Annotation) {
        if self.count < MAX_OPEN {
            self.ranges.entry(key).or_default().push(range);
            self.count += 1;
        }
    }

    pub(super) fn end(&mut self, key: RangeKey) -> Option<Annotation> {
        let open = self.ranges.get_mut(&key)?;
        let range = open.pop();
        if open.is_empty() {
            self.ranges.remove(&key);
        }
        self.count -= usize::from(range.is_some());
        range
    }

    pub(super) fn take(&mut self) -> impl Iterator<Item = Annotation> {
        self.count = 0;
        std::mem::take(&mut self.ranges).into_values().flatten()
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
