//! The output of `dump`, `info` and `check` for these traces.

use omptrace_analysis::{Info, check};
use omptrace_trace_format::Finding;
use omptrace_trace_format::{Reader, Severity};
use omptrace_viewer_export::{ConvertOptions, FORMATS, convert, dump_json, dump_text};

use crate::fixture;
use crate::shared::Shared;

pub(crate) fn with_trace<T>(text: &str, look: impl Fn(&Reader) -> T) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    look(&fixture::open(text, folder.path())[0])
}

fn text_of(text: &str) -> String {
    with_trace(text, |reader| {
        let out = Shared::default();
        dump_text(reader, Box::new(out.clone())).expect("memory can be written");
        String::from_utf8(out.bytes()).expect("UTF-8")
    })
}

pub(crate) fn json_of(text: &str) -> String {
    with_trace(text, |reader| {
        let out = Shared::default();
        dump_json(reader, Box::new(out.clone())).expect("memory can be written");
        String::from_utf8(out.bytes()).expect("UTF-8")
    })
}

#[test]
fn json_has_the_facts_of_each_event() {
    let dumped = json_of(
        "5 1 thread_begin type=initial\n\
         7 1 implicit_task begin parallel=? task=0x10000000001 flags=1\n\
         8 2 sync_region begin kind=99 task=-\n\
         9 1 control_tool command=64 text=a\"b\n",
    );
    let expected = r#"{"schema":2,"stream":1,"time_ns":5,"event":"thread_begin","thread_type":"initial","thread_data":null}
{"schema":2,"stream":1,"time_ns":7,"event":"implicit_task","endpoint":"begin","parallel_data":"0x0","task_data":"0x10000000001","actual_parallelism":0,"index":0,"flags":"0x1"}
{"schema":2,"stream":2,"time_ns":8,"event":"sync_region","endpoint":"begin","kind":"0x63","parallel_data":null,"task_data":null,"codeptr_ra":"0x0"}
{"schema":2,"stream":1,"time_ns":9,"event":"control_tool","command":64,"modifier":0,"arg":"0x0","text":"a\"b","codeptr_ra":"0x0"}
"#;
    assert_eq!(dumped, expected);
}

#[test]
fn events_are_in_the_order_of_time_and_streams() {
    let dumped = json_of(
        "3 1 thread_end\n3 1 thread_end\n9 1 thread_end\n3 2 thread_end\n4 2 thread_end\n1 3 thread_end\n9 3 thread_end\n",
    );
    let order: Vec<(u64, u64)> = dumped
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|event| {
            (event["time_ns"].as_u64().expect("a time"), event["stream"].as_u64().expect("a stream"))
        })
        .collect();
    assert_eq!(order, [(1, 3), (3, 1), (3, 1), (3, 2), (4, 2), (9, 1), (9, 3)]);
}

#[test]
fn text_names_flags_and_enumerators() {
    let dumped = text_of("12 1 task_create task=1 new=? flags=0x10000004 code=0x1234\n");
    assert!(dumped.starts_with("             12    1 task_create "), "{dumped}");
    assert!(dumped.contains(" flags=0x10000004:task_explicit|task_untied codeptr_ra=0x1234\n"), "{dumped}");
    assert!(dumped.contains(" new_task_data=unset "), "{dumped}");
}

#[test]
fn functions_of_mpi_have_names_as_far_as_there_are_such() {
    let calls = "5 1 call_begin class=1 function=346 domain=1 object=0x10 peer=1 tag=3 count=4 datatype=0x20\n\
         7 1 call_end class=1 function=346 domain=1 peer=-4 tag=-4\n\
         8 1 call_begin class=1 function=0 domain=1 peer=-4 tag=-4\n\
         9 1 call_begin class=1 function=4294967295 domain=1 peer=-4 tag=-4\n\
         10 1 call_begin class=1 function=346 domain=7 peer=-4 tag=-4\n";
    let text = text_of(calls);
    let functions: Vec<&str> =
        text.split_ascii_whitespace().filter_map(|word| word.strip_prefix("function=")).collect();
    assert_eq!(functions, ["MPI_Send", "MPI_Send", "0", "4294967295", "346"]);
    let json = json_of(calls);
    let events = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let functions: Vec<(Option<u64>, Option<String>)> = events
        .map(|event| (event["function"].as_u64(), event["function_name"].as_str().map(str::to_owned)))
        .collect();
    let send = || (Some(346), Some("MPI_Send".to_owned()));
    assert_eq!(
        functions,
        [send(), send(), (Some(0), None), (Some(u32::MAX.into()), None), (Some(346), None)]
    );
}

