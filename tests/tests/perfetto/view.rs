//! The way of a trace into the UI: who gets it, once, and the real UI in a real browser.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use omptrace_cli::serve::{HOSTED_UI, Server, Start, UI_PORT, Ui, Way};
use omptrace_tests::env::{Compiler, compile, omptrace_program, perfetto_ui, root};
use omptrace_tests::trace::{Traced, Traces, omptrace};
use omptrace_tests::viewers::{Rows, open_address, query};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Browsers take long to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const CONTENT: &str = "not really a trace";
const ORIGIN: &str = "Origin: https://ui.perfetto.dev";
const SLICES: &str = "select count(*) n, sum(dur) ns from slice where dur > 0";

/// A server that runs.
struct Running {
    address: String,
    port: u16,
    result: JoinHandle<bool>,
}

impl Running {
    fn start(server: Server, patience: Duration) -> Running {
        Running {
            address: server.address(),
            port: server.port(),
            result: thread::spawn(move || server.run(patience).expect("the port stays ours")),
        }
    }

    /// A server of [`CONTENT`], on a free port.
    fn of(ui: Ui, way: Way) -> Running {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("content");
        fs::write(&file, CONTENT).expect("a file");
        let file = File::open(file).expect("a file");
        let server = Server::new(file, "my app.pftrace", ui, way, 0, &Start::default()).expect("a free port");
        Running::start(server, PATIENCE)
    }

    fn hosted(way: Way) -> Running {
        Running::of(Ui::At(HOSTED_UI.to_owned()), way)
    }

    /// The trace's path, from the address that the UI is opened with.
    fn path(&self) -> &str {
        let local = self.address.rsplit_once(&format!(":{}", self.port));
        local.expect("the address has the port").1
    }

    fn ask(&self, method: &str, path: &str, headers: &[&str]) -> String {
        let host = format!("127.0.0.1:{}", self.port);
        ask(self.port, &host, method, path, headers)
    }
}

/// The whole answer to a request.
fn ask(port: u16, host: &str, method: &str, path: &str, headers: &[&str]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
    for header in headers {
        head += &format!("{header}\r\n");
    }
    write!(stream, "{head}\r\n").expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The number of the answer.
fn status(answer: &str) -> u16 {
    let number = answer.split(' ').nth(1);
    number.and_then(|number| number.parse().ok()).expect(answer)
}

#[test]
fn the_hosted_ui_gets_the_trace_once() {
    let running = Running::hosted(Way::Fetch);
    let start = "https://ui.perfetto.dev/#!/?startupCommands=";
    assert!(running.address.starts_with(start), "{}", running.address);
    let url = format!("&url=http://127.0.0.1:{}/", running.port);
    assert!(running.address.contains(&url), "{}", running.address);
    let path = running.path().to_owned();
    let secret = path.split('/').nth(1).expect("a secret");
    assert_eq!(secret.len(), 32);
    assert!(path.ends_with("/my_app.pftrace"));

    let answer = running.ask("OPTIONS", &path, &[ORIGIN, "Access-Control-Request-Private-Network: true"]);
    assert_eq!(status(&answer), 204);
    assert!(answer.contains("Access-Control-Allow-Private-Network: true"), "{answer}");

    let answer = running.ask("GET", &path, &[ORIGIN]);
    assert_eq!(status(&answer), 200);
    assert!(answer.contains("Access-Control-Allow-Origin: https://ui.perfetto.dev\r\n"), "{answer}");
    assert!(answer.contains(&format!("Content-Length: {}\r\n", CONTENT.len())), "{answer}");
    assert!(answer.ends_with(CONTENT), "{answer}");

    assert!(running.result.join().expect("it ends"));
    assert!(TcpStream::connect(("127.0.0.1", running.port)).is_err());
}

#[test]
fn others_are_refused() {
    let running = Running::hosted(Way::Fetch);
    let path = running.path().to_owned();
    let port = running.port;
    for origin in ["https://example.org", "https://ui.perfetto.dev.example.org", "null"] {
        let answer = running.ask("GET", &path, &[&format!("Origin: {origin}")]);
        assert_eq!(status(&answer), 403, "{origin}");
    }
    for host in ["example.org", "127.0.0.1", &format!("rebound.example.org:{port}")] {
        let answer = ask(port, host, "GET", &path, &[ORIGIN]);
        assert_eq!(status(&answer), 403, "{host}");
    }
    for guess in ["/", "/my_app.pftrace", "/localtrace", "/00000000000000000000000000000000/my_app.pftrace"] {
        assert_eq!(status(&running.ask("GET", guess, &[ORIGIN])), 404, "{guess}");
    }
    for method in ["POST", "PUT", "DELETE", "HEAD"] {
        assert_eq!(status(&running.ask(method, &path, &[ORIGIN])), 405, "{method}");
    }
    // None of it took the trace away.
    assert_eq!(status(&running.ask("GET", &path, &[ORIGIN])), 200);
    assert!(running.result.join().expect("it ends"));
}

#[test]
fn only_the_loopback_interface_listens() {
    let running = Running::hosted(Way::Fetch);
    let sockets = fs::read_to_string("/proc/net/tcp").expect("Linux lists its sockets");
    let others = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let port = format!(":{:04X} ", running.port);
    let listening: Vec<&str> = sockets
        .lines()
        .chain(others.lines())
        .filter_map(|line| line.split_whitespace().nth(1).zip(line.split_whitespace().nth(3)))
        .filter(|(local, state)| format!("{local} ").ends_with(&port) && *state == "0A")
        .map(|(local, _)| local)
        .collect();
    assert_eq!(listening, [format!("0100007F:{:04X}", running.port)]);
    running.ask("GET", running.path(), &[ORIGIN]);
}

#[test]
fn nobody_is_waited_for_forever() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("a"), CONTENT).expect("a file");
    let file = File::open(folder.path().join("a")).expect("a file");
    let ui = Ui::At(HOSTED_UI.to_owned());
    let server = Server::new(file, "a", ui, Way::Fetch, 0, &Start::default()).expect("a free port");
    assert!(!server.run(Duration::from_millis(50)).expect("no error"));
}

