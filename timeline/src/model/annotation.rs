//! Annotations of programs, word for word.

use omptrace_trace_format::field::{AnnotationKind, AnnotationSource, ValueRole};

use crate::model::ids::{LocationId, Ns};

/// An annotation. The timeline's regions, intervals, instants and counters show the same in readable form.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The annotating thread; for a range, the thread that starts it.
    pub thread: LocationId,
    /// The time of the annotation; for a range, its start.
    pub time: Ns,
    /// The annotation interface.
    pub source: AnnotationSource,
    /// The domain; `None` for the default one.
    pub domain: Option<String>,
    /// The name.
    pub name: String,
    /// The number by which the program tells a range from others with the same name; 0 if it has none.
    pub instance: u64,
    /// The value of the annotation, or data attached to it.
    pub payload: Payload,
    /// The kind of annotation.
    pub what: Annotated,
}

/// The kind of an annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum Annotated {
    /// A range. The item is emitted when it ends.
    Range {
        /// Its kind.
        kind: AnnotationKind,
        /// The end of the range; `None` if the trace ends before.
        end: Option<Ns>,
        /// Display properties.
        looks: Looks,
    },
    /// A mark at one moment.
    Mark(Looks),
    /// A number or text.
    Value(ValueRole),
}

/// How the program wants a range or mark to be displayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// The name of its category, or its number; `None` if it has none.
    pub category: Option<String>,
    /// Colour as 0xAARRGGBB; 0 if it has none.
    pub colour: u32,
}

/// A number or text that the program passes.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// No payload.
    None,
    /// An unsigned number.
    Uint(u64),
    /// A signed number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
}
