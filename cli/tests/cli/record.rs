//! `omptrace record` runs between a program and its user, and neither must notice.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{compile, folder, omptrace, record, run};

#[test]
fn passes_the_exit_status_on() {
    let folder = folder("passes_the_exit_status_on");
    for status in [0, 1, 2, 77, 255] {
        let program = format!("exit {status}");
        let said = run(&mut record(&folder, &[], &["sh", "-c", &program]));
        assert_eq!(said.status, Some(status));
    }
}

#[test]
fn a_program_that_cannot_be_run_has_a_way_out() {
    let folder = folder("a_program_that_cannot_be_run_has_a_way_out");
    compile(&folder, "app", "int main(void) { return 0; }", &[]);
    fs::write(folder.join("text"), "#!/bin/sh\n").unwrap();
    fs::write(folder.join("lost"), "#!/nowhere/sh\n").unwrap();
    fs::set_permissions(folder.join("lost"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder.join("dir")).unwrap();
    for (program, status, hint) in [
        ("app", 127, "hint: to run the program in this directory, use ./app"),
        ("text", 127, "chmod +x ./text"),
        ("./text", 126, "chmod +x"),
        ("./lost", 127, "interpreter"),
        ("./dir", 126, "this is a directory"),
    ] {
        let said = run(&mut record(&folder, &[], &[program]));
        assert_eq!(said.status, Some(status), "{program}: {}", said.stderr);
        assert!(said.stderr.contains(hint), "{program}: {}", said.stderr);
    }
    let said = run(&mut record(&folder, &[], &["no-such-program"]));
    assert!(!said.stderr.contains("hint:"), "{}", said.stderr);
}

#[test]
fn options_behind_the_program_are_its_own() {
    let folder = folder("options_behind_the_program_are_its_own");
    let words = ["--quiet", "-o", "x", "--", "--help"];
    let mut command = omptrace(&folder);
    command.args(["record", "--tool", "libomptrace.so", "echo"]);
    let said = run(command.args(words));
    assert_eq!((said.status, said.stdout), (Some(0), words.join(" ") + "\n"));
}

#[test]
fn the_library_is_found_where_packages_put_it() {
    let folder = folder("the_library_is_found_where_packages_put_it");
    let program = folder.join("bin/omptrace");
    fs::create_dir_all(folder.join("bin")).unwrap();
    // A symbolic link would be followed.
    fs::hard_link(env!("CARGO_BIN_EXE_omptrace"), &program).unwrap();
    let record = || run(Command::new(&program).args(["record", "--quiet", "true"]));
    let said = record();
    assert_eq!(said.status, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("libomptrace.so"), "{}", said.stderr);
    for place in ["lib", "lib/omptrace"] {
        let library = folder.join(place).join("libomptrace.so");
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        fs::write(&library, "").unwrap();
        let said = record();
        assert_eq!(said.status, Some(0), "{place}: {}", said.stderr);
        fs::remove_file(library).unwrap();
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    let folder = folder("a_signal_is_128_and_its_number");
    let said = run(&mut record(&folder, &[], &["sh", "-c", "kill -SEGV $$"]));
    assert_eq!(said.status, Some(139));
    assert!(said.stderr.contains("killed by signal 11 (SIGSEGV)"), "{}", said.stderr);
}

#[test]
fn a_missing_program_is_127_and_one_that_cannot_run_126() {
    let folder = folder("a_missing_program_is_127_and_one_that_cannot_run_126");
    fs::write(folder.join("data"), "no program").unwrap();
    let said = run(&mut record(&folder, &[], &["./missing"]));
    assert_eq!(said.status, Some(127));
    assert!(said.stderr.starts_with("error: cannot run ./missing: No such file"), "{}", said.stderr);
    for program in ["./data", "/"] {
        assert_eq!(run(&mut record(&folder, &[], &[program])).status, Some(126), "{program}");
    }
}

#[test]
fn leaves_input_and_output_alone() {
    let folder = folder("leaves_input_and_output_alone");
    let mut child = record(&folder, &[], &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut input = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.stdout == bytes);
}

#[test]
fn arguments_that_look_like_options_are_the_programs() {
    let folder = folder("arguments_that_look_like_options_are_the_programs");
    let said = run(&mut record(&folder, &[], &["echo", "--help", "--", "-o", "x"]));
    assert_eq!(said.stdout, "--help -- -o x\n");
}

#[test]
fn a_program_needs_no_dashes_in_front_and_an_unknown_option_is_none() {
    let folder = folder("a_program_needs_no_dashes_in_front_and_an_unknown_option_is_none");
    let said = run(omptrace(&folder).args(["record", "--tool", "libomptrace.so", "echo", "-n", "--force"]));
    assert_eq!(said.stdout, "--force");

    let said = run(omptrace(&folder).args(["record", "--force", "--", "echo"]));
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("unexpected argument '--force'"), "{}", said.stderr);
}

#[test]
fn a_script_without_interpreter_line_is_the_shells() {
    let folder = folder("a_script_without_interpreter_line_is_the_shells");
    let script = folder.join("run.sh");
    fs::write(&script, "echo \"ran $1\"\nexit 5\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let said = run(&mut record(&folder, &[], &["./run.sh", "well"]));
    assert_eq!((said.stdout.as_str(), said.status), ("ran well\n", Some(5)));
}

#[test]
fn the_tool_comes_first_and_others_stay() {
    let folder = folder("the_tool_comes_first_and_others_stay");
    let said = run(record(&folder, &[], &["sh", "-c", "echo $OMP_TOOL_LIBRARIES"])
        .env("OMP_TOOL_LIBRARIES", "/other/tool.so"));
    let ours = fs::canonicalize(folder.join("libomptrace.so")).unwrap();
    assert_eq!(said.stdout, format!("{}:/other/tool.so\n", ours.display()));
}

#[test]
fn the_tracer_is_preloaded_where_that_is_asked_for() {
    let folder = folder("the_tracer_is_preloaded_where_that_is_asked_for");
    let ours = fs::canonicalize(folder.join("libomptrace.so")).unwrap();
    let mut recorded = record(&folder, &["--preload"], &["sh", "-c", "echo $LD_PRELOAD"]);
    let said = run(recorded.env("LD_PRELOAD", "/other.so")).stdout;
    assert!(said.ends_with("/$LIB/libomptrace.so:/other.so\n"), "{said}");
    let expected = format!("{}:/other.so\n", ours.display());

    let said = run(omptrace(&folder).args(["env", "--tool", "libomptrace.so", "--preload"]));
    let script = format!("{}echo \"$LD_PRELOAD\"", said.stdout);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("LD_PRELOAD", "/other.so");
    assert_eq!(run(&mut shell).stdout, expected);
}

#[test]
fn options_are_variables_of_the_tracer() {
    let folder = folder("options_are_variables_of_the_tracer");
    let options = [
        "-o",
        "x.omptrace",
        "--events",
        "-mutex",
        "--buffer",
        "4M",
        "--on-full",
        "drop",
        "--compress",
        "off",
        "--spool",
        ".",
    ];
    let said = run(&mut record(&folder, &options, &["env"]));
    let here = folder.display();
    for line in [
        format!("OMPTRACE_OUTPUT={here}/x.omptrace"),
        "OMPTRACE_EVENTS=-mutex".to_owned(),
        "OMPTRACE_BUFFER=4M".to_owned(),
        "OMPTRACE_ON_FULL=drop".to_owned(),
        "OMPTRACE_COMPRESS=off".to_owned(),
        format!("OMPTRACE_SPOOL={here}"),
    ] {
        assert!(said.stdout.lines().any(|said| said == line), "{line}");
    }
}

#[test]
fn without_an_output_traces_lie_in_the_folder_where_record_runs() {
    let folder = folder("without_an_output").join("100%");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("libomptrace.so"), "").unwrap();
    let said = run(&mut record(&folder, &[], &["sh", "-c", "cd /; echo $OMPTRACE_OUTPUT"]));
    let expected = format!("{}%/%e.%p.omptrace\n", folder.display());
    assert_eq!(said.stdout, expected);
}

#[test]
fn a_missing_output_directory_is_made() {
    let folder = folder("a_missing_output_directory");
    for (output, made) in
        [("a/", "a"), ("b/%e.%r.omptrace", "b"), ("c/d/x.omptrace", "c/d"), ("e/%h.d/x", "e")]
    {
        let said = run(&mut record(&folder, &["-o", output], &["echo", "ran"]));
        assert_eq!((said.stdout.as_str(), said.status), ("ran\n", Some(0)), "{}", said.stderr);
        assert!(folder.join(made).is_dir(), "{output}");
    }
    assert!(!folder.join("e/%h.d").exists());
}

#[test]
fn an_output_directory_that_cannot_be_made_is_reported_before_the_run() {
    let folder = folder("an_output_directory_that_cannot_be_made");
    let said = run(&mut record(&folder, &["-o", "libomptrace.so/x.omptrace"], &["echo", "ran"]));
    assert_eq!((said.stdout.as_str(), said.status), ("", Some(2)));
    let words = "error: cannot create the directory libomptrace.so for the trace: ";
    assert!(said.stderr.starts_with(words) && said.stderr.contains("hint: "), "{}", said.stderr);
}

#[test]
fn a_missing_tool_is_reported_before_the_run() {
    let folder = folder("a_missing_tool");
    let said = run(omptrace(&folder).args(["record", "--tool", "gone.so", "--", "echo", "ran"]));
    assert_eq!((said.stdout.as_str(), said.status), ("", Some(2)));
    assert!(said.stderr.contains("--tool gone.so: No such file"), "{}", said.stderr);
}

#[test]
fn says_that_nothing_was_traced_and_why() {
    let folder = folder("says_that_nothing_was_traced_and_why");
    let said = run(&mut record(&folder, &[], &["true"]));
    assert_eq!(said.status, Some(0));
    assert!(said.stderr.contains("nothing was traced"), "{}", said.stderr);
    assert!(said.stderr.contains("do not use OpenMP"), "{}", said.stderr);

    compile(&folder, "static", "int main(void) { return 0; }", &["-static"]);
    let said = run(&mut record(&folder, &[], &["./static"]));
    assert!(said.stderr.contains("./static is linked statically"), "{}", said.stderr);

    let said = run(record(&folder, &[], &["true"]).env("OMP_TOOL", "disabled"));
    assert!(said.stderr.contains("OMP_TOOL=disabled is set"), "{}", said.stderr);
    assert!(said.stderr.contains("hint: unset OMP_TOOL"), "{}", said.stderr);
}

#[test]
fn leaves_nothing_behind() {
    let folder = folder("leaves_nothing_behind");
    let said = run(record(&folder, &[], &["sh", "-c", "ls -d $OMPTRACE_REGISTRY"]).env("TMPDIR", &folder));
    let registry = said.stdout.trim();
    assert!(registry.starts_with(folder.to_str().unwrap()), "{registry}");
    assert!(!fs::exists(registry).unwrap());
}

/// Starts `record` of a shell script, in a process group of its own, and waits until the script says `ready`.
fn start(test: &str, script: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = record(&folder(test), &[], &["sh", "-c", script])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, output)
}

