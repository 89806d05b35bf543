//! A trace of the reference runtime holds exactly what an independent tool counts of the same script, in each
//! generation of the interface.

use std::fs;
use std::process::Command;

use ompt_reference_runtime::tr2::Entry;
use ompt_reference_runtime::{Collect, Dialect, Round, Script, Step, generate};
use ompt_sys::collector::*;
use ompt_sys::tr2::*;
use omptrace_tests::env;
use omptrace_tests::trace::{Counts, counts, dump};
use proptest::prelude::*;
use proptest::sample::select;

use crate::{play, reference_runtime, sample, tr2};

/// The counts of the tool that `command` is given.
fn counted(script: &Script, command: &mut Command) -> Counts {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("counts.json");
    let (_, output) = play(script, command.env("COUNT_OUT", &file).env("COUNT_FLUSH", "1"));
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&fs::read(&file).expect("the tool counts")).expect("JSON")
}

/// The counts of the trace by the tracer that `command` is given. An endpoint that no specification has is counted as none.
fn recorded(script: &Script, command: &mut Command) -> Counts {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("t.omptrace");
    let (_, output) = play(script, command.env("OMPTRACE_OUTPUT", &file).env("OMPTRACE_EVENTS", "all"));
    assert!(output.status.success(), "{output:?}");
    let mut known = Counts::new();
    for (name, count) in counts(&dump(&file)) {
        let without_endpoint = name.split("/0x").next().unwrap_or_default();
        *known.entry(without_endpoint.into()).or_default() += count;
    }
    known
}

fn threads(steps: impl Strategy<Value = Vec<Step>>) -> Script {
    let threads = sample(prop::collection::vec(steps, 4));
    Script { rounds: vec![Round::new(threads)], ..Script::default() }
}

#[test]
fn of_the_generations_that_have_ompt_start_tool() {
    for (dialect, least) in [(Dialect::V5, 40), (Dialect::Tr6, 25), (Dialect::Tr4, 25)] {
        let script = Script { dialect, ..sample(generate::script(4, 1000)) };
        let with = |tool| {
            let mut command = reference_runtime();
            command.env("OMP_TOOL_LIBRARIES", tool);
            command
        };
        let mut expected = counted(&script, &mut with(env::count_tool()));
        if dialect != Dialect::V5 {
            // Left out by the tracer: no known runtime reports them.
            let of_devices = |name: &String| ["target", "device"].iter().any(|of| name.starts_with(of));
            expected.retain(|name, _| !of_devices(name));
        }
        assert!(expected.len() >= least, "{dialect:?}: {expected:?}");
        assert_eq!(recorded(&script, &mut with(env::tool_library())), expected, "{dialect:?}");
    }
}

#[test]
fn of_tr2() {
    /// The events that end a thread or the trace.
    const LAST: [ompt_event_t; 2] = [ompt_event_thread_end, ompt_event_runtime_shutdown];

    let events = ompt_event_t::VALUES.iter().map(|(_, number)| number);
    let events: Vec<_> =
        events.map(|number| ompt_event_t(*number)).filter(|event| !LAST.contains(event)).collect();
    let step = select(events.clone()).prop_map(tr2::any);
    let mut script = threads(prop::collection::vec(step, 0..1000));
    for steps in &mut script.rounds[0].threads {
        steps.push(Step::Sync(0));
        steps.push(tr2::any(ompt_event_thread_end));
    }
    for entry in [Entry::Initialize, Entry::Tool] {
        script.tr2 = Some(entry);
        let with = |tool| {
            let mut command = reference_runtime();
            command.env("LD_PRELOAD", tool).env("REFERENCE_COLLECTOR", "refuses-start");
            command
        };
        let expected = counted(&script, &mut with(env::count_tool()));
        assert_eq!(expected["thread_end"], 4);
        assert!(expected.len() >= 25, "{expected:?}");
        assert_eq!(recorded(&script, &mut with(env::tool_library())), expected, "{entry:?}");
    }
}

#[test]
fn of_the_collector_api() {
    let own = OMP_EVENT_THR_RESERVED_IMPL.0..=OMP_EVENT_THR_RESERVED_IMPL.0 + 1;
    let events: Vec<u32> = (OMP_EVENT_FORK.0..=OMP_EVENT_THR_END_ATWT.0).chain(own).collect();
    let step = (select(events), 1..=9_u32, any::<[u64; 2]>()).prop_map(|(event, state, words)| {
        Step::from(Collect {
            event,
            state,
            wait_id: words[0],
            region: words[1],
            parent: words[1].is_multiple_of(2).then_some(words[0]),
        })
    });
    let script = threads(prop::collection::vec(step, 0..1000));
    let with = |tool| {
        let mut command = reference_runtime();
        command.env("LD_PRELOAD", tool).env("OMP_TOOL", "disabled");
        command
    };
    let expected = counted(&script, &mut with(env::count_collector()));
    assert!(expected.len() >= 14, "{expected:?}");
    assert_eq!(recorded(&script, &mut with(env::tool_library())), expected);
}
