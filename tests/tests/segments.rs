//! Perfetto shows a file that was written in segments as it shows one that was not.

use std::collections::BTreeSet;
use std::path::Path;

use omptrace_tests::trace::{Traced, difference, omptrace};
use omptrace_tests::viewers::query;
use omptrace_tests::windows::{DISTANCE, perfetto, with_checkpoints};
use omptrace_trace_format::Reader;

/// Slices that last. Others may be marks at the ends of arrows, which are fields of events where these are at hand.
const SLICES: &str = "select s.ts, s.dur, s.depth, s.name, s.category, coalesce(th.name, t.name) track, \
     (select group_concat(a.key || '=' || coalesce(a.display_value, ''), ' ') from args a where a.arg_set_id = s.arg_set_id and a.key != 'source_location_iid') args \
     from slice s join track t on s.track_id = t.id left join thread_track tt on s.track_id = tt.id \
     left join thread th on tt.utid = th.utid where s.dur > 0";
const ARROWS: &str = "select coalesce(a.name, ta.name) from_thread, coalesce(b.name, tb.name) to_thread, d.ts time \
     from flow f join slice s on f.slice_out = s.id join slice d on f.slice_in = d.id \
     join track ta on s.track_id = ta.id join track tb on d.track_id = tb.id \
     left join thread_track tta on s.track_id = tta.id left join thread a on tta.utid = a.utid \
     left join thread_track ttb on d.track_id = ttb.id left join thread b on ttb.utid = b.utid";
/// Counters, and what they end with. (Of changes within a microsecond, those that are shown may differ.)
const COUNTERS: &str = "select t.name, c.value from counter c join track t on c.track_id = t.id \
     where c.id = (select max(id) from counter other where other.track_id = c.track_id)";
const TRACKS: &str =
    "select t.name, p.name parent, t.type from track t left join track p on t.parent_id = p.id";

fn export(trace: &Path, min_segment_events: u64, threads: usize, to: &Path) {
    let reader = Reader::open(trace).expect("a trace");
    let (bytes, _) = perfetto(&reader, min_segment_events, threads);
    std::fs::write(to, bytes).expect("a file");
}

fn shown(export: &Path, question: &str) -> Vec<String> {
    let rows = query(export, &[question]).remove(0);
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// Compares what Perfetto shows of a trace, which may have arrows.
fn agree(traced: &Traced, has_arrows: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let recovered = omptrace([Path::new("recover"), traced.trace()]);
    assert!(recovered.status.success(), "{recovered:?}");
    let (trace, checkpoints, _) = with_checkpoints(traced.trace(), folder.path(), DISTANCE);
    let [whole, segments] = ["whole.pftrace", "segments.pftrace"].map(|name| folder.path().join(name));
    export(&trace, u64::MAX, 1, &whole);
    export(&trace, 1, 3, &segments);
    for (what, question) in
        [("slices", SLICES), ("arrows", ARROWS), ("counters", COUNTERS), ("tracks", TRACKS)]
    {
        let (expected, found) = (shown(&whole, question), shown(&segments, question));
        assert!(!expected.is_empty() || what == "arrows" && !has_arrows, "{what}");
        assert!(
            expected == found,
            "{what} of {}, in {checkpoints} segments:\n{}",
            traced.trace().display(),
            difference(&expected, &found)
        );
    }
    let sizes: BTreeSet<u64> = [whole, segments].map(|path| path.metadata().expect("a file").len()).into();
    assert_eq!(sizes.len(), 2, "there were no segments");
}

#[test]
fn of_tasks() {
    agree(&Traced::program("tests/programs/tasks.c", &["3", "9"]), true);
}

#[test]
fn of_locks() {
    agree(&Traced::program("tests/programs/locks.c", &["3", "300"]), false);
}

#[test]
fn of_loops_and_single_regions() {
    agree(&Traced::program("tests/programs/structure.c", &["2", "20"]), true);
}

#[test]
fn of_nested_regions() {
    agree(&Traced::program("tests/programs/nested.c", &["2", "3", "40"]), false);
}