const SOUND: &str = include_str!("../fixtures/nested_regions.trace");

#[test]
fn info_counts_events() {
    with_trace(SOUND, |reader| {
        let info = Info::of(reader);
        assert_eq!(info.events, 29);
        assert_eq!(info.events_by_name["implicit_task"], 6);
        assert_eq!(info.streams[0].thread, "main");
        assert_eq!(info.streams[0].events, 29);
        assert_eq!(info.duration_ns, 500);
        assert_eq!(info.ending, "ended");
        let json = serde_json::to_value(&info).expect("JSON");
        assert_eq!(json["program"]["pid"], 10);
        let text = omptrace_report::info_text(&info).to_string();
        assert!(text.contains("program           app (10)\n"), "{text}");
        assert!(text.contains("           6 implicit_task\n"), "{text}");
    });
}

fn findings(text: &str) -> Vec<Finding> {
    with_trace(text, check)
}

#[test]
fn sound_traces_have_no_finding() {
    assert_eq!(findings(SOUND), []);
}

#[test]
fn what_runtimes_do_is_only_noted() {
    let mut late = findings(include_str!("../fixtures/late_worker_ends.trace"));
    // The fixture's program exists on no machine.
    late.retain(|finding| finding.name != "names_missing");
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].severity, late[0].name), (Severity::Note, "late_end"));
}

#[test]
fn what_the_tracer_did_is_no_sign_of_missing_ends() {
    let found = findings(include_str!("../fixtures/flush_between_late_ends.trace"));
    let texts: Vec<&str> = found.iter().map(|finding| &*finding.text).collect();
    let all = texts.join("\n");
    assert!(!all.contains("ends of idle times and waits"), "{all}");
    // Of the three ends in region 200, those of the barrier and the task are missing.
    let missing = found.iter().find(|finding| finding.name == "missing_end").expect("ends are missing");
    assert!(missing.text.contains("(2 on "), "{all}");
}

#[test]
fn loss_and_contradictions_are_found() {
    let found = findings(include_str!("../fixtures/lost_events.trace"));
    let names: Vec<(Severity, &str)> = found.iter().map(|finding| (finding.severity, finding.name)).collect();
    assert_eq!(
        names,
        [
            (Severity::Warning, "lost"),
            (Severity::Warning, "missing_end"),
            (Severity::Warning, "end_without_begin")
        ]
    );
    assert!(found[1].text.ends_with("first in stream 1 at 50 ns)"), "{}", found[1].text);
}

#[test]
fn more_lost_events_than_a_number_holds_are_that_number() {
    let lost =
        with_trace("1 1 lost begin=0 events=0xffffffffffffffff\n2 1 lost begin=1 events=2\n", |reader| {
            Info::of(reader).lost
        });
    assert_eq!(lost, u64::MAX);
}

/// A region of two members, a task, a lock, and a critical region that each of them enters.
const EVERYTHING: &str = "0   1 thread_begin type=initial
0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1
10  1 parallel_begin task=1 parallel=100 team=2 code=0x1234
10  1 implicit_task begin parallel=100 task=101 team=2 index=0
10  2 thread_begin type=worker
10  2 implicit_task begin parallel=100 task=102 team=2 index=1
20  1 mutex_acquire kind=critical wait_id=0x90 code=0x1250
21  1 mutex_acquired kind=critical wait_id=0x90 code=0x1250
22  1 mutex_released kind=critical wait_id=0x90 code=0x1250
23  1 mutex_acquire kind=lock wait_id=0x98 code=0x1260
24  1 mutex_acquired kind=lock wait_id=0x98 code=0x1260
25  1 mutex_released kind=lock wait_id=0x98 code=0x1260
30  2 mutex_acquire kind=critical wait_id=0x90 code=0x1250
31  2 mutex_acquired kind=critical wait_id=0x90 code=0x1250
32  2 mutex_released kind=critical wait_id=0x90 code=0x1250
40  1 task_create task=101 new=103 code=0x1270
50  1 task_schedule prior=101 status=switch next=103
51  1 task_create task=103 new=1030 code=0x1280
52  1 sync_region begin kind=taskwait task=103 code=0x1290
54  1 task_schedule prior=103 status=switch next=1030
56  1 task_schedule prior=1030 status=complete next=103
58  1 sync_region end kind=taskwait task=103 code=0x1290
60  1 task_schedule prior=103 status=complete next=101
70  2 implicit_task end task=102 team=2 index=1
70  1 implicit_task end task=101 team=2 index=0
75  1 parallel_end parallel=100 task=1 code=0x1234
80  2 thread_end
90  1 implicit_task end task=1 flags=1
";

