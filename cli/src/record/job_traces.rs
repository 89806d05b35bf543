//! The traces of all ranks of a job each of which a `record` of its own runs: that of rank 0 speaks for all.
//!
//! The others complete their traces at the same time. What tells their traces from those of other runs in the same
//! directory is when they began, and that each rank has one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use omptrace_trace_format::Reader;

use crate::input::inputs;
use crate::record::child_process::Now;
use crate::record::launched_rank::LaunchedRank;

/// Nobody waits longer for the others' traces, and as long again for the numbers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// How long one waits between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// A trace that began this long before `record` started its rank may be of this run: clocks of hosts differ.
const SKEW_NS: u64 = 1_000_000_000;
/// The same of the time of a file, which a file server gives.
const FILE_SKEW: Duration = Duration::from_secs(600);

/// The traces of all ranks, in the order of ranks, once they are complete. `None` where they are not in the directory
/// of `own`, are not complete in time, or where a rank has several.
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

/// Whether a file was written last so long before that it is no trace of this run: there may be very many, and none
/// is opened for that.
fn is_old(path: &Path, started: Now) -> bool {
    let Ok(written) = fs::metadata(path).and_then(|metadata| metadata.modified()) else { return false };
    let earliest = Duration::from_nanos(started.realtime_ns).saturating_sub(FILE_SKEW);
    written.duration_since(UNIX_EPOCH).is_ok_and(|written| written < earliest)
}

struct Found {
    traces: Vec<PathBuf>,
    are_complete: bool,
}

/// One trace of each rank; `None` where some have none, or several.
fn look(folder: &Path, rank: LaunchedRank, started: Now) -> Option<Found> {
    let mut found: BTreeMap<u32, (PathBuf, bool)> = BTreeMap::new();
    for path in inputs::traces(&[folder.to_owned()]).ok()? {
        if is_old(&path, started) {
            continue;
        }
        // Where one is being completed, it may be gone for a moment.
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
