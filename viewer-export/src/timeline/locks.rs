//! Who held which lock, on one track per lock.
//!
//! Locks are not block-structured: set A, set B, unset A is legal, and a lock is kept beyond the region in which it was
//! set. So holds are no slices of a thread.

use crate::fast_map::FastMap;
use crate::sink::{Category, Interval, LocationId, LocationKind, Ns, Value, argument};
use crate::timeline::stage::Stage;

#[derive(Default)]
pub(crate) struct Locks {
    /// The track of each address that was a lock.
    tracks: FastMap<u64, LocationId>,
    /// By address: the locks that are held now.
    held: FastMap<u64, Hold>,
}

struct Hold {
    /// The holder's place in the list of threads.
    holder: usize,
    since: Ns,
    /// The thread whose hold this one ended, until its release comes.
    displaced: Option<usize>,
}

impl Locks {
    /// Thread `holder` has got the lock.
    ///
    /// A release is reported after the lock is free, so the next acquisition may come first: it ends the old hold.
    pub(crate) fn acquired(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        wait_id: u64,
        holder: usize,
        time: Ns,
    ) {
        let displaced = self.end_hold(stage, names, wait_id, time);
        self.held.insert(
            wait_id,
            Hold {
                holder,
                since: time,
                displaced,
            },
        );
    }

    /// `thread` releases the lock; a task that moved may release what it set on another thread. False where nobody
    /// held the lock.
    pub(crate) fn released(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        wait_id: u64,
        thread: usize,
        time: Ns,
    ) -> bool {
        match self.held.get_mut(&wait_id) {
            Some(hold) if hold.displaced == Some(thread) && hold.holder != thread => {
                hold.displaced = None;
                true
            }
            _ => self.end_hold(stage, names, wait_id, time).is_some(),
        }
    }

    /// The lock's hold ends; gives its holder.
    fn end_hold(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        wait_id: u64,
        time: Ns,
    ) -> Option<usize> {
        let hold = self.held.remove(&wait_id)?;
        let new_track = || stage.location(LocationKind::Track, format!("lock {wait_id:#x}"));
        let track = *self.tracks.entry(wait_id).or_insert_with(new_track);
        stage.sink.interval(&Interval {
            track,
            name: &names[hold.holder],
            category: Category::Mutex,
            begin: hold.since,
            end: time.max(hold.since),
            arguments: &[argument("wait_id", Value::Hex(wait_id))],
        });
        Some(hold.holder)
    }

    /// The trace is at its end.
    pub(crate) fn finish(&mut self, stage: &mut Stage<'_>, names: &[String], time: Ns) {
        let mut held: Vec<(Ns, u64)> = self
            .held
            .iter()
            .map(|(wait_id, hold)| (hold.since, *wait_id))
            .collect();
        held.sort_unstable();
        for (_, wait_id) in held {
            self.end_hold(stage, names, wait_id, time);
        }
    }
}
