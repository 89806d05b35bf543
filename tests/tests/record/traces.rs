//! The traces themselves: their folders, names, size and mode.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::{Traces, convert, counts, dump, info};

use crate::{record, recording, said};

#[test]
fn code_in_a_folder_whose_name_is_no_text_has_names() {
    let traces = Traces::folder();
    let folder = traces.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).expect("a folder");
    let program = folder.join("app");
    let original = compile("tests/programs/tasks.c", Compiler::Clang22, &["-g"]);
    fs::copy(original, &program).expect("it can be copied");
    let arguments = ["-o".as_ref(), "x.omptrace".as_ref(), "--".as_ref(), program.as_os_str()];
    let output = record(&traces, arguments);
    let trace = traces.path().join("x.omptrace");
    let stats = omptrace_tests::trace::omptrace([Path::new("stats"), Path::new("--full"), &trace]);
    let printed = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert!(printed.contains("tasks.c:"), "{printed} {output:?}");
}

#[test]
fn info_and_the_page_say_how_the_program_ended() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let program = program.to_str().expect("UTF-8");
    let in_shell = format!("{program} 2 4; exit 0");
    for (command, words) in [
        (&[program, "2", "4"][..], "exited with status 0"),
        // `record` saw the shell's end only.
        (&["sh", "-c", &in_shell], "the program ended, but its exit status is not known"),
    ] {
        let traces = Traces::folder();
        let output = ["-o", "x.omptrace", "--"].iter().chain(command);
        record(&traces, output);
        let trace = traces.path().join("x.omptrace");
        let printed = |arguments: &[&OsStr]| {
            let output = omptrace_tests::trace::omptrace(arguments);
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let info = printed(&["info".as_ref(), trace.as_os_str()]);
        let end = info.lines().find(|line| line.starts_with("end "));
        let end = end.expect("a line").split_whitespace().skip(1);
        assert_eq!(end.collect::<Vec<_>>().join(" "), words, "{info}");
        let page =
            printed(&["report".as_ref(), "--md".as_ref(), "-o".as_ref(), "-".as_ref(), trace.as_os_str()]);
        assert!(!page.contains("| ended | ended |"), "{page}");
    }
}

#[test]
fn folders_may_have_any_name() {
    let traces = Traces::folder();
    let folder = traces.path().join(OsStr::from_bytes(b"100 % \xff\n'"));
    fs::create_dir(&folder).expect("a folder");
    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let output = recording(&traces, [OsStr::new("--"), program.as_os_str()])
        .current_dir(&folder)
        .output()
        .expect("omptrace can be run");
    assert!(output.status.success(), "{output:?}");
    let files = fs::read_dir(&folder).expect("a folder");
    let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert_eq!(files.len(), 1, "{output:?}");
    assert!(!said(&output).contains("not allowed"), "{output:?}");
    assert!(counts(&dump(&files[0]))["parallel_begin"] > 0);
}

#[test]
fn a_sealed_trace_is_packed_sound_and_small() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let arguments = ["-o", "x.omptrace", "--", program.to_str().expect("UTF-8"), "2", "16"];
    record(&traces, arguments);
    let trace = traces.only();
    let checked = omptrace_tests::trace::omptrace([Path::new("check"), &trace]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let per_event = info(&trace)["size"]["bytes_per_event"].as_f64();
    assert!(per_event.is_some_and(|bytes| bytes < 2.0), "{per_event:?} bytes per event");
}

#[test]
fn a_flight_recorder_is_one_option() {
    for (source, words, ending) in [
        ("locks.c", ["2", "30000"].as_slice(), "ended"),
        ("reliability_ends.c", &["_exit", "2", "100000"], "did not finish"),
    ] {
        let program = compile(&format!("tests/programs/{source}"), Compiler::Clang22, &[]);
        let traces = Traces::folder();
        let mut arguments = vec!["--flight", "512K", "-o", "x.omptrace", "--"];
        arguments.push(program.to_str().expect("UTF-8"));
        arguments.extend(words);
        record(&traces, arguments);
        let info = info(&traces.only());
        assert_eq!(info["ending"], ending);
        assert_eq!(info["size"]["sealed"], true);
        assert_eq!(info["settings"]["OMPTRACE_MODE"], "flight");
        // Half a megabyte for each of two threads, of which an event takes eight bytes or more.
        let events = info["events"].as_u64().expect("a number");
        assert!((10_000..=2 * (512 << 10) / 8).contains(&events), "{source}: {events}");
        let timeline = traces.path().join("x.pftrace");
        convert(&traces.files()[0], "perfetto", &timeline, &[]);
    }
}
