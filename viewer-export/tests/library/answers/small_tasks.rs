//! What small tasks cost, and what is said of it.

use omptrace_analysis::answers::Answers;

use super::finding;
use super::script::{FIRST, INSIDE, LOOP, Script};

/// A thread creates 2,000 tasks, 300 of them faster than the others. Another thread executes them.
#[test]
fn the_worst_moments_of_small_tasks_are_those_with_the_most_tasks() {
    let mut script = Script::new(2);
    let mut time = 1_000;
    let mut fast = (0, 0);
    for task in 1_000..3_000 {
        time += if (2_000..2_300).contains(&task) { 400 } else { 1_000 };
        fast = if task == 2_000 { (time, time) } else { (fast.0, if task < 2_300 { time } else { fast.1 }) };
        let create = format!("task_create task=101 new={task} flags=4 code=0x1400");
        script.at(time, INSIDE, 1, &create);
        let begin = format!("task_schedule prior=102 status=7 next={task}");
        script.at(time + 20, INSIDE, 2, &begin);
        let end = format!("task_schedule prior={task} status=1 next=102");
        script.at(time + 320, INSIDE, 2, &end);
    }
    let end = script.region_until(0, LOOP, &[time + 500, 60], Some(time + 400));
    let answers = script.end(end);
    let found = finding(&answers, "tasks_too_fine");
    assert!(found.text.starts_with("2,000 tasks "), "{}", found.text);
    assert_eq!(found.instances.len(), 3);
    for moment in &found.instances[..2] {
        let (begin, end) = (moment.begin_ns.cast_unsigned(), moment.end_ns.cast_unsigned());
        assert!(fast.0 <= begin && end <= fast.1, "{fast:?} {:?}", found.instances);
    }
}

/// A thread creates 2,000 tasks of 200 ns, one each 1.2 us, and another executes them.
fn created_slowly(has_dependences: bool) -> Answers {
    let mut script = Script::new(2);
    script.metadata = Some(
        r#"{"runtime": {"version": "LLVM OMP version: 5.0.20140926"}, "tracer_cost": {"event_ticks": 10}, "clock": {"ticks_per_second": 1e9}}"#,
    );
    let single = "kind=single_executor count=1 parallel=100 task=101 code=0x1300";
    script.at(1, FIRST, 1, &format!("work begin {single}"));
    let mut time = 0;
    for task in 1_000..3_000 {
        time = 1_000 + (task - 1_000) * 1_200;
        let create = "task_create task=101 flags=4 code=0x1400";
        let dependences = u32::from(has_dependences);
        script.at(time, INSIDE, 1, &format!("{create} new={task} has_dependences={dependences}"));
        if has_dependences {
            script.at(time + 100, INSIDE, 1, &format!("dependences task={task} inout=0x{task}"));
        }
        script.at(time + 700, INSIDE, 2, &format!("task_schedule prior=102 status=7 next={task}"));
        script.at(time + 900, INSIDE, 2, &format!("task_schedule prior={task} status=1 next=102"));
    }
    script.at(time + 1_200, INSIDE, 1, &format!("work end {single}"));
    let end = script.region_until(0, LOOP, &[time + 1_300, 60], Some(time + 900));
    script.end(end)
}

/// The creator works where creating a task is cheap, but looking up dependences is not.
#[test]
fn what_creating_a_task_costs_depends_on_its_dependences() {
    let cost = |answers: &Answers| {
        let found = finding(answers, "tasks_too_fine");
        (found.evidence["creation_ns"].as_u64().expect("a time"), found.gain_ns)
    };
    let answers = created_slowly(false);
    assert_eq!(cost(&answers).0, 80);
    let answers = created_slowly(true);
    let (creation, gain) = cost(&answers);
    assert_eq!(creation, 1_200 - 2 * 10);
    assert!(gain as f64 > 0.8 * answers.duration_ns as f64, "{gain} of {}", answers.duration_ns);
    // In the replay, a thread needs as long as before to get a task.
    let of_tasks = answers.what_if.iter().filter(|row| row.change == "twice as fast");
    assert_eq!(of_tasks.count(), 0, "{:?}", answers.what_if);
}
