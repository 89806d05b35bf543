//! The clauses of a loop that would save most: `schedule` by what the loop would take with others, `nowait` by a replay.

use serde_json::json;

use super::rules::MIN_GAIN;
use crate::model::answers::{Finding, LoopAnswer};

/// A clause is advised where it saves this share of what the finding could gain.
const MIN_SHARE: f64 = 0.5;

/// Names the clause that saves most, in the finding's text and figures. `nowait`: what it saves that nobody waits behind the loop.
pub(super) fn advise(
    finding: &mut Finding,
    of_loop: Option<&LoopAnswer>,
    nowait: Option<u64>,
    duration: u64,
) {
    let is_imbalance = finding.id == "load_imbalance";
    let is_single = finding.id == "single_serialises";
    if !is_imbalance && !is_single && finding.id != "chunk_too_small" {
        return;
    }
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
        if is_enough(saved) && finding.id != "chunk_too_small" {
            let text = match is_single {
                true => "add nowait if what follows does not need its results, or share its work",
                false => "add nowait if what follows does not need its results",
            };
            advice.push((saved, text.to_owned()));
        }
    }
    advice.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
    let text = match advice.iter().map(|(_, text)| &text[..]).collect::<Vec<_>>()[..] {
        [] if is_imbalance && of_loop.is_some_and(LoopAnswer::has_balanced) => {
            "no schedule clause balances it much better, so start the longest iterations first, or split them"
                .to_owned()
        }
        [] if is_single && nowait.is_some() => "share its work".to_owned(),
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
