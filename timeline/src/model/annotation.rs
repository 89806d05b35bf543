//! What programs say of themselves, word for word.

use omptrace_trace_format::field::{AnnotationKind, AnnotationSource, ValueRole};

use crate::model::ids::{LocationId, Ns};

/// Something that a program says of itself. The timeline's regions, intervals, instants and counters show the same to people.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The thread that says it; for a range, the one that begins it.
    pub thread: LocationId,
    /// When it says it; for a range, the start.
    pub time: Ns,
    /// The interface.
    pub source: AnnotationSource,
    /// The domain; `None` for the default one.
    pub domain: Option<String>,
    /// The name.
    pub name: String,
    /// The number by which the program tells a range from others of its name; 0 where it has none.
    pub instance: u64,
    /// What comes with it, or the value that it gives.
    pub payload: Payload,
    /// What it is.
    pub what: Annotated,
}

/// What an annotation is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Annotated {
    /// A range, which comes when it ends.
    Range {
        /// Its kind.
        kind: AnnotationKind,
        /// Its end; `None` where the trace ends before.
        end: Option<Ns>,
        /// How it looks.
        looks: Looks,
    },
    /// A moment.
    Mark(Looks),
    /// A number or a text.
    Value(ValueRole),
}

/// What the program says of how a range or a mark is to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// The name of its category, or its number; `None` where it has none.
    pub category: Option<String>,
    /// 0xAARRGGBB; 0 where it has none.
    pub colour: u32,
}

/// A number or a text that the program gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// None.
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
