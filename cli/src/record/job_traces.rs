//! The traces of all ranks of a job in which each rank is run by a `record` of its own. The `record` of rank 0 reports
//! for all.
//!
//! The other ranks complete their traces at the same time. Their traces differ from those of other runs in the same
//! directory by their start times, and because there is exactly one per rank.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use omptrace_trace_format::Reader;

use crate::input::inputs;
use crate::record::child_process::Now;
use crate::record::launched_rank::LaunchedRank;

/// Maximum time to wait for the other ranks' traces; analysing them may take the same time again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(50);
/// A trace that started up to this long before `record` started its rank may belong to this run, because hosts' clocks
/// differ.
const SKEW_NS: u64 = 1_000_000_000;
/// The same for a file's time, which a file server assigns.
const FILE_SKEW: Duration = Duration::from_secs(600);

/// The traces of all ranks, in rank order, once they are complete. `None` if they are not in the directory of `own`, if
/// they are not complete in time, or if a rank has several traces.
pub(crate) fn of_all_ranks(own: &[PathBuf], rank: LaunchedRank, started: Now) -> Option<Vec<PathBuf>> {
    let folder = own.first()?.parent()?;
    let until = Instant::now() + PATIENCE;
    loop {
        match look(folder, rank, started)? {
            Found { traces, are_complete: true } => return Some(traces),
            _ if Instant::now() + PAUSE > until => return None,
            _ => thread::sleep(PAUSE),
        }
    }
}

/// Whether a file was modified too long ago to be a trace of this run. There may be very many such files, so they are
/// not opened.
fn is_old(path: &Path, started: Now) -> bool {
    let Ok(written) = fs::metadata(path).and_then(|metadata| metadata.modified()) else { return false };
    let earliest = Duration::from_nanos(started.realtime_ns).saturating_sub(FILE_SKEW);
    written.duration_since(UNIX_EPOCH).is_ok_and(|written| written < earliest)
}

struct Found {
    traces: Vec<PathBuf>,
    are_complete: bool,
}

/// One trace per rank; `None` if a rank has none or several.
fn look(folder: &Path, rank: LaunchedRank, started: Now) -> Option<Found> {
    let mut found: BTreeMap<u32, (PathBuf, bool)> = BTreeMap::new();
    for path in inputs::traces(&[folder.to_owned()]).ok()? {
        if is_old(&path, started) {
            continue;
        }
        // A trace that is being completed may be missing for a moment.
        let Ok(reader) = Reader::open(&path) else { continue };
        let of = reader.metadata().rank().filter(|of| *of < rank.ranks);
        let is_new = reader.clock().start_realtime_ns().saturating_add(SKEW_NS) >= started.realtime_ns;
        if let Some(of) = of.filter(|_| is_new)
            && found.insert(of, (path, reader.summary().sealed)).is_some()
        {
            return None;
        }
    }
    let are_complete = found.values().all(|(_, is_complete)| *is_complete);
    let is_all = found.len() == rank.ranks as usize;
    is_all.then(|| Found { traces: found.into_values().map(|(path, _)| path).collect(), are_complete })
}
