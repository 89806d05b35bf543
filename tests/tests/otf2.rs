//! OTF2 archives of real programs, read by the reference library and its Python modules, and judged by ourselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{debian_python, otf2_module, otf2_print, python, root};
use omptrace_tests::trace::{Traced, count, dump, omptrace};
use omptrace_tests::viewers::query;
use serde_json::Value;

/// What is traced, and how large.
const PROGRAMS: [(&str, &[&str]); 8] = [
    ("examples/stencil.c", &["400", "20"]),
    ("examples/task_tree.c", &["9", "4"]),
    ("examples/lock_fight.c", &["2000"]),
    ("examples/nested.c", &["480", "20"]),
    ("tests/programs/nearly_everything.c", &["2", "20"]),
    ("tests/programs/control_tool.c", &["2", "20"]),
    ("tests/programs/structure.c", &[]),
    ("tests/programs/nested.c", &["2", "2", "10"]),
];

/// The anchor of an archive of the trace.
fn archive(traced: &Traced, options: &[&str]) -> PathBuf {
    traced
        .convert("otf2", "archive", options)
        .join("traces.otf2")
}

/// Runs a reader; it must have nothing to say on stderr. Gives its stdout.
#[track_caller]
fn reads(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("the reader can be run");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}");
    assert_eq!(words, "", "{command:?}");
    output.stdout
}

/// What PyPI's module reads.
fn events(anchor: &Path) -> Value {
    let script = root().join("tests/tools/otf2_events.py");
    let mut command = Command::new(python());
    command
        .env("PYTHONPATH", otf2_module())
        .arg(script)
        .arg(anchor);
    serde_json::from_slice(&reads(&mut command)).expect("JSON")
}

#[test]
fn every_reader_reads_without_a_word() {
    for (source, arguments) in PROGRAMS {
        let traced = Traced::program(source, arguments);
        let anchor = archive(&traced, &[]);
        reads(Command::new(otf2_print()).arg(&anchor));
        reads(Command::new(otf2_print()).arg("-G").arg(&anchor));
        let newest = events(&anchor);
        let anchor = archive(&traced, &["--otf2-enums", "3.0"]);
        let script = root().join("tests/tools/otf2_events.py");
        let oldest = reads(Command::new(debian_python()).arg(script).arg(&anchor));
        let oldest: Value = serde_json::from_slice(&oldest).expect("JSON");
        assert_eq!(oldest["intervals"], newest["intervals"], "{source}");
        let sound = omptrace([Path::new("check"), &anchor]);
        assert!(sound.status.success(), "{source}: {sound:?}");
    }
}

/// Thread, begin, end, name; how often.
type Intervals = BTreeMap<(String, u64, u64, String), u32>;

#[test]
fn archives_tell_what_perfetto_tells() {
    for (source, arguments) in PROGRAMS {
        let traced = Traced::program(source, arguments);
        let pftrace = traced.convert("perfetto", "a.pftrace", &[]);
        let answer = events(&archive(&traced, &[]));
        let (expected, parallel) = of_perfetto(&pftrace);
        let found = of_otf2(&answer);
        assert!(expected.len() > 50, "{source}: {}", expected.len());
        let difference = |left: &Intervals, right: &Intervals| {
            let missing = left
                .iter()
                .find(|(interval, count)| right.get(interval) != Some(count));
            missing.map(|(interval, count)| format!("{interval:?} {count}"))
        };
        assert_eq!(
            difference(&expected, &found),
            None,
            "{source}: of Perfetto only"
        );
        assert_eq!(
            difference(&found, &expected),
            None,
            "{source}: of OTF2 only"
        );

        let mut forks: Vec<(String, u64, u64)> = rows(&answer["forks"])
            .map(|row| (text(&row[0]), number(&row[1]), number(&row[2])))
            .collect();
        forks.sort();
        assert_eq!(forks, parallel, "{source}: parallel regions");

        let raw = dump(traced.trace());
        let counts = &answer["counts"];
        let told = |name: &str| counts[name].as_u64().unwrap_or(0) as usize;
        let created = raw.iter().filter(|event| is_explicit_task(event)).count();
        assert_eq!(told("ThreadTaskCreate"), created, "{source}: tasks");
        assert_eq!(told("ThreadTaskComplete"), created, "{source}: tasks");
        let acquired = count(&raw, "mutex_acquired");
        assert_eq!(told("ThreadAcquireLock"), acquired, "{source}: locks");
        assert_eq!(told("ThreadReleaseLock"), acquired, "{source}: locks");
        let members = parallel.len();
        assert!(told("ThreadTeamBegin") >= members, "{source}: teams");
        assert_eq!(
            told("ThreadTeamBegin"),
            told("ThreadTeamEnd"),
            "{source}: teams"
        );
    }
}

fn is_explicit_task(event: &Value) -> bool {
    let flags = event["flags"].to_string();
    event["event"] == "task_create" && !flags.contains("initial")
}

