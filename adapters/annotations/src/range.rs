//! What the interfaces have in common: ranges, marks and values of a domain.

use omptrace_trace_format::event::{
    AnnotationBegin, AnnotationEnd, AnnotationMark, AnnotationSpan, AnnotationValue,
};
use omptrace_trace_format::field::{
    AnnotationKind, AnnotationScope, AnnotationSource, PayloadType, Ticks, ValueRole,
};

use crate::recorder::{Active, active};
use crate::text::{Text, tell_categories};

/// A number that belongs to something, and its type.
pub(crate) type Payload = (PayloadType, u64);

/// No payload.
pub(crate) const NONE: Payload = (PayloadType::none, 0);

/// What is said of a range or a mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) source: AnnotationSource,
    pub(crate) domain: Option<&'static Text>,
    pub(crate) name: Option<&'static Text>,
    pub(crate) category: u32,
    pub(crate) colour: u32,
    pub(crate) payload: Payload,
    pub(crate) device: u32,
}

impl Said {
    pub(crate) fn new(
        source: AnnotationSource,
        domain: Option<&'static Text>,
        name: Option<&'static Text>,
    ) -> Said {
        Said { source, domain, name, category: 0, colour: 0, payload: NONE, device: 0 }
    }
}

/// The tracer, where the domain is recorded. No domain is the interface's default one.
#[inline]
pub(crate) fn recorder_of(domain: Option<&'static Text>) -> Option<Active> {
    match domain {
        Some(domain) if !domain.is_on => None,
        _ => active(),
    }
}

#[inline]
fn number(text: Option<&'static Text>, active: Active) -> u32 {
    text.map_or(0, |text| text.told(active))
}

/// A range begins.
#[inline]
pub(crate) fn begin(kind: AnnotationKind, instance: u64, said: &Said) {
    if let Some(active) = recorder_of(said.domain) {
        begin_in(active, kind, instance, said);
    }
}

/// A range of a domain that is recorded begins.
#[inline]
pub(crate) fn begin_in(active: Active, kind: AnnotationKind, instance: u64, said: &Said) {
    if said.category != 0 {
        tell_categories(active);
    }
    active.recorder.begin(AnnotationBegin {
        kind,
        domain: number(said.domain, active),
        name: number(said.name, active),
        source: said.source,
        category: said.category,
        colour: said.colour,
        payload_type: said.payload.0,
        payload: said.payload.1,
        instance,
        device: said.device,
    });
}

/// A range ends.
#[inline]
pub(crate) fn end(
    kind: AnnotationKind,
    source: AnnotationSource,
    domain: Option<&'static Text>,
    instance: u64,
) {
    let Some(active) = recorder_of(domain) else { return };
    active.recorder.end(AnnotationEnd { kind, source, domain: number(domain, active), instance });
}

/// Something happens.
pub(crate) fn mark(scope: AnnotationScope, said: &Said) {
    let Some(active) = recorder_of(said.domain) else { return };
    if said.category != 0 {
        tell_categories(active);
    }
    active.recorder.mark(AnnotationMark {
        source: said.source,
        scope,
        domain: number(said.domain, active),
        category: said.category,
        name: number(said.name, active),
        colour: said.colour,
        payload_type: said.payload.0,
        payload: said.payload.1,
    });
}

/// A number, or a fact about the range `instance` of the domain, or its innermost one of the thread.
pub(crate) fn value(
    role: ValueRole,
    scope: AnnotationScope,
    (source, domain, name): (AnnotationSource, Option<&'static Text>, Option<&'static Text>),
    (value_type, value): Payload,
    instance: u64,
) {
    let Some(active) = recorder_of(domain) else { return };
    active.recorder.value(AnnotationValue {
        source,
        role,
        scope,
        domain: number(domain, active),
        name: number(name, active),
        value_type,
        value,
        instance,
    });
}

/// A fact that is a text.
pub(crate) fn text_value(
    scope: AnnotationScope,
    what: (AnnotationSource, Option<&'static Text>, Option<&'static Text>),
    text: Option<&'static Text>,
    instance: u64,
) {
    let Some(active) = recorder_of(what.1) else { return };
    let number = number(text, active);
    value(ValueRole::fact, scope, what, (PayloadType::text, number.into()), instance);
}

/// A range is over, and was then.
pub(crate) fn span(
    kind: AnnotationKind,
    (source, domain, name): (AnnotationSource, Option<&'static Text>, Option<&'static Text>),
    begin: u64,
    end: u64,
) {
    let Some(active) = recorder_of(domain) else { return };
    active.recorder.span(AnnotationSpan {
        source,
        kind,
        domain: number(domain, active),
        name: number(name, active),
        begin: Ticks(begin),
        end: Ticks(end),
    });
}
