//! A running program, watched from outside: real programs, a real terminal (tmux).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use omptrace_tests::env::{Compiler, compile, omptrace_program, tool_library};
use serde_json::Value;

/// As long as it takes on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program under the tracer, which goes on until this value goes.
struct Running {
    child: Child,
    folder: tempfile::TempDir,
}

impl Running {
    fn start(source: &str) -> Running {
        let program = compile(source, Compiler::Clang22, &[]);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(program)
            .env("OMP_TOOL_LIBRARIES", tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("run.omptrace"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        let mut said = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut said).expect("it says something");
        assert!(said.starts_with("ready"), "{said:?}");
        Running { child, folder }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("run.omptrace")
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a command prints, which ends as it should.
fn printed(arguments: &[&str]) -> String {
    let output = Command::new(omptrace_program()).args(arguments).output();
    let output = output.expect("omptrace can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).expect("JSON")
}

/// What `attempt` gives at last: how soon, the machine decides.
fn at_last<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let since = Instant::now();
    loop {
        match attempt() {
            Ok(result) => return result,
            Err(seen) if since.elapsed() > PATIENCE => panic!("{what}: {seen}"),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// The first line of the source that has `text`.
fn line_of(source: &str, text: &str) -> u64 {
    let path = omptrace_tests::env::root().join(source);
    let source = fs::read_to_string(path).expect("a source file");
    let line = source.lines().position(|line| line.contains(text));
    line.expect("the line") as u64 + 1
}

const GOES_ON: &str = "tests/programs/goes_on.c";

#[test]
fn a_look_at_a_running_program_has_its_regions_and_threads() {
    let mut program = Running::start(GOES_ON);
    let region = line_of(GOES_ON, "#pragma omp parallel");
    let process = at_last("a region in the last interval", || {
        let all = json(&["top", "--once", "--json", "--all", &program.pid()]);
        assert_eq!(all["schema"], 2);
        let process = all["processes"][0].clone();
        assert_eq!(process["state"], "running", "{process}");
        let mut regions = process["regions"].as_array().expect("a list").iter();
        match regions.any(|row| row["line"] == region) {
            true => Ok(process),
            false => Err(process.to_string()),
        }
    });
    assert_eq!(process["pid"], program.child.id());
    assert_eq!(process["lost_events"], 0);
    let names: Vec<&Value> = process["threads_by_cause"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|thread| &thread["thread"])
        .collect();
    assert_eq!(names, ["main", "OpenMP worker 1"]);
    let window = process["window_end_ns"].as_i64().expect("a time")
        - process["window_begin_ns"].as_i64().expect("a time");
    for thread in process["threads_by_cause"].as_array().expect("a list") {
        let known = thread["accounting"]["total_ns"].as_i64().expect("a time");
        let rest = thread["rest_ns"].as_i64().expect("a time");
        assert_eq!(known + rest, window, "{thread}");
    }
    assert!(process["accounting"]["useful_ns"].as_u64() > Some(0));
    assert!(process["events_per_second"].as_f64() > Some(0.0));
    assert!(program.is_running());
}

#[test]
fn a_look_changes_no_file() {
    let mut program = Running::start("tests/programs/stays.c");
    let files = || {
        let entries = fs::read_dir(program.folder.path()).expect("a folder");
        let mut files: Vec<(PathBuf, Vec<u8>)> = entries
            .map(|entry| entry.expect("an entry").path())
            .map(|path| (path.clone(), fs::read(path).expect("a file")))
            .collect();
        files.sort();
        files
    };
    // The tracer itself writes until it has begun in full.
    let mut before = files();
    at_last("files that stay as they are", || {
        std::thread::sleep(Duration::from_millis(400));
        let now = files();
        match before == now {
            true => Ok(()),
            false => {
                before = now;
                Err("the tracer writes".to_owned())
            }
        }
    });
    let text = printed(&["top", "--once", "--interval", "100ms", &program.pid()]);
    assert!(text.contains("running"), "{text}");
    assert!(before == files(), "top changed a file");
    assert!(program.is_running());
}

#[test]
fn a_thread_that_waits_for_long_is_seen_to_wait() {
    let program = Running::start("tests/programs/waits_long.c");
    // One of two threads waits for the other, which works all the time: from some time on, the interval has nothing else.
    at_last("a wait without events", || {
        let arguments = ["top", "--once", "--json", "--all", "--interval", "200ms"];
        let all = json(&[&arguments[..], &[&program.pid()]].concat());
        let process = &all["processes"][0];
        let half = Some(0.5);
        let waits = &process["threads_by_cause"][1]["accounting"];
        let waits_all_the_time = waits["imbalance_ns"] == waits["total_ns"];
        match process["efficiency"]["parallel"].as_f64() == half && waits_all_the_time {
            true => Ok(()),
            false => Err(process.to_string()),
        }
    });
}

#[test]
fn a_program_that_was_killed_shows_its_end() {
    let mut program = Running::start(GOES_ON);
    program.child.kill().expect("it can be killed");
    program.child.wait().expect("it ends");
    let trace = program.trace();
    let trace = trace.to_str().expect("a name");
    let all = json(&["top", "--once", "--json", "--all", "--interval", "10ms", trace]);
    let process = &all["processes"][0];
    assert_eq!(process["state"], "ended", "{process}");
    // The same part of it by `stats`.
    let ns = |key: &str| process[key].as_u64().expect("a time");
    let window = format!("{}ns..{}ns", ns("window_begin_ns"), ns("window_end_ns"));
    let stats = json(&["stats", "--json", "--all", "--window", &window, trace]);
    for key in ["accounting", "efficiency", "regions", "blame"] {
        assert_eq!(process[key], stats[key], "{key}");
    }
}

/// A terminal of its own, by tmux.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn start(folder: &Path, command: &str) -> Terminal {
        let terminal = Terminal { socket: folder.join("tmux") };
        let folder = folder.to_str().expect("a name");
        terminal.tmux(&["new-session", "-d", "-x", "110", "-y", "36", "-c", folder, command]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("tmux can be run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the screen has all these words.
    fn shows(&self, words: &[&str]) -> String {
        at_last("the screen", || {
            let screen = self.tmux(&["capture-pane", "-p"]);
            match words.iter().all(|words| screen.contains(words)) {
                true => Ok(screen),
                false => Err(format!("none of it has {words:?}\n{screen}")),
            }
        })
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn ends(&self) {
        at_last("the end of the screen", || {
            let sessions = self.tmux(&["list-sessions"]);
            match sessions.is_empty() {
                true => Ok(()),
                false => Err(sessions),
            }
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// `record --live` in a terminal of its own, and the command's output.
fn live(folder: &Path) -> (Terminal, PathBuf) {
    let program = compile(GOES_ON, Compiler::Clang22, &[]);
    let command = format!(
        "{} record --live --tool {} -o live.omptrace -- {} < /dev/null > out 2>&1",
        omptrace_program().display(),
        tool_library().display(),
        program.display()
    );
    let terminal = Terminal::start(folder, &command);
    terminal.shows(&["parallel efficiency", "OpenMP worker 1", "running"]);
    (terminal, folder.join("out"))
}

#[test]
fn record_shows_the_screen_while_the_program_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (terminal, out) = live(folder.path());
    // The program is interrupted, as by the terminal, and the recording ends as ever.
    terminal.press("C-c");
    terminal.ends();
    let said = fs::read_to_string(out).expect("its output");
    assert!(said.contains("live.omptrace"), "{said}");
    let trace = folder.path().join("live.omptrace");
    assert!(printed(&["info", trace.to_str().expect("a name")]).contains("killed by"));
}

#[test]
fn record_ends_if_the_terminal_of_its_screen_is_closed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (terminal, out) = live(folder.path());
    drop(terminal);
    // The program is ended by SIGHUP.
    at_last("the summary", || {
        let said = fs::read_to_string(&out).expect("its output");
        if said.contains("live.omptrace (") { Ok(()) } else { Err(said) }
    });
}

#[test]
fn the_screen_shows_the_program_and_obeys_keys() {
    let mut program = Running::start(GOES_ON);
    let command = format!("{} top {}", omptrace_program().display(), program.pid());
    let terminal = Terminal::start(program.folder.path(), &command);
    let region = format!("goes_on.c:{}", line_of(GOES_ON, "#pragma omp parallel"));
    terminal.shows(&["parallel efficiency", "OpenMP worker 1", "running", &region]);
    terminal.press("s");
    terminal.shows(&["regions by time"]);
    terminal.press("?");
    terminal.shows(&["quit omptrace top; the program continues"]);
    terminal.press("?");
    terminal.press("p");
    terminal.shows(&["paused"]);
    terminal.press("p");
    terminal.press("w");
    terminal.shows(&["run.top-1.omptrace"]);
    terminal.press("q");
    terminal.ends();
    assert!(program.is_running());
    // What was saved is a whole trace, whose oldest events are not in it.
    let saved = program.folder.path().join("run.top-1.omptrace");
    let saved = saved.to_str().expect("a name");
    let stats = json(&["stats", "--json", "--all", saved]);
    let mut regions = stats["regions"].as_array().expect("a list").iter();
    assert!(regions.any(|row| row["visits"].as_u64() > Some(0)), "{stats}");
    assert!(printed(&["info", saved]).contains("saved while the program ran"));
}
