//! Who held which lock, on one track per lock.
//!
//! Locks are not block-structured: set A, set B, unset A is legal, and a lock is kept beyond the region in which it was
//! set. So holds are no slices of a thread.

use crate::fast_map::FastMap;
use crate::sink::{Category, Interval, LocationId, LocationKind, Ns, Value, argument};
use crate::timeline::stage::Stage;

/// The locks of a process, by address.
#[derive(Default)]
pub(crate) struct Locks(FastMap<u64, Lock>);

#[derive(Default)]
struct Lock {
    /// Its track, once a hold has ended.
    track: Option<LocationId>,
    hold: Option<Hold>,
    /// Threads whose hold was ended by the next acquisition, until their own release comes.
    displaced: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Hold {
    /// The holder's place in the list of threads.
    holder: usize,
    since: Ns,
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
        let lock = self.0.entry(wait_id).or_default();
        lock.displaced.retain(|thread| *thread != holder);
        if let Some(old) = lock.end_hold(stage, names, wait_id, time)
            && old != holder
        {
            lock.displaced.push(old);
        }
        lock.hold = Some(Hold {
            holder,
            since: time,
        });
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
        let Some(lock) = self.0.get_mut(&wait_id) else {
            return false;
        };
        match lock
            .displaced
            .iter()
            .position(|displaced| *displaced == thread)
        {
            Some(index) => {
                lock.displaced.swap_remove(index);
                true
            }
            None => lock.end_hold(stage, names, wait_id, time).is_some(),
        }
    }

    /// The trace is at its end.
    pub(crate) fn finish(&mut self, stage: &mut Stage<'_>, names: &[String], time: Ns) {
        let since = |(wait_id, lock): (&u64, &Lock)| Some((lock.hold?.since, *wait_id));
        let mut held: Vec<(Ns, u64)> = self.0.iter().filter_map(since).collect();
        held.sort_unstable();
        for (_, wait_id) in held {
            if let Some(lock) = self.0.get_mut(&wait_id) {
                lock.end_hold(stage, names, wait_id, time);
            }
        }
    }
}

impl Lock {
    /// The hold ends; gives its holder.
    fn end_hold(
        &mut self,
        stage: &mut Stage<'_>,
        names: &[String],
        wait_id: u64,
        time: Ns,
    ) -> Option<usize> {
        let hold = self.hold.take()?;
        let new_track = || stage.location(LocationKind::Lock, format!("lock {wait_id:#x}"));
        let track = *self.track.get_or_insert_with(new_track);
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
}
