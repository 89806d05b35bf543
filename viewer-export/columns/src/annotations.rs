//! Annotations of programs, as rows.

use omptrace_timeline::model::{Annotated, Annotation, Looks, Payload};
use parquet::data_type::ByteArray;

use crate::cells::Word;
use crate::schema::{AnnotationRow, AnnotationValueRow};

/// A row of one of the two tables.
pub(crate) enum AnyRow {
    Annotation(AnnotationRow),
    Value(AnnotationValueRow),
}

impl AnyRow {
    pub(crate) fn of(annotation: &Annotation) -> AnyRow {
        let (time, end, kind, looks) = match &annotation.what {
            Annotated::Range { kind, end, looks } => (annotation.time, *end, kind.name(), looks),
            Annotated::Mark(looks) => (annotation.time, Some(annotation.time), Some("mark"), looks),
            Annotated::Value(role) => return AnyRow::Value(value_row(annotation, role.name())),
        };
        let (payload_int, payload_double, payload_text) = cells(&annotation.payload);
        let Looks { category, colour } = looks;
        AnyRow::Annotation(AnnotationRow {
            thread: thread(annotation),
            source: source(annotation),
            kind: word(kind),
            domain: domain(annotation),
            name: text(&annotation.name),
            category: category.as_deref().map(text),
            colour: (*colour != 0).then_some(i64::from(*colour)),
            begin_ns: time,
            end_ns: end,
            instance: instance(annotation),
            payload_int,
            payload_double,
            payload_text,
        })
    }
}

fn value_row(annotation: &Annotation, role: Option<&'static str>) -> AnnotationValueRow {
    let (value_int, value_double, value_text) = cells(&annotation.payload);
    AnnotationValueRow {
        thread: thread(annotation),
        time_ns: annotation.time,
        source: source(annotation),
        role: word(role),
        domain: domain(annotation),
        name: text(&annotation.name),
        instance: instance(annotation),
        value_int,
        value_double,
        value_text,
    }
}

/// A payload as cells of the three columns: whole number, floating-point number, text.
fn cells(payload: &Payload) -> (Option<i64>, Option<f64>, Option<ByteArray>) {
    match payload {
        Payload::None => (None, None, None),
        Payload::Uint(number) => (Some(number.cast_signed()), None, None),
        Payload::Int(number) => (Some(*number), None, None),
        Payload::Float(number) => (None, Some(*number), None),
        Payload::Text(words) => (None, None, Some(text(words))),
    }
}

fn thread(annotation: &Annotation) -> i32 {
    annotation.thread.0.cast_signed()
}

fn source(annotation: &Annotation) -> Word {
    word(annotation.source.name())
}

/// The name of an enumerator. A newer tracer may have enumerators without a name here.
fn word(name: Option<&'static str>) -> Word {
    Word(name.unwrap_or("other"))
}

fn domain(annotation: &Annotation) -> Option<ByteArray> {
    annotation.domain.as_deref().map(text)
}

fn instance(annotation: &Annotation) -> Option<i64> {
    (annotation.instance != 0).then_some(annotation.instance.cast_signed())
}

fn text(words: &str) -> ByteArray {
    ByteArray::from(words)
}
