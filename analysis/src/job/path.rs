//! What is on a job's critical path, as rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::Ranks;

use crate::job::walk::Walk;
use crate::model::cause::Cause;
use crate::model::job_path::{JobPath, JobPathRow, PathCause, PathRank};
use crate::model::place::Place;
use crate::model::sum::{Sum as _, sum};
use crate::rank_waits::spans::ProcessSpans;

/// Maximum number of rows.
const MAX_ROWS: usize = 1000;

impl JobPath {
    /// The path of a job; `processes` has the spans of its processes in the timeline's order.
    pub(crate) fn of(walk: &Walk, ranks: &Ranks, processes: &[ProcessSpans]) -> JobPath {
        type Key = (u32, Option<Cause>, Option<Place>);
        let mut sums: FastMap<Key, u64> = FastMap::default();
        let total_ns = walk.life.0.abs_diff(walk.life.1);
        let mut rest = total_ns;
        for (number, process) in processes.iter().enumerate() {
            let Some(rank) = ranks.process(number).map(|of| of.rank) else { continue };
            let on_path = walk.times[number].values().flatten().map(|(begin, end)| begin.abs_diff(*end));
            let on_path = sum(on_path);
            rest = rest.saturating_sub(on_path);
            let mut unknown = on_path;
            for row in &process.path {
                let place = row.place.map(|place| process.places[place as usize].clone());
                let ns = row.ns.min(unknown);
                unknown -= ns;
                sums.entry((rank, Some(row.cause), place)).or_default().grow_by(ns);
            }
            sums.entry((rank, None, None)).or_default().grow_by(unknown);
        }
        let mut of_ranks: BTreeMap<u32, u64> = BTreeMap::new();
        let mut of_causes: BTreeMap<Option<Cause>, u64> = BTreeMap::new();
        let mut rows: Vec<JobPathRow> = Vec::new();
        for ((rank, cause, place), ns) in sums.into_iter().filter(|(_, ns)| *ns > 0) {
            of_ranks.entry(rank).or_default().grow_by(ns);
            of_causes.entry(cause).or_default().grow_by(ns);
            rows.push(JobPathRow { rank, cause, place, ns });
        }
        let key = |row: &JobPathRow| (Reverse(row.ns), row.rank, row.cause);
        rows.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.place.cmp(&b.place)));
        let more_rows_ns = sum(rows.split_off(rows.len().min(MAX_ROWS)).iter().map(|row| row.ns));
        let ranks = of_ranks.into_iter().map(|(rank, ns)| PathRank { rank, ns });
        let causes = of_causes.into_iter().map(|(cause, ns)| PathCause { cause, ns });
        JobPath {
            total_ns,
            changes: walk.changes,
            before_ns: rest,
            ranks: ranks.collect(),
            causes: causes.collect(),
            rows,
            more_rows_ns,
        }
    }
}
