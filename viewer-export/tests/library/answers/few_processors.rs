//! Answers about too many, late, or too few threads, and about other programs that use the CPUs.

use super::*;

/// Both members of a team repeatedly open regions of two threads, each of which starts 0.3 ms late.
pub(super) fn nested(processors: &'static str) -> Answers {
    let mut script = Script::new(4);
    script.metadata = Some(processors);
    let rounds = 20;
    let end = rounds * UNIT;
    for (outer, inner) in [(1, 3), (2, 4)] {
        let task = 100 + outer;
        for round in 0..rounds {
            let (begin, late) = (round * UNIT + 10 + outer, round * UNIT + 300_010 + outer);
            let region = format!("parallel=20{outer} task={task} code=0x3000");
            script.at(begin, INSIDE, outer, &format!("parallel_begin {region} team=2"));
            let last = round * UNIT + 900_000 + outer;
            for (index, thread) in [outer, inner].into_iter().enumerate() {
                let task = 300 + thread;
                let member = format!("parallel=20{outer} task={task} team=2 index={index}");
                let barrier =
                    format!("kind=barrier_implicit_parallel parallel=20{outer} task={task} code=0x3000");
                script.at(late, INSIDE, thread, &format!("implicit_task begin {member}"));
                script.at(last, INSIDE, thread, &format!("sync_region begin {barrier}"));
                script.at(last, INSIDE, thread, &format!("sync_region_wait begin {barrier}"));
                script.at(last + 10, INSIDE, thread, &format!("sync_region_wait end {barrier}"));
                script.at(last + 10, INSIDE, thread, &format!("sync_region end {barrier}"));
                script.at(last + 10, INSIDE, thread, &format!("implicit_task end {member}"));
            }
            script.at(last + 20, INSIDE, outer, &format!("parallel_end {region}"));
        }
    }
    let end = script.region(0, LOOP, &[end, end]);
    script.end(end)
}

