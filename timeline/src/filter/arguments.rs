//! Fewer arguments.

use crate::filter::{ArgumentChoice, pass_on};
use crate::sink::{Argument, Interval, Point, Region, RegionId, Sink, Value};

/// Passes on the arguments of choice.
pub(super) struct Arguments {
    inner: Box<dyn Sink>,
    choice: ArgumentChoice,
}

impl Arguments {
    pub(super) fn new(inner: Box<dyn Sink>, choice: ArgumentChoice) -> Arguments {
        Arguments { inner, choice }
    }

    fn chosen<'a>(&self, arguments: &[Argument<'a>]) -> Vec<Argument<'a>> {
        let is_chosen = |argument: &&Argument<'_>| match self.choice {
            ArgumentChoice::None => false,
            ArgumentChoice::Ids => matches!(argument.value, Value::Hex(_)),
            ArgumentChoice::All => true,
        };
        arguments.iter().filter(is_chosen).copied().collect()
    }
}

impl Sink for Arguments {
    pass_on!(start process location counter count wants_thread_events thread_event);
    pass_on!(flow note summary failed finish);

    /// A viewer shows the place in the source as arguments.
    fn region(&mut self, region: &Region) {
        let source = match self.choice {
            ArgumentChoice::All => region.source.clone(),
            ArgumentChoice::None | ArgumentChoice::Ids => None,
        };
        self.inner.region(&Region {
            source,
            ..region.clone()
        });
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.inner.enter(at, region, &self.chosen(arguments));
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        self.inner.leave(at, &self.chosen(arguments));
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        self.inner.instant(at, region, &self.chosen(arguments));
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let arguments = &self.chosen(interval.arguments)[..];
        self.inner.interval(&Interval {
            arguments,
            ..*interval
        });
    }
}