/// The copy of the UI knows no secret path: its browser shows a cookie.
#[test]
fn the_local_ui_gets_the_trace_by_a_cookie() {
    let running = Running::of(Ui::In(perfetto_ui()), Way::Fetch);
    assert_eq!(status(&running.ask("GET", "/localtrace", &[])), 404);
    assert_eq!(status(&running.ask("GET", "/../Cargo.toml", &[])), 404);
    let answer = running.ask("GET", running.path(), &[]);
    assert_eq!(status(&answer), 303);
    let cookie = answer.lines().find_map(|line| line.strip_prefix("Set-Cookie: "));
    let cookie = cookie.and_then(|line| line.split(';').next()).expect("a cookie");
    let cookie = format!("Cookie: other=1; {cookie}");
    let answer = running.ask("GET", "/localtrace", &[&cookie]);
    assert!(answer.ends_with(CONTENT), "{answer}");
    assert_eq!(status(&running.ask("GET", "/localtrace", &[&cookie])), 410);
    assert_eq!(status(&running.ask("GET", "/", &[])), 200);
}

/// The answer of the UI, in which all tracks can be seen without a click.
fn open_expanded(address: &str) -> Vec<Rows> {
    let mut results = open_address(address, &[SLICES]).sound();
    let groups = results.pop().expect("the groups of tracks");
    assert!(!groups.is_empty());
    for group in &groups {
        // What the importer says of clocks.
        let is_folded = group["name"] == "System";
        assert_eq!(group["collapsed"], is_folded, "{groups:?}");
    }
    results.truncate(1);
    results
}

/// Our page, at one origin, opens the real UI at another and posts the trace to it.
#[test]
fn a_page_hands_the_trace_to_the_real_ui() {
    let traced = Traced::example("stencil", &["200", "5"]);
    let path = traced.convert("perfetto", "a.pftrace", &[]);
    let expected = query(&path, &[SLICES]);

    let ui = Running::of(Ui::In(perfetto_ui()), Way::Page);
    // The copy of the UI would fetch a trace by itself at its front page, which the hosted one does not.
    let empty_ui = format!("http://127.0.0.1:{}/#!/viewer", ui.port);
    let file = File::open(&path).expect("the export");
    let server = Server::new(file, "a.pftrace", Ui::At(empty_ui), Way::Page, 0, &Start::default());
    let running = Running::start(server.expect("a free port"), PATIENCE);
    assert_eq!(open_expanded(&running.address), expected);
    assert!(running.result.join().expect("it ends"));
}

/// `omptrace view` that runs.
struct View(Child);

