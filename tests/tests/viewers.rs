//! The viewers themselves: each distinguishes a sound trace from a broken one.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use omptrace_tests::env::{node, root, tools};
use omptrace_tests::viewers::{Answer, ask_trace_processor, open_in_catapult, open_in_ui, screenshot};
use serde_json::json;
use tempfile::TempDir;

const SOUND: &str = r#"{"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"stencil"}},
{"ph":"M","pid":1,"tid":10,"name":"thread_name","args":{"name":"initial"}},
{"ph":"X","pid":1,"tid":10,"ts":10,"dur":100.5,"name":"parallel"},
{"ph":"X","pid":1,"tid":10,"ts":20,"dur":50,"name":"loop"}
]}"#;

const SLICES: &str = "select name, ts, dur, depth from slice order by ts";

/// Numbers that JSON cannot hold as such come as text.
const VALUES: &str = "select 281474976710657 as id, 123456789012345678 as big, 1.5 as real, null as absent";

fn file(folder: &TempDir, content: &str) -> PathBuf {
    let path = folder.path().join("trace.json");
    fs::write(&path, content).expect("a temporary folder can be written");
    path
}

fn check_sound(open: impl Fn(&std::path::Path, &[&str]) -> Answer) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let results = open(&file(&folder, SOUND), &[SLICES, VALUES]).sound();
    assert_eq!(
        json!(results),
        json!([
            [
                {"name": "parallel", "ts": 10000, "dur": 100500, "depth": 0},
                {"name": "loop", "ts": 20000, "dur": 50000, "depth": 1},
            ],
            [{"id": 281474976710657u64, "big": "123456789012345678", "real": 1.5, "absent": null}],
        ])
    );
}

fn check_broken(open: impl Fn(&std::path::Path) -> Answer) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let answer = open(&file(&folder, &SOUND[..SOUND.len() - 20]));
    assert!(answer.status != "ok" || !answer.errors.is_empty(), "{answer:?}");
}

#[test]
fn trace_processor_reads_a_sound_trace() {
    check_sound(ask_trace_processor);
}

#[test]
fn trace_processor_rejects_a_broken_trace() {
    check_broken(|trace| ask_trace_processor(trace, &[]));
}

#[test]
fn perfetto_ui_opens_a_sound_trace() {
    check_sound(open_in_ui);
}

#[test]
fn perfetto_ui_rejects_a_broken_trace() {
    check_broken(|trace| open_in_ui(trace, &[]));
}

#[test]
fn catapult_opens_a_sound_trace() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let results = open_in_catapult(&file(&folder, SOUND)).sound();
    assert_eq!(
        json!(results),
        json!([[{
            "process": "stencil", "pid": 1, "thread": "initial", "tid": 10,
            "slices": 2, "async_slices": 0, "depth": 2,
        }], []])
    );
}

#[test]
fn catapult_rejects_a_broken_trace() {
    check_broken(open_in_catapult);
}

/// A pipe holds 64 KiB, and Node makes it non-blocking once a script has touched `process.stdout`.
#[test]
fn an_answer_comes_whole_however_slowly_it_is_read() {
    const LENGTH: usize = 1_000_000;
    let folder = TempDir::new().expect("a temporary folder can be made");
    let script = folder.path().join("answers.mjs");
    let viewer = root().join("tests/tools/viewer.mjs");
    let text = format!(
        "import {{ answer }} from {viewer:?};
        process.stdout.writableLength;
        answer(\"a\".repeat({LENGTH}));
        process.exit();"
    );
    fs::write(&script, text).expect("a temporary folder can be written");
    let mut child = Command::new(node())
        .arg(&script)
        .env("OMPTRACE_TOOLS", tools())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node can be run");
    let mut pipe = child.stdout.take().expect("it is piped");
    let mut answer = vec![0];
    pipe.read_exact(&mut answer).expect("an answer");
    // Meanwhile it fills the pipe.
    thread::sleep(Duration::from_millis(500));
    pipe.read_to_end(&mut answer).expect("an answer");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(answer.len(), LENGTH + "\"\"\n".len());
}

#[test]
fn a_picture_is_taken() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let picture = folder.path().join("picture.png");
    screenshot(&file(&folder, SOUND), &picture).sound();
    let content = fs::read(&picture).expect("the picture is there");
    assert!(content.starts_with(b"\x89PNG"));
}