/// The trace of [`EVERYTHING`] without the callback `callback`.
fn without(callback: &str) -> String {
    let name = |line: &str| line.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let wanted = || EVERYTHING.lines().filter(|line| name(line) != callback);
    let names: Vec<String> = wanted().map(name).collect();
    let settings = format!(r#"{{"settings": {{"OMPTRACE_EVENTS": "{}"}}}}"#, names.join(","));
    let lines: Vec<&str> = wanted().collect();
    format!("process app\nmetadata {settings}\n{}\n", lines.join("\n"))
}

#[test]
fn what_was_not_wanted_is_no_contradiction() {
    let (mut contradictions, mut notes) = (0, 0);
    for callback in [
        "thread_begin",
        "thread_end",
        "implicit_task",
        "parallel_begin",
        "parallel_end",
        "task_create",
        "task_schedule",
        "mutex_acquire",
        "mutex_acquired",
        "mutex_released",
    ] {
        let text = match callback {
            // A tool that does not receive a task's creation cannot set its id.
            "task_create" => without(callback).replace("=1030", "=?").replace("=103", "=?"),
            _ => without(callback),
        };
        let findings = with_trace(&text, check);
        let is_note = |finding: &Finding| finding.severity == Severity::Note;
        assert!(findings.iter().all(is_note), "-{callback}: {findings:?}");
        notes += findings.len();

        // The same events from a runtime that lacks the callback.
        let text = without(callback).replace("OMPTRACE_EVENTS", "OTHER");
        contradictions += with_trace(&text, check).len();
    }
    // Eight notes name the missing end; `mutex_acquired` leads to two of them.
    assert_eq!(notes, 5 + 8, "what shows one end only");
    assert!(contradictions >= 6, "{contradictions}");
}

/// A trace may contain any numbers: here, more memory than a counter can represent, which is freed again.
#[test]
fn the_memory_of_a_device_adds_up_beyond_any_counter() {
    const ALLOCATIONS: u64 = 40_000;
    let operation = |time: u64, rest: String| {
        let both = |endpoint| format!("{time} 1 target_data_op_emi {endpoint} target=100 op={time} {rest}\n");
        [both("begin"), both("end")].concat()
    };
    let allocate = (1..=ALLOCATIONS).map(|number| {
        let (address, bytes) = (number << 20, u64::MAX);
        operation(
            number,
            format!("kind=alloc src=0x1 src_device=1 dest={address:#x} dest_device=0 bytes={bytes}"),
        )
    });
    let delete = (1..=ALLOCATIONS).map(|number| {
        let address = number << 20;
        operation(
            ALLOCATIONS + number,
            format!("kind=delete src={address:#x} src_device=0 dest=0x0 dest_device=1 bytes=0"),
        )
    });
    let text: String = allocate.chain(delete).collect();
    let chrome = FORMATS.iter().find(|format| format.name == "chrome").expect("a format");
    let json = with_trace(&text, |reader| {
        let out = Shared::default();
        let options = ConvertOptions::default();
        convert(&[reader], chrome, &options, Box::new(out.clone()), &mut |_| {})
            .expect("memory can be written");
        String::from_utf8(out.bytes()).expect("UTF-8")
    });
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events").iter();
    let shown: Vec<i64> = events
        .filter(|event| event["name"] == "bytes")
        .filter_map(|event| event["args"]["in use on device 0"].as_i64())
        .collect();
    assert_eq!(shown.len() as u64, 2 * ALLOCATIONS);
    assert_eq!(shown[0], 1 << 48);
    assert_eq!(shown.iter().max(), Some(&i64::MAX));
    assert_eq!(shown.last(), Some(&0));
}