fn rows(list: &Value) -> impl Iterator<Item = &Vec<Value>> {
    let rows = list.as_array().expect("a list");
    rows.iter().map(|row| row.as_array().expect("a row"))
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// All intervals of an archive that Perfetto shows, too.
fn of_otf2(answer: &Value) -> Intervals {
    let roots: Vec<&str> = answer["roots"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut found = Intervals::new();
    for row in rows(&answer["intervals"]) {
        let name = text(&row[3]);
        // Around all that a thread does; at the begin of a flow; at the end of one.
        let is_root = roots.contains(&&name[..]) && !name.starts_with("omptrace ");
        if is_root || name.starts_with("!$omp create task") || name == "task_dependence" {
            continue;
        }
        let interval = (text(&row[0]), number(&row[1]), number(&row[2]), name);
        *found.entry(interval).or_default() += 1;
    }
    found
}

/// The slices and instants of Perfetto's threads, named as docs/otf2.md says, and the parallel regions.
fn of_perfetto(pftrace: &Path) -> (Intervals, Vec<(String, u64, u64)>) {
    let slices = "select t.name as track, s.ts as begin, s.ts + s.dur as end, s.name from slice s \
                  join thread_track tt on s.track_id = tt.id join thread t using (utid) order by s.id";
    let results = query(pftrace, &[slices]);
    let mut slices: Vec<(String, u64, u64, String)> = results[0]
        .iter()
        .map(|row| {
            let (begin, end) = (number(&row["begin"]), number(&row["end"]));
            (text(&row["track"]), begin, end, text(&row["name"]))
        })
        .collect();
    slices.sort();
    let mut expected = Intervals::new();
    let mut parallel = Vec::new();
    for (track, begin, end, name) in &slices {
        let (construct, place) = match name.find(" @") {
            Some(place) => name.split_at(place),
            None => (&name[..], ""),
        };
        let renamed = match construct {
            // Ends of flows that have no event of their own there.
            "task_create" | "task_dependence" | "mutex_release" => continue,
            "omptrace buffer flush" => continue,
            "!$omp parallel" | "!$omp teams" => {
                parallel.push((track.clone(), *begin, *end));
                continue;
            }
            "!$omp implicit task" => "!$omp parallel",
            "initial task" if !place.is_empty() => "!$omp teams",
            "!$omp critical" => "!$omp critical sblock",
            "!$omp ordered" => "!$omp ordered sblock",
            "!$omp atomic" => "!$omp atomic sblock",
            "!$omp critical wait" => "!$omp critical",
            "!$omp ordered wait" => "!$omp ordered",
            "!$omp atomic wait" => "!$omp atomic",
            "dispatch section" => "!$omp section",
            other => other,
        };
        // Waiting goes on around the region that is waited for.
        let held = construct.strip_suffix(" wait").and_then(|region| {
            let held = format!("{region}{place}");
            let is_mutex = ["!$omp critical", "!$omp ordered", "!$omp atomic"].contains(&region);
            let is_it = |slice: &&(String, u64, u64, String)| {
                is_mutex && slice.0 == *track && slice.1 == *end && slice.3 == held
            };
            slices.iter().find(is_it).map(|held| held.2)
        });
        let end = held.unwrap_or(*end);
        let interval = (track.clone(), *begin, end, format!("{renamed}{place}"));
        *expected.entry(interval).or_default() += 1;
    }
    parallel.sort();
    (expected, parallel)
}

/// Scalasca executes a barrier wherever the threads of a team enter one, so all must do so in the same order. It knows
/// constructs by their names.
#[test]
fn members_of_a_team_enter_the_same_regions_and_barriers() {
    let traced = Traced::program("examples/stencil.c", &["400", "20"]);
    let answer = events(&archive(&traced, &[]));
    let mut entered: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for row in rows(&answer["intervals"]) {
        let name = text(&row[3]);
        let construct = name.split(" @").next().unwrap_or_default();
        if ["!$omp parallel", "!$omp barrier", "!$omp implicit barrier"].contains(&construct) {
            let of_thread = entered.entry(text(&row[0])).or_default();
            of_thread.push((number(&row[1]), name));
        }
    }
    let mut sequences = entered.into_values().map(|mut entered| {
        entered.sort();
        entered
            .into_iter()
            .map(|(_, name)| name)
            .collect::<Vec<_>>()
    });
    let main = sequences.next().expect("the main thread");
    assert!(main.len() > 40, "{}", main.len());
    let worker = sequences.next().expect("a worker");
    assert_eq!(main, worker);
}

#[test]
fn acquisitions_of_a_lock_count_up_from_1() {
    let traced = Traced::program("examples/lock_fight.c", &["2000"]);
    let answer = events(&archive(&traced, &[]));
    let mut orders: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for row in rows(&answer["locks"]) {
        orders
            .entry(number(&row[2]))
            .or_default()
            .push(number(&row[3]));
    }
    assert!(!orders.is_empty());
    for mut orders in orders.into_values() {
        orders.sort_unstable();
        let expected: Vec<u64> = (1..=orders.len() as u64).collect();
        assert_eq!(orders, expected, "without gaps");
    }
}

#[test]
fn an_archive_replaces_an_archive_and_nothing_else() {
    let traced = Traced::program("examples/nested.c", &["100", "2"]);
    let first = archive(&traced, &[]);
    let second = archive(&traced, &[]);
    assert_eq!(first, second);
    let folder = second.parent().expect("a folder");
    std::fs::write(folder.join("notes.txt"), "mine").expect("written");
    let words = ["convert", "--to", "otf2", "-o"].map(Path::new);
    let output = omptrace(words.into_iter().chain([folder, traced.trace()]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(second.exists() && folder.join("notes.txt").exists());
}