impl Drop for View {
    fn drop(&mut self) {
        // An error says that it ended before.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Starts `omptrace view`, which says an address.
fn view(words: &[&str]) -> (View, String) {
    let mut child = Command::new(omptrace_program())
        .arg("view")
        .args(words)
        .arg("--no-browser")
        .env("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("omptrace can be run");
    let mut address = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut address).expect("an address");
    (View(child), address.trim().to_owned())
}

/// Ports 9001 of this machine are one: so this is one test.
#[test]
fn the_command_takes_port_9001_or_hands_over() {
    let traced = Traced::example("stencil", &["100", "2"]);
    let trace = traced.trace().to_str().expect("UTF-8");
    let (mut first, address) = view(&[trace]);
    let (start, path) = address.split_once(&format!("127.0.0.1:{UI_PORT}")).expect("port 9001");
    assert!(start.starts_with("https://ui.perfetto.dev/#!/?") && start.ends_with("&url=http://"), "{start}");

    // The port is taken: a page of ours, on another.
    let (mut second, address) = view(&[trace]);
    assert!(address.starts_with("http://127.0.0.1:") && address.ends_with('/'), "{address}");
    second.0.kill().expect("it runs");
    let mut said = String::new();
    let stderr = second.0.stderr.as_mut().expect("a pipe");
    stderr.read_to_string(&mut said).expect("UTF-8");
    assert!(said.contains("port 9001") && said.contains("ssh -L "), "{said}");

    let host = format!("127.0.0.1:{UI_PORT}");
    let answer = ask(UI_PORT, &host, "GET", path, &[ORIGIN]);
    assert_eq!(status(&answer), 200);
    assert!(first.0.wait().expect("it ends").success());
}

/// What the runtime does for itself is out of the way: below the devices, and folded.
#[test]
fn hidden_helpers_are_folded_below_the_devices() {
    let offload = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    let traced = Traced::built("tests/programs/target_nowait.c", &offload, &[]);
    let (trace, ui) = (traced.trace().to_str(), perfetto_ui());
    let (trace, ui) = trace.zip(ui.to_str()).expect("UTF-8");
    let (_running, address) = view(&[trace, "--ui", ui]);
    let mut results = open_address(&address, &[]).sound();
    let groups = results.pop().expect("the groups of tracks");
    let name = |group: &Map<String, Value>| group["name"].as_str().map(str::to_owned);
    let names: Vec<String> = groups.iter().filter_map(name).collect();
    let place = |begin: &str| names.iter().position(|name| name.starts_with(begin));
    let (device, helpers) = (place("device 0"), place("hidden helpers"));
    assert!(device.is_some() && device < helpers, "{groups:?}");
    for group in &groups {
        let is_folded = ["hidden helpers", "System"].map(Value::from).contains(&group["name"]);
        assert_eq!(group["collapsed"], is_folded, "{groups:?}");
    }
}

/// The top finding and the critical path are pinned, and the UI opens where the finding is.
#[test]
fn the_view_opens_at_the_top_finding() {
    let trace = root().join("viewer-export/tests/devices/amd_async.omptrace");
    let (trace, ui) = (trace.to_str(), perfetto_ui());
    let (trace, ui) = trace.zip(ui.to_str()).expect("UTF-8");
    let findings = omptrace(["stats", "--json", "--select", "findings", trace]);
    let findings: Value = serde_json::from_slice(&findings.stdout).expect("JSON");
    let worst = &findings[0]["instances"][0];
    let time = |name: &str| worst[name].as_i64().expect("a time");
    let (begin, end) = (time("begin_ns"), time("end_ns"));

    let opened = |words: &[&str]| {
        let (_running, address) = view(&[&[trace, "--ui", ui], words].concat());
        let mut results = open_address(&address, &[]).sound();
        results.swap_remove(0).swap_remove(0)
    };
    let shown = opened(&[]);
    assert_eq!(shown["pinned"], "critical path,top finding");
    let selected = shown["selected"].as_str().expect("a slice");
    assert!(selected.contains("saves up to "), "{selected}");
    let in_sight = |name: &str| shown[name].as_i64().expect("a time");
    assert!(in_sight("begin") <= begin && end <= in_sight("end"), "{shown:?} {worst}");
    let ns = in_sight("end") - in_sight("begin");
    assert!(ns < 6 * (end - begin), "{shown:?} {worst}");

    let whole = opened(&["--whole"]);
    assert_eq!((&whole["pinned"], &whole["selected"]), (&json!(""), &Value::Null));
}

#[test]
fn the_command_opens_the_local_ui() {
    // Tracks of findings are none of the export's.
    let traced = Traced::example("stencil", &["200", "5"]);
    let expected = query(&traced.convert("perfetto", "a.pftrace", &[]), &[SLICES]);
    let (trace, ui) = (traced.trace().to_str(), perfetto_ui());
    let (trace, ui) = trace.zip(ui.to_str()).expect("UTF-8");
    for way in [&[][..], &["--browser-handover"]] {
        let words = [&[trace, "--ui", ui, "--whole"], way].concat();
        // It waits for what the UI may still want, and is ended.
        let (_running, address) = view(&words);
        assert_eq!(open_expanded(&address), expected, "{way:?}");
    }
}

/// The steps of a program are a row above its threads, in the order of time.
#[test]
fn the_view_opens_with_the_row_of_steps() {
    let include = format!("-I{}", root().join("include").display());
    let program = compile("tests/programs/annotations_own.c", Compiler::Gcc, &[&include, "-ldl"]);
    let traces = Traces::folder();
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--quiet", "-o"]).arg(traces.path().join("%p.omptrace")).arg(&program);
    let output = record.output().expect("the program can be run");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let trace = traces.only();
    let ui = perfetto_ui();
    let (trace, ui) = trace.to_str().zip(ui.to_str()).expect("UTF-8");
    let (_running, address) = view(&[trace, "--ui", ui]);
    let steps = "select slice.name, ts from slice join track on track_id = track.id
        where track.name = 'time steps' order by ts";
    let results = open_address(&address, &[steps]).sound();
    let names: Vec<&str> = results[0].iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names.len(), 10, "{names:?}");
    for (name, number) in names.iter().zip(1..) {
        let is_it = *name == format!("step {number}") || name.starts_with(&format!("step {number}: "));
        assert!(is_it, "{names:?}");
    }
    let pinned = results[1][0]["pinned"].as_str().expect("names");
    assert!(pinned.starts_with("time steps"), "{pinned}");
}