#[test]
fn nested_regions_of_more_threads_than_processors_are_found() {
    let two = r#"{"process": {"pid": 10, "executable": "/bin/app", "affinity": "3,5"}}"#;
    let answers = nested(two);
    let found = finding(&answers, "nested_oversubscription");
    assert!(found.gain_ns.abs_diff(20 * 300_000) < 20 * 100, "{found:?}");
    assert_eq!((&found.evidence["busy_threads"], &found.evidence["processors"]), (&4.into(), &2.into()));
    assert_eq!(found.instances.len(), 3);
    for enough in
        [r#"{"process": {"pid": 10, "executable": "/bin/app", "affinity": "0-3"}}"#, r#"{"machine": {}}"#]
    {
        let answers = nested(enough);
        assert!(!ids(&answers).contains(&"nested_oversubscription"), "{:?}", answers.findings);
    }
}

/// Both members of a team open a region of two threads, whose members work until these times.
pub(super) fn nested_until(arrivals: [[u64; 2]; 2]) -> Answers {
    let mut script = Script::new(4);
    let mut ends = [0; 2];
    for (outer, arrivals) in [1, 2].into_iter().zip(arrivals) {
        let region = format!("parallel=20{outer} task={} code=0x3000", 100 + outer);
        let all = arrivals.iter().max().expect("two members") + 1;
        script.at(10, FIRST, outer, &format!("parallel_begin {region} team=2"));
        for (thread, arrival) in [outer, outer + 2].into_iter().zip(arrivals) {
            let task = 300 + thread;
            let member = format!("parallel=20{outer} task={task} team=2 index={}", thread / 3);
            let barrier =
                format!("kind=barrier_implicit_parallel parallel=20{outer} task={task} code=0x3000");
            for (time, event) in [
                (10, format!("implicit_task begin {member}")),
                (arrival, format!("sync_region begin {barrier}")),
                (arrival, format!("sync_region_wait begin {barrier}")),
                (all, format!("sync_region_wait end {barrier}")),
                (all, format!("sync_region end {barrier}")),
                (all, format!("implicit_task end {member}")),
            ] {
                script.at(time, if time == 10 { FIRST } else { INSIDE }, thread, &event);
            }
        }
        ends[outer as usize - 1] = all + 1;
        script.at(all + 1, INSIDE, outer, &format!("parallel_end {region}"));
    }
    let end = script.region(0, LOOP, &ends);
    script.end(end)
}

/// A thread's work in a nested region is its work for the team around. That team has all threads, so it is not narrow.
#[test]
fn regions_inside_are_work_of_the_team_around() {
    // One region takes three times as long as the other. If balanced, both take twice as long.
    let answers = nested_until([[UNIT; 2], [3 * UNIT; 2]]);
    assert_eq!(ids(&answers), ["load_imbalance"]);
    let found = finding(&answers, "load_imbalance");
    nearly(found.gain_ns, UNIT);
    // One of four threads works three times as long. If balanced, each works one and a half times as long.
    let answers = nested_until([[UNIT; 2], [UNIT, 3 * UNIT]]);
    assert_eq!(ids(&answers), ["load_imbalance"]);
    let found = finding(&answers, "load_imbalance");
    nearly(found.gain_ns, 3 * UNIT / 2);
}

/// A team of two threads with equal work, repeatedly; the second starts 0.3 ms late.
pub(super) fn late(processors: &'static str) -> Answers {
    let mut script = Script::new(2);
    script.metadata = Some(processors);
    let rounds = 20;
    for round in 0..rounds {
        let begin = round * UNIT + 10;
        let (late, last) = (begin + 300_000, begin + 999_900);
        let region = "parallel=200 task=1 code=0x3000";
        script.at(begin, FORK, 1, &format!("parallel_begin {region} team=2"));
        for (thread, begin, arrives) in [(1, begin, last - 300_000), (2, late, last)] {
            let task = 300 + thread;
            let member = format!("parallel=200 task={task} team=2 index={}", thread - 1);
            let barrier = format!("kind=barrier_implicit_parallel parallel=200 task={task} code=0x3000");
            script.at(begin, BEGIN, thread, &format!("implicit_task begin {member}"));
            for (time, event) in [
                (arrives, format!("sync_region begin {barrier}")),
                (arrives, format!("sync_region_wait begin {barrier}")),
                (last + 10, format!("sync_region_wait end {barrier}")),
                (last + 10, format!("sync_region end {barrier}")),
                (last + 10, format!("implicit_task end {member}")),
            ] {
                script.at(time, INSIDE, thread, &event);
            }
        }
        script.at(last + 20, JOIN, 1, &format!("parallel_end {region}"));
    }
    script.end(rounds * UNIT)
}

/// Keeping threads awake is not advised if they wait for CPUs.
#[test]
fn threads_that_begin_late_may_be_more_than_the_processors() {
    for (metadata, id) in [
        (r#"{"process": {"pid": 10, "executable": "/bin/app", "affinity": "3"}}"#, "oversubscription"),
        (r#"{"process": {"pid": 10, "executable": "/bin/app", "affinity": "3,5"}}"#, "late_wake_up"),
        (r#"{"machine": {}}"#, "late_wake_up"),
    ] {
        let answers = late(metadata);
        let rules = ["oversubscription", "late_wake_up"];
        let found: Vec<_> = ids(&answers).into_iter().filter(|id| rules.contains(id)).collect();
        assert_eq!(found, [id], "{:?}", answers.findings);
        let found = finding(&answers, id);
        assert!(found.gain_ns.abs_diff(20 * 300_000) < 20 * 100, "{found:?}");
        if id == "oversubscription" {
            assert_eq!(found.evidence["threads"], 2);
            assert_eq!(found.evidence["processors"], 1);
        }
    }
}

/// Metadata of a process on these CPUs, whose two threads had this much CPU time, in ns. The waits of its runtime are
/// short if threads share CPUs.
macro_rules! with_cpu_time {
    ($affinity:literal, $first:literal, $second:literal, $delay:literal) => {
        concat!(
            r#"{"process": {"pid": 10, "executable": "/bin/app", "affinity": ""#,
            $affinity,
            r#""}, "runtime": {"version": "libgomp of GCC 12 through libomptgomp"}, "#,
            r#""cpu_time": {"process_begin_ns": 0, "process_end_ns": 15000000, "threads": [[1, 0, "#,
            $first,
            "], [2, 0, ",
            $second,
            r#"]], "unknown_threads": 0, "delay_ns": "#,
            $delay,
            "}}"
        )
    };
}

/// Of 20 ms, the single CPU works 19 ms, so no change saves more than 1 ms.
#[test]
fn no_finding_gains_more_than_processors_can_give() {
    let answers = late(with_cpu_time!("3", "9500000", "9500000", "10000000"));
    let found = finding(&answers, "oversubscription");
    nearly(found.gain_ns, UNIT);
    // All of the time is work.
    let answers = late(with_cpu_time!("3", "10000000", "10000000", "10000000"));
    assert_eq!(ids(&answers), [""; 0]);
    // With two CPUs, waiting threads may spin, so the work is not known as exactly.
    let answers = late(with_cpu_time!("3,5", "20000000", "20000000", "0"));
    nearly(finding(&answers, "late_wake_up").gain_ns, 20 * 300_000);
}

/// Threads that sleep leave the CPU to the others.
#[test]
fn threads_that_sleep_are_not_too_many() {
    let answers = late(with_cpu_time!("3", "1000000", "1000000", "100000"));
    let found = finding(&answers, "late_wake_up");
    assert!(!found.text.contains("OMP_WAIT_POLICY"), "{}", found.text);
    assert!(!ids(&answers).contains(&"oversubscription"), "{:?}", answers.findings);
    assert_eq!(answers.cpu_note, None);
    let of_own = late(with_cpu_time!("3,5", "1000000", "1000000", "100000"));
    let found = finding(&of_own, "late_wake_up");
    assert!(found.text.contains("OMP_WAIT_POLICY=active"), "{}", found.text);
    assert_eq!(of_own.cpu_note, None);
}

/// Other programs had the CPUs: this is reported, and spinning is not advised.
#[test]
fn a_busy_machine_is_said_first() {
    let answers = late(with_cpu_time!("3,5", "7000000", "7000000", "14000000"));
    let note = answers.cpu_note.as_deref().expect("a note");
    assert!(note.contains("had a CPU for only 50 % of the time"), "{note}");
    assert!(note.contains("idle machine") && note.contains("--cpu-time"), "{note}");
    assert!(!ids(&answers).contains(&"late_wake_up"), "{:?}", answers.findings);
}

/// 1.5 ms of the tracer's time after the last event of two threads; 0.5 ms later, the process ends. The cost of an
/// event is known.
#[test]
fn the_tracers_own_time_is_known() {
    let with = |json: &'static str| {
        let mut script = Script::new(2);
        script.metadata = Some(json);
        let end = script.region(0, LOOP, &[8 * UNIT, 4 * UNIT]);
        script.end(end)
    };
    let of_end = r#"{"end": {"how": "finalize", "began_raw_ns": 9000001, "raw_ns": 10500001}, "record": {"ended_raw_ns": 11000001}}"#;
    let answers = with(of_end);
    assert_eq!(answers.accounting[Cause::Tracer], 2 * 1_500_000);
    assert_eq!(answers.accounting[Cause::Unobserved], 2 * 500_000);
    // That alone is still a finding.
    assert!(ids(&answers).contains(&"tracer_disturbs"), "{:?}", answers.findings);

    // Like other findings, it needs 3 % of the wall time.
    let of_short_end = r#"{"end": {"how": "finalize", "began_raw_ns": 9000001, "raw_ns": 9200001}, "record": {"ended_raw_ns": 9300001}}"#;
    assert!(!ids(&with(of_short_end)).contains(&"tracer_disturbs"));

    // The cost of events is not a part of the program's time.
    for costly in
        [r#"{"tracer_cost": {"event_ticks": 400000.0}}"#, r#"{"tracer_cost": {"event_ticks": 600000.0}}"#]
    {
        let answers = with(costly);
        let tracer = finding(&answers, "tracer_disturbs");
        assert!(tracer.gain_ns > 3 * UNIT, "{tracer:?}");
        assert!(tracer.text.contains("% of the time"), "{}", tracer.text);
        let imbalance = finding(&answers, "load_imbalance");
        nearly(imbalance.gain_ns, (2 * UNIT).min(answers.duration_ns - tracer.gain_ns));
    }
}

/// The region requests four threads, the same number as the region before it, and gets two.
#[test]
fn regions_that_get_fewer_threads_than_they_ask_for_are_found() {
    for (asked, id) in [(4, "false_num_threads"), (2, "narrow_team")] {
        let mut script = Script::new(4);
        let end = script.region(0, LOOP, &[UNIT; 4]);
        let narrow = script.lines.len();
        let end = script.region(end, "0x2000", &[end + UNIT; 2]);
        let begin = &mut script.lines[narrow].3;
        *begin = begin.replace("team=2", &format!("team={asked}"));
        let answers = script.end(end);
        let found = finding(&answers, id);
        about(found.gain_ns, UNIT / 2);
        assert_eq!(found.evidence["requested_threads"], asked);
        assert!(!found.instances.is_empty());
    }
}
