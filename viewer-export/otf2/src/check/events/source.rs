//! The events of one location.

use std::collections::HashSet;

use super::seen::Task;
use crate::check::definitions::{LocalDefinitions, LocationFacts};
use crate::check::reader::{Damage, Records};
use crate::encoding::{AttributeRef, Bytes, CommRef, Field, Full, TypedValue};
use crate::records::{ATTRIBUTE_LIST, Event, TIMESTAMP};

/// One location's events.
pub(super) struct Source {
    pub(super) location: u64,
    pub(super) facts: LocationFacts,
    pub(super) records: Records,
    pub(super) numbers: LocalDefinitions,
    /// The next event.
    pub(super) head: Option<(Event, Vec<Attribute>)>,
    /// The time of the newest event, on the location's clock and on the archive's clock.
    pub(super) time: u64,
    pub(super) global_time: u64,
    pub(super) events: u64,
    /// The numbers of the first and last event in the current chunk.
    pub(super) chunk: (u64, u64),

    /// The regions of implicit tasks, by index of their team.
    pub(super) implicit: Vec<Vec<u64>>,
    /// The teams, each with the task that the location resumes after it. The first stands for the code outside of all
    /// teams.
    pub(super) teams: Vec<(CommRef, Task)>,
    pub(super) task: Task,
    pub(super) forks: u64,
    pub(super) locks: HashSet<(u32, u32)>,
    pub(super) transfers: HashSet<(u32, u64)>,
}

pub(super) type Attribute = (AttributeRef, TypedValue);

/// A record of an event file.
enum Item {
    Time(u64),
    Attributes(Vec<Attribute>),
    Event(Event),
}

impl Source {
    /// Reads the next event. False at the end.
    pub(super) fn read(&mut self) -> Result<bool, Damage> {
        let mut attributes = Vec::new();
        loop {
            match self.records.next(item)? {
                None => return Ok(false),
                Some(Item::Time(time)) => self.time = time,
                Some(Item::Attributes(list)) => attributes = list,
                Some(Item::Event(event)) => {
                    self.events += 1;
                    self.head = Some((event, attributes));
                    return Ok(true);
                }
            }
        }
    }
}

fn item(id: u8, fields: &mut Bytes<'_>) -> Option<Item> {
    match id {
        TIMESTAMP => Full::take(fields).map(|Full(time)| Item::Time(time)),
        ATTRIBUTE_LIST => {
            let len = u32::take(fields)?;
            let mut attribute = || Some((Field::take(fields)?, Field::take(fields)?));
            (0..len).map(|_| attribute()).collect::<Option<_>>().map(Item::Attributes)
        }
        _ => Event::take(id, fields).map(Item::Event),
    }
}
