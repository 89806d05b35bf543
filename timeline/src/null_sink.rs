//! A sink that writes nothing: for those who only want the report.

use std::io;

use crate::sink::{
    Argument, Counter, CounterId, Flow, Interval, Location, Ns, Point, Process, ProcessId, Region,
    RegionId, Sink,
};

/// Takes a timeline and forgets it.
#[derive(Debug)]
pub struct NullSink;

impl Sink for NullSink {
    fn process(&mut self, _: &Process) {}
    fn location(&mut self, _: &Location) {}
    fn region(&mut self, _: &Region) {}
    fn counter(&mut self, _: &Counter) {}
    fn count(&mut self, _: CounterId, _: Ns, _: i64) {}
    fn enter(&mut self, _: Point, _: RegionId, _: &[Argument<'_>]) {}
    fn leave(&mut self, _: Point, _: &[Argument<'_>]) {}
    fn instant(&mut self, _: Point, _: RegionId, _: &[Argument<'_>]) {}
    fn interval(&mut self, _: &Interval<'_>) {}
    fn flow(&mut self, _: &Flow) {}
    fn note(&mut self, _: ProcessId, _: &str) {}

    fn failed(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
