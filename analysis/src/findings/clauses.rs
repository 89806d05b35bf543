//! The clauses of a loop that would save most: `schedule` by what the loop would take with others, `nowait` by a replay.

use serde_json::json;

use super::rule_table::MIN_GAIN;
use crate::model::answers::{Finding, LoopAnswer};

/// A clause is advised where it saves this share of what the finding could gain.
const MIN_SHARE: f64 = 0.5;

/// Names the clause that saves most, in the finding's text and figures. `nowait`: what it saves that nobody waits behind the loop.
pub(super) fn advise(finding: &mut Finding, loops: &[LoopAnswer], nowait: Option<u64>, duration: u64) {
    let is_imbalance = finding.id == "load_imbalance";
    let is_single = finding.id == "single_serialises";
    if !is_imbalance && !is_single && finding.id != "chunk_too_small" {
        return;
    }
    let of_loop = loops.iter().find(|row| row.place == finding.place);
    let all = finding.gain_ns;
    let is_enough = |ns: u64| ns as f64 >= MIN_GAIN * duration as f64 && ns as f64 >= MIN_SHARE * all as f64;
    let schedule = of_loop.and_then(LoopAnswer::best).filter(|_| !is_single);
    let mut advice = Vec::new();
    if let Some((with, saved)) = schedule.filter(|(_, saved)| is_enough(*saved)) {
        finding.evidence.insert("schedule".to_owned(), json!(with.clause));
        finding.evidence.insert("schedule_gain_ns".to_owned(), json!(saved));
        advice.push((saved.min(all), format!("try {}", with.clause)));
    }
    if let Some(saved) = nowait {
        finding.evidence.insert("nowait_gain_ns".to_owned(), json!(saved));
        if is_enough(saved) {
            let text = match is_single {
                true => {
                    "add nowait if the following code does not need the results of this construct, or divide its work among threads"
                }
                false => "add nowait if the following code does not need the results of this construct",
            };
            advice.push((saved, text.to_owned()));
        }
    }
    advice.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
    let text = match advice.iter().map(|(_, text)| &text[..]).collect::<Vec<_>>()[..] {
        [] if is_imbalance && of_loop.is_some_and(LoopAnswer::has_balanced) => {
            "no schedule clause would balance the loop much better, so start the longest iterations first, or split these iterations"
                .to_owned()
        }
        [] if is_single && nowait.is_some() => "divide the work of this region among threads".to_owned(),
        [] => return,
        ref known => known.join(", or "),
    };
    if let Some((what, _)) = finding.text.rsplit_once(": ") {
        finding.text = format!("{what}: {text}");
    }
    if let Some((saved, _)) = advice.first().filter(|_| is_imbalance) {
        finding.gain_ns = *saved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::answers::ScheduleTime;
    use crate::model::place::Place;

    const DURATION: u64 = 1000;

    fn finding(id: &str, text: &str, gain_ns: u64) -> Finding {
        Finding {
            id: id.to_owned(),
            place: Place::new("for"),
            gain_ns,
            text: text.to_owned(),
            evidence: serde_json::Map::new(),
            instances: Vec::new(),
        }
    }

    fn a_loop(schedules: &[(&str, u64)]) -> LoopAnswer {
        let schedules = schedules.iter();
        LoopAnswer {
            place: Place::new("for"),
            executions: 1,
            recorded_ns: 500,
            schedules: schedules
                .map(|(clause, duration_ns)| ScheduleTime {
                    clause: (*clause).to_owned(),
                    duration_ns: *duration_ns,
                })
                .collect(),
            ..LoopAnswer::default()
        }
    }

    fn advised(mut finding: Finding, loops: &[LoopAnswer], nowait: Option<u64>) -> (String, u64) {
        advise(&mut finding, loops, nowait, DURATION);
        (finding.text, finding.gain_ns)
    }

    fn imbalance() -> Finding {
        finding("load_imbalance", "threads finish a.c:7: at times: try smaller chunks", 200)
    }

    fn said(text: &str, gain_ns: u64) -> (String, u64) {
        (text.to_owned(), gain_ns)
    }

    #[test]
    fn the_clause_that_saves_most_is_named_with_what_it_saves() {
        let of_loop = [a_loop(&[("schedule(static)", 500), ("schedule(dynamic, 4)", 350)])];
        let clause = "threads finish a.c:7: at times: try schedule(dynamic, 4)";
        assert_eq!(advised(imbalance(), &of_loop, Some(20)), said(clause, 150));
        let both = "threads finish a.c:7: at times: add nowait if the following code does not need the results of this construct, or \
                    try schedule(dynamic, 4)";
        assert_eq!(advised(imbalance(), &of_loop, Some(300)), said(both, 300));
        let mut finding = imbalance();
        advise(&mut finding, &of_loop, Some(20), DURATION);
        let figures =
            ["schedule", "schedule_gain_ns", "nowait_gain_ns"].map(|name| finding.evidence[name].clone());
        assert_eq!(figures, [json!("schedule(dynamic, 4)"), json!(150), json!(20)]);
    }

    #[test]
    fn where_none_saves_enough_the_finding_says_so_or_stays_as_it_is() {
        let none = "threads finish a.c:7: at times: no schedule clause would balance the loop much better, so start the longest iterations first, or split these iterations";
        assert_eq!(advised(imbalance(), &[a_loop(&[("schedule(dynamic, 1)", 450)])], None), said(none, 200));
        let as_it_was = said(&imbalance().text, 200);
        // Clauses that would balance it were not tried; most executions are not known; another loop's are.
        assert_eq!(advised(imbalance(), &[a_loop(&[("schedule(static, 1)", 450)])], None), as_it_was);
        let mostly_unknown = LoopAnswer { not_known: 1, ..a_loop(&[("schedule(dynamic, 1)", 100)]) };
        assert_eq!(advised(imbalance(), &[mostly_unknown], None), as_it_was);
        let other = LoopAnswer { place: Place::new("taskloop"), ..a_loop(&[("schedule(dynamic, 1)", 100)]) };
        assert_eq!(advised(imbalance(), &[other], None), as_it_was);
    }

    #[test]
    fn a_single_region_gets_nowait_only_where_that_saves_enough() {
        let single = || {
            finding(
                "single_serialises",
                "one thread works: add nowait, or divide the work of this region among threads",
                200,
            )
        };
        let nowait = "one thread works: add nowait if the following code does not need the results of this construct, or divide its work among threads";
        assert_eq!(advised(single(), &[], Some(150)), said(nowait, 200));
        assert_eq!(
            advised(single(), &[], Some(10)),
            said("one thread works: divide the work of this region among threads", 200)
        );
        assert_eq!(advised(single(), &[], None), said(&single().text, 200));
    }

    #[test]
    fn chunks_get_a_clause_and_keep_their_gain() {
        let chunks = finding("chunk_too_small", "the loop hands out chunks: use a larger chunk size", 120);
        let of_loop = [a_loop(&[("schedule(dynamic, 64)", 400)])];
        assert_eq!(
            advised(chunks, &of_loop, None),
            said("the loop hands out chunks: try schedule(dynamic, 64)", 120)
        );
        let other = finding("lock_contention", "threads wait: hold it less", 120);
        assert_eq!(advised(other, &of_loop, Some(500)), said("threads wait: hold it less", 120));
    }
}