fn send(signal: &str, target: &str) {
    let status = Command::new("kill").args(["-s", signal, "--", target]).status();
    assert!(status.unwrap().success());
}

fn rest(mut output: BufReader<ChildStdout>) -> String {
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn term_and_hup_and_the_users_signals_are_forwarded() {
    for (signal, status) in [("TERM", 7), ("HUP", 8), ("USR1", 9), ("USR2", 10)] {
        let script =
            format!("trap 'echo {signal}; exit {status}' {signal}; echo ready; while :; do sleep 0.02; done");
        let (mut child, output) = start(&format!("forwarded_{signal}"), &script);
        send(signal, &child.id().to_string());
        assert_eq!(rest(output), format!("{signal}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(status));
    }
}

#[test]
fn a_program_killed_by_a_forwarded_signal_is_128_and_its_number() {
    let (mut child, _output) = start("forwarded_kills", "echo ready; exec sleep 60");
    send("TERM", &child.id().to_string());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// The terminal sends them to the whole group.
#[test]
fn int_and_quit_of_the_terminal_reach_the_program_once() {
    for signal in ["INT", "QUIT"] {
        let script = format!("trap 'echo {signal}' {signal}; echo ready; read _; sleep 0.3; exit 9");
        let script = script.replace("read _", "while ! test -e stop; do sleep 0.02; done");
        let test = format!("terminal_{signal}");
        let (mut child, output) = start(&test, &script);
        send(signal, &format!("-{}", child.id()));
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(&test).join("stop"), "").unwrap();
        assert_eq!(rest(output), format!("{signal}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(9));
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    let folder = folder("ignored_signals_stay_ignored");
    for signal in ["HUP", "PIPE"] {
        let script = format!("kill -{signal} $$; echo alive");
        let recorded = record(&folder, &[], &["sh", "-c", &script]);
        // Rust ignores PIPE in this process, and gives it back in those that it starts.
        for (trap, expected) in [("''", "alive\n"), ("-", "")] {
            let trap = format!("trap {trap} {signal}; exec \"$@\"");
            let mut around = Command::new("sh");
            around.current_dir(&folder).args(["-c", &trap, "sh"]);
            around.arg(recorded.get_program()).args(recorded.get_args());
            assert_eq!(run(&mut around).stdout, expected, "{signal}: {trap}");
        }
    }
}

#[test]
fn env_prints_what_the_shell_takes() {
    let folder = folder("env_prints_what_the_shell_takes");
    let said = run(omptrace(&folder).args(["env", "--tool", "libomptrace.so", "-o", "a b.omptrace"]));
    let script = format!("{}echo \"$OMP_TOOL_LIBRARIES|$OMPTRACE_OUTPUT\"", said.stdout);
    let said = run(Command::new("sh").args(["-c", &script]).env("OMP_TOOL_LIBRARIES", "other.so"));
    let here = fs::canonicalize(&folder).unwrap();
    assert_eq!(said.stdout, format!("{0}/libomptrace.so:other.so|{0}/a b.omptrace\n", here.display()));
}

#[test]
fn wrong_usage_is_2() {
    let folder = folder("wrong_usage_is_2");
    for words in [
        &["record"][..],
        &["record", "--buffer", "much", "--", "true"],
        &["record", "--buffer", "1K", "--", "true"],
        &["record", "--flight", "2G", "--", "true"],
        &["record", "--events", "bogus", "--", "true"],
        &["record", "--spool", "libomptrace.so", "--", "true"],
        &["record", "--tool", ".", "--", "true"],
        &["env", "--events", "default,-nonsense"],
        &["nonsense"],
        &["convert", "x"],
    ] {
        assert_eq!(run(omptrace(&folder).args(words)).status, Some(2), "{words:?}");
    }
}

/// Where nobody hears what is said, the program runs all the same, and its status is passed on.
#[test]
fn a_full_disk_behind_stderr_changes_nothing() {
    let folder = folder("a_full_disk_behind_stderr");
    let mut command = record(&folder, &[], &["sh", "-c", "echo ran; exit 7"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command.stderr(full).output().unwrap();
    assert_eq!((&*output.stdout, output.status.code()), (&b"ran\n"[..], Some(7)));
}
