//! Removes arguments.

use crate::filter::filtered::Filter;
use crate::model::{Argument, Interval, Item, Region, Sink, Value, Wants};

/// Which arguments are exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentChoice {
    /// None.
    None,
    /// Ids and addresses, which identify tasks and locks.
    Ids,
    /// All.
    #[default]
    All,
}

/// Passes on only the chosen arguments.
pub(super) struct ChosenArguments(pub(super) ArgumentChoice);

impl ChosenArguments {
    fn chosen<'a>(&self, arguments: &[Argument<'a>]) -> Vec<Argument<'a>> {
        let is_chosen = |argument: &&Argument<'_>| match self.0 {
            ArgumentChoice::None => false,
            ArgumentChoice::Ids => matches!(argument.value, Value::Hex(_)),
            ArgumentChoice::All => true,
        };
        arguments.iter().filter(is_chosen).copied().collect()
    }

    /// Viewers show the source location of a region as arguments.
    fn region(&self, region: &Region) -> Region {
        let source = match self.0 {
            ArgumentChoice::All => region.source.clone(),
            ArgumentChoice::None | ArgumentChoice::Ids => None,
        };
        Region { source, ..region.clone() }
    }
}

impl Filter for ChosenArguments {
    const LEAVES_OUT: Wants = Wants::NONE;

    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink) {
        match item {
            Item::Region(region) => out.item(&Item::Region(&self.region(region))),
            Item::Enter(enter) => {
                let chosen = self.chosen(enter.arguments);
                out.item(&Item::Enter(enter.with(&chosen[..])));
            }
            Item::Leave(leave) => {
                let chosen = self.chosen(leave.arguments);
                out.item(&Item::Leave(leave.with(&chosen[..])));
            }
            Item::Instant(instant) => {
                let chosen = self.chosen(instant.arguments);
                out.item(&Item::Instant(instant.with(&chosen[..])));
            }
            Item::Interval(interval) => {
                let arguments = &self.chosen(interval.arguments)[..];
                out.item(&Item::Interval(Interval { arguments, ..*interval }));
            }
            _ => out.item(item),
        }
    }
}
