//! The README's script.

use std::io::Write;
use std::process::{Command, Stdio};

use ompt_reference_runtime::device::{Device, Misbehaviour};
use ompt_reference_runtime::tool::Found;
use ompt_reference_runtime::{Report, Script, Step};

/// The text between a line with three backquotes and `json`, and the next line of backquotes.
fn script_of_the_readme() -> &'static str {
    let (_, after) = include_str!("../README.md").split_once("```json\n").expect("the README has a script");
    let (script, _) = after.split_once("```").expect("the script ends");
    script
}

#[test]
fn the_readmes_script_is_played_without_a_tool() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_reference-runtime"))
        .env_remove("OMP_TOOL")
        .env_remove("OMP_TOOL_LIBRARIES")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    let mut stdin = process.stdin.take().expect("a pipe");
    let script = script_of_the_readme();
    stdin.write_all(script.as_bytes()).expect("the program reads its script");
    drop(stdin);
    let output = process.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", output.status);

    let report: Report = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report.rounds[0].tool, Found::Nothing);
    let calls: Vec<usize> = report.rounds[0].threads.iter().map(|thread| thread.played.len()).collect();
    assert_eq!(calls, [0, 0], "no tool registered a callback");
}

#[test]
fn the_readmes_script_has_the_calls_of_a_parallel_region() {
    let script: Script = serde_json::from_str(script_of_the_readme()).expect("a script");
    let name = |step: &Step| match step {
        Step::Call(call) => Some(call.name()),
        _ => None,
    };
    let calls = |thread: usize| -> Vec<&str> {
        let steps = script.rounds[0].threads[thread].iter();
        steps.filter_map(name).collect()
    };
    assert_eq!(
        calls(0),
        ["thread_begin", "parallel_begin", "implicit_task", "implicit_task", "parallel_end"]
    );
    assert_eq!(calls(1), ["thread_begin", "implicit_task", "implicit_task"]);
}

/// A table of the README has a device that behaves like AMD's runtime.
#[test]
fn the_readmes_device_is_one() {
    const DEVICE: &str = r#"{"misbehaviours": ["amd-2026"]}"#;
    assert!(include_str!("../README.md").contains(DEVICE));
    let device: Device = serde_json::from_str(DEVICE).expect("a device");
    assert_eq!(device.misbehaviours, [Misbehaviour::Amd2026]);
}
