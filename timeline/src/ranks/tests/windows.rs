//! What is matched does not depend on the windows in which events are read.

use std::mem;

use super::*;

/// The results, but for what only exports need.
fn shown(all: &[RankMessages]) -> String {
    let of_rank = |it: &RankMessages| {
        let unmatched = (it.unmatched_sends, it.unmatched_receives, it.truncated);
        let open = (it.open_requests, it.open_persistent, it.open_communicators);
        let calls = (&it.sites, &it.idle_waits, &it.tests);
        format!("{:?}", (it.counts, unmatched, open, calls, &it.joints, &it.path_waits))
    };
    all.iter().map(of_rank).collect::<Vec<_>>().join("\n")
}

/// Checks that the ranks with these events give the same results in short and long windows.
pub(super) fn are_the_same(whole: &[RankMessages], events: &[Vec<Recorded>]) {
    let last = events.iter().flatten().map(|(.., latest, _)| *latest).max().unwrap_or(0);
    for windows in [1000, 40, 3] {
        let found = in_windows(events, (last / windows).max(1));
        assert_eq!(shown(&found), shown(whole), "{windows} windows");
    }
}

fn in_windows(events: &[Vec<Recorded>], length: Ns) -> Vec<RankMessages> {
    let size = events.len();
    let of_rank = |rank| Calls::new(rank, 2, ThreadRules::default(), CallList::new(Some(Arc::default())));
    let mut calls: Vec<Calls> = (0..size as u32).map(of_rank).collect();
    let mut rest: Vec<&[Recorded]> = events.iter().map(|events| &events[..]).collect();
    let mut matching = Matching::of(size, (0..size).collect(), Wanted::Graph);
    let mut until = 0;
    while rest.iter().any(|rest| !rest.is_empty()) {
        until += length;
        for (calls, rest) in calls.iter_mut().zip(&mut rest) {
            while let Some(((thread, time, _, event), following)) =
                rest.split_first().filter(|((.., latest, _), _)| *latest < until)
            {
                calls.event(*thread, *time, event);
                *rest = following;
            }
        }
        let known = calls.iter_mut().map(|calls| {
            calls.all.open_since = calls.open_since();
            mem::take(&mut calls.all)
        });
        let left = matching.window(known.collect(), Some(until), &mut |_, _| {});
        calls.iter_mut().zip(left).for_each(|(calls, left)| calls.all = left);
    }
    matching.window(calls.into_iter().map(Calls::finish).collect(), None, &mut |_, _| {});
    matching.finish().results
}
