//! A sink that writes nothing, for callers that need only the report.

use crate::model::{Item, Sink, Wants};

/// Ignores a timeline.
#[derive(Debug)]
pub struct NullSink;

impl Sink for NullSink {
    fn wants(&self) -> Wants {
        Wants::NONE
    }

    fn item(&mut self, _: &Item<'_>) {}
}
