//! Nested regions, and the teams around them.

use super::script::{INSIDE, LOOP, Script, UNIT};
use super::{about, ids};

/// A nested region runs on one thread, for which the other thread of the outer team waits.
#[test]
fn a_nested_region_of_one_thread_is_not_what_is_out_of_balance() {
    let mut script = Script::new(2);
    let sections = "kind=sections count=2 parallel=100 code=0x1300";
    for (thread, until) in [(1, 8 * UNIT - 100), (2, 2 * UNIT - 100)] {
        let task = 100 + thread;
        script.at(10, INSIDE, thread, &format!("work begin {sections} task={task}"));
        script.at(until, INSIDE, thread, &format!("work end {sections} task={task}"));
    }
    let region = "parallel=200 task=101 code=0x2000";
    let member = "parallel=200 task=201 team=1 index=0";
    let barrier = "kind=barrier_implicit_parallel parallel=200 task=201 code=0x2000";
    script.at(100, INSIDE, 1, &format!("parallel_begin {region} team=1"));
    script.at(110, INSIDE, 1, &format!("implicit_task begin {member}"));
    let end = 8 * UNIT - 1_000;
    script.at(end, INSIDE, 1, &format!("sync_region begin {barrier}"));
    script.at(end, INSIDE, 1, &format!("sync_region_wait begin {barrier}"));
    script.at(end + 10, INSIDE, 1, &format!("sync_region_wait end {barrier}"));
    script.at(end + 10, INSIDE, 1, &format!("sync_region end {barrier}"));
    script.at(end + 10, INSIDE, 1, &format!("implicit_task end {member}"));
    script.at(end + 20, INSIDE, 1, &format!("parallel_end {region}"));
    let end = script.region(0, LOOP, &[8 * UNIT, 2 * UNIT]);
    let answers = script.end(end);
    assert_eq!(ids(&answers), ["load_imbalance"]);
    let found = &answers.findings[0];
    assert!(found.place.construct.contains("0x1300"), "{found:?}");
    assert!(found.text.contains("0x2000") && found.text.contains("runs on one thread"), "{}", found.text);
    about(found.gain_ns, 3 * UNIT);
    assert!(!found.instances.is_empty());
}
