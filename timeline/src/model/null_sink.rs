//! A sink that writes nothing: for those who only want the report.

use crate::model::{Item, Sink, Wants};

/// Takes a timeline and forgets it.
#[derive(Debug)]
pub struct NullSink;

impl Sink for NullSink {
    fn wants(&self) -> Wants {
        Wants::NONE
    }

    fn item(&mut self, _: &Item<'_>) {}
}
