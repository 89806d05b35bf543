//! What the handles of a process stand for, from when to when.

use crate::model::Ns;

/// A communicator's handle, while it is valid.
#[derive(Clone, Copy, Debug)]
struct Valid {
    handle: u64,
    from: Ns,
    until: Ns,
    /// The place of the communicator.
    communicator: u32,
}

/// The handles of a process's communicators.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// By handle and begin when all are known.
    all: Vec<Valid>,
}

impl Objects {
    /// From now on, this handle is that of a communicator.
    pub(super) fn define(&mut self, handle: u64, from: Ns, communicator: u32) {
        self.all.push(Valid { handle, from, until: Ns::MAX, communicator });
    }

    /// The handle is not valid any more.
    pub(super) fn free(&mut self, handle: u64, until: Ns) {
        let newest = self.all.iter_mut().rev().find(|valid| valid.handle == handle);
        if let Some(valid) = newest.filter(|valid| valid.until == Ns::MAX) {
            valid.until = until;
        }
    }

    /// All are known.
    pub(super) fn finish(&mut self) {
        self.all.sort_by_key(|valid| (valid.handle, valid.from));
    }

    /// The place of the communicator whose handle a call has at this time.
    pub(super) fn communicator(&self, handle: u64, time: Ns) -> Option<u32> {
        let next = self.all.partition_point(|valid| (valid.handle, valid.from) <= (handle, time));
        let valid = self.all.get(next.checked_sub(1)?)?;
        (valid.handle == handle && time <= valid.until).then_some(valid.communicator)
    }
}
