//! The communicators of an archive.

use std::collections::BTreeMap;

use omptrace_timeline::model::{Communicator, CommunicatorId, CommunicatorKind};
use otf2_archive::encoding::CommRef;

/// The communicators of an archive.
#[derive(Default)]
pub(super) struct Communicators {
    pub(super) by_id: BTreeMap<CommunicatorId, Defined>,
    /// The communicator of each single process.
    pub(super) own: Option<CommRef>,
}

/// A communicator, and its number in the definitions.
pub(super) struct Defined {
    pub(super) communicator: Communicator,
    pub(super) number: CommRef,
    pub(super) has_events: bool,
}

impl Communicators {
    /// Each communicator once, in the order of definition.
    pub(super) fn all(&self) -> impl Iterator<Item = &Defined> {
        let is_first = |defined: &&Defined| {
            let same = self.by_id.values().find(|other| other.number == defined.number);
            same.is_some_and(|first| first.communicator.id == defined.communicator.id)
        };
        let own = |defined: &&Defined| defined.communicator.kind == CommunicatorKind::Own;
        let others = self.by_id.values().filter(move |defined| !own(defined));
        self.by_id.values().find(own).into_iter().filter(is_first).chain(others)
    }

    /// The numbers in events, in the order of definition.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.all().map(|defined| defined.number.0)
    }
}
