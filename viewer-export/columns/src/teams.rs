//! Teams and locks: rows that one event starts and another one ends, identified by numbers that are reused.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{LockId, Ns, TeamId};

use crate::cells::Word;
use crate::schema::{LockRow, TeamRow};

/// The existing teams.
#[derive(Debug, Default)]
pub(crate) struct Teams {
    count: i64,
    open: FastMap<TeamId, TeamRow>,
}

impl Teams {
    /// A thread forms a team inside another.
    pub(crate) fn fork(&mut self, id: TeamId, thread: i32, now: Ns, requested: u32, parent: Option<i64>) {
        let row = TeamRow {
            thread: Some(thread),
            parent,
            requested: (requested > 0).then_some(requested.into()),
            ..self.new_row(now)
        };
        self.open.insert(id, row);
    }

    /// The row of a new team, of which nothing else is known yet.
    fn new_row(&mut self, begin_ns: Ns) -> TeamRow {
        let team = self.count;
        self.count += 1;
        TeamRow {
            team,
            thread: None,
            place: None,
            parent: None,
            begin_ns,
            end_ns: None,
            requested: None,
            size: None,
        }
    }

    /// Sets the place of the team's region.
    pub(crate) fn entered(&mut self, id: TeamId, place: i32) {
        if let Some(row) = self.open.get_mut(&id) {
            row.place = Some(place);
        }
    }

    /// A thread joins the team, which has this size. Returns the team's number.
    pub(crate) fn begin(&mut self, id: TeamId, now: Ns, size: u32) -> i64 {
        if !self.open.contains_key(&id) {
            let row = self.new_row(now);
            self.open.insert(id, row);
        }
        self.open.get_mut(&id).map_or(0, |row| {
            row.size = Some(size.into());
            row.team
        })
    }

    /// The team is dissolved.
    pub(crate) fn join(&mut self, id: TeamId, now: Ns) -> Option<TeamRow> {
        let row = self.open.remove(&id)?;
        Some(TeamRow { end_ns: Some(now), ..row })
    }

    /// The teams whose end is missing, in the order of their numbers.
    pub(crate) fn rest(&mut self) -> Vec<TeamRow> {
        let mut rows: Vec<TeamRow> = self.open.drain().map(|(_, row)| row).collect();
        rows.sort_unstable_by_key(|row| row.team);
        rows
    }
}

/// Locks that are held.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    open: FastMap<(LockId, u32), LockRow>,
}

impl Holds {
    /// A thread acquires a lock.
    pub(crate) fn acquire(
        &mut self,
        (lock, order): (LockId, u32),
        kind: &'static str,
        thread: i32,
        place: Option<i32>,
        now: Ns,
    ) {
        let row = LockRow {
            wait_id: lock.0.cast_signed(),
            kind: Word(kind),
            acquisition: order.into(),
            thread,
            place,
            begin_ns: now,
            end_ns: None,
        };
        self.open.insert((lock, order), row);
    }

    /// A thread releases the acquisition with this number.
    pub(crate) fn release(&mut self, lock: LockId, order: u32, now: Ns) -> Option<LockRow> {
        let row = self.open.remove(&(lock, order))?;
        Some(LockRow { end_ns: Some(now), ..row })
    }

    /// The locks whose release is missing.
    pub(crate) fn rest(&mut self) -> Vec<LockRow> {
        let mut rows: Vec<LockRow> = self.open.drain().map(|(_, row)| row).collect();
        rows.sort_unstable_by_key(|row| (row.begin_ns, row.wait_id, row.acquisition));
        rows
    }
}
