//! Answers for programs, and commands that compare them.

use std::fs;
use std::path::{Path, PathBuf};

use omptrace_analysis::ProcessStats;
use omptrace_analysis::Stats;
use omptrace_analysis::answers::{Answers, Blame, Cause, Place, RegionAnswer, SCHEMA};
use serde_json::Value;

use crate::support::{Said, folder, omptrace, run};
use crate::traces::folder_with_trace;

/// Writes what `stats --json` prints of a run on this many threads: `useful` and `imbalance` are milliseconds per thread.
fn write_run(folder: &Path, name: &str, threads: u32, useful: u64, imbalance: u64) {
    let mut answers = Answers {
        schema: SCHEMA,
        threads,
        duration_ns: (useful + imbalance) * 1_000_000,
        ..Answers::default()
    };
    let ns = 1_000_000 * u64::from(threads);
    answers.accounting.add(Cause::Useful, useful * ns);
    answers.accounting.add(Cause::Imbalance, imbalance * ns);
    answers.efficiency.parallel = answers.accounting.share(Cause::Useful);
    answers.regions.push(RegionAnswer {
        place: Place::at("!$omp parallel", Some("/src/a.c"), Some(7), Some("main")),
        visits: 1,
        duration_ns: answers.duration_ns,
        accounting: answers.accounting,
        efficiency: answers.efficiency,
    });
    answers.blame.push(Blame {
        cause: Cause::Imbalance,
        place: answers.regions[0].place.clone(),
        ns: imbalance * ns,
        functions: Vec::new(),
        no_sample_ns: None,
    });
    let stats = Stats { answers, processes: vec![ProcessStats::default()], ..Stats::default() };
    let text = serde_json::to_string(&stats).unwrap();
    fs::write(folder.join(name), text).unwrap();
}

/// A folder with two sets of runs: `b` loses a fifth more by imbalance than `a`.
pub(crate) fn two_sets(test: &str) -> PathBuf {
    let folder = folder(test);
    for (index, noise) in [0, 3, 1, 2, 4].into_iter().enumerate() {
        write_run(&folder, &format!("a{index}.json"), 4, 800 + noise, 200);
        write_run(&folder, &format!("b{index}.json"), 4, 802 - noise, 400 + noise);
    }
    write_run(&folder, "more.json", 8, 400, 400);
    write_run(&folder, "slow.json", 8, 900, 100);
    folder
}

fn said(folder: &Path, words: &str) -> Said {
    run(omptrace(folder).args(words.split_whitespace()))
}

#[track_caller]
fn json(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"))
}

const A: &str = "a0.json a1.json a2.json a3.json a4.json";
const B: &str = "b0.json b1.json b2.json b3.json b4.json";

#[test]
fn diff_shows_what_differs_and_where() {
    let folder = two_sets("diff_shows_what_differs_and_where");
    let text = said(&folder, &format!("diff {A} -- {B}"));
    assert_eq!((text.status, &*text.stderr), (Some(0), ""));
    for words in
        ["5 runs on 4 threads", "significant differences", "\nparallel @a.c:7\n", "  load imbalance "]
    {
        assert!(text.stdout.contains(words), "{}", text.stdout);
    }
    let equal = said(&folder, &format!("diff {A} -- {A}"));
    assert!(equal.stdout.contains("\nno significant difference; "), "{}", equal.stdout);

    let answer = json(&said(&folder, &format!("diff --json {A} -- {B}")));
    let rows = answer["rows"].as_array().unwrap();
    let imbalance = rows.iter().find(|row| row["metric"] == "imbalance").unwrap();
    assert_eq!((&imbalance["is_different"], &imbalance["region"]), (&true.into(), &Value::Null));
    assert_eq!(imbalance["difference"], 202_000_000.0);
    let slower = said(&folder, "diff a0.json slow.json").stdout.replace('\n', " ");
    let words = "useful time of all threads grows most in parallel @a.c:7, from 3.20 s to 7.20 s";
    assert!(slower.contains(words), "{slower}");
    assert!(!text.stdout.contains("useful time of all threads"), "{}", text.stdout);
    let md = said(&folder, &format!("diff --md {A} -- {B}"));
    assert!(md.stdout.contains("| before | after |"), "{}", md.stdout);
}

#[test]
fn diff_fails_on_conditions() {
    let folder = two_sets("diff_fails_on_conditions");
    let both = "--fail-on parallel_efficiency<-3%,duration>5%";
    let worse = said(&folder, &format!("diff {both} {A} -- {B}"));
    assert_eq!(worse.status, Some(1), "{worse:?}");
    assert!(worse.stdout.contains("failed: parallel_efficiency<-3%: -13."), "{}", worse.stdout);
    assert_eq!(said(&folder, &format!("diff {both} {B} -- {A}")).status, Some(0));
    assert_eq!(said(&folder, &format!("diff {both} {A} -- {A}")).status, Some(0));
    // Single runs, without `--`.
    assert_eq!(said(&folder, &format!("diff {both} a0.json b0.json")).status, Some(1));
    let answer = json(&said(&folder, &format!("diff --select failed.condition {both} {A} -- {B}")));
    assert_eq!(answer, serde_json::json!(["parallel_efficiency<-3%", "duration>5%"]));
}

#[test]
fn diff_fails_on_conditions_at_places() {
    let folder = two_sets("diff_fails_on_conditions_at_places");
    let condition = "--fail-on duration@src/a.c:7>5%,imbalance@main>5%,parallel_efficiency@main<-3%";
    let worse = said(&folder, &format!("diff {condition} {A} -- {B}"));
    assert_eq!(worse.status, Some(1), "{worse:?}");
    for words in
        ["duration@src/a.c:7>5%: +20.", "imbalance@main>5%: +20.", "parallel_efficiency@main<-3%: -13."]
    {
        assert!(worse.stdout.contains(&format!("failed: {words}")), "{}", worse.stdout);
    }
    for sets in [format!("{B} -- {A}"), format!("{A} -- {A}")] {
        assert_eq!(said(&folder, &format!("diff {condition} {sets}")).status, Some(0));
    }
    for (place, nearest) in
        [("a.c:9", "the nearest are a.c:7 in main"), ("mian", "a.c:7 in main"), ("7", "a.c:7 in main")]
    {
        let unknown = said(&folder, &format!("diff --fail-on duration@{place}>5% {A} -- {B}"));
        assert_eq!((unknown.status, &*unknown.stdout), (Some(2), ""), "{unknown:?}");
        let error = format!("these runs have no parallel region at {place}");
        assert!(unknown.stderr.contains(&error) && unknown.stderr.contains(nearest), "{}", unknown.stderr);
    }
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let folder = folder_with_trace("what_cannot_be_compared_is_an_error");
    write_run(&folder, "a.json", 4, 1, 1);
    fs::write(folder.join("other.json"), "{\"a\": 1}").unwrap();
    fs::write(folder.join("newer.json"), "{\"schema\": 1000}").unwrap();
    fs::write(folder.join("damaged.json"), "{\"schema\": 1, \"threads\": 2}").unwrap();
    fs::write(folder.join("broken.json"), "{\"schema\": 1,").unwrap();
    for (words, error) in [
        ("diff a.json", "there is no second set of runs"),
        ("diff a.json a.json a.json", "there is no second set of runs"),
        ("diff a.json none.omptrace", "cannot read none.omptrace"),
        ("diff a.json other.json", "other.json is not the output"),
        ("diff a.json newer.json", "by a newer version of omptrace"),
        ("diff a.json damaged.json", "damaged.json is not the output"),
        ("diff a.json broken.json", "broken.json is not JSON"),
        ("diff a.json -- a.json --md", "the option --md comes after the name of a run"),
        ("diff --fail-on speed>5% a.json a.json", "\"speed\" cannot be compared"),
        ("diff --min-effect x a.json a.json", "write a percentage as 2"),
        ("scaling other.json", "other.json is not the output"),
    ] {
        let said = said(&folder, words);
        assert_eq!(said.status, Some(2), "{words}: {said:?}");
        assert!(said.stderr.contains(error), "{words}: {}", said.stderr);
        assert_eq!(said.stdout, "");
    }
}

#[test]
fn scaling_shows_efficiencies_and_what_grows() {
    let folder = folder("scaling_shows_efficiencies_and_what_grows");
    write_run(&folder, "1.json", 1, 8000, 0);
    write_run(&folder, "2.json", 2, 4000, 200);
    write_run(&folder, "8.json", 8, 1000, 600);
    let text = said(&folder, "scaling 8.json 1.json 2.json");
    assert_eq!((text.status, &*text.stderr), (Some(0), ""));
    let words = text.stdout.replace('\n', " ");
    for part in [
        "from 1 to 8 threads, global efficiency goes from 100.0 % to 62.5 %",
        "imbalance grows by 37.5 percentage points",
    ] {
        assert!(words.contains(part), "{words}");
    }
    write_run(&folder, "slow.json", 8, 2000, 0);
    let slow = said(&folder, "scaling slow.json 1.json").stdout.replace('\n', " ");
    for part in [
        "computation scalability falls most, from 100.0 % to 50.0 %",
        "useful time grows most in parallel @a.c:7, from 8.00 s to 16.0 s",
    ] {
        assert!(slow.contains(part), "{slow}");
    }
    let answer = json(&said(&folder, "scaling 8.json 1.json 2.json --select columns.speed_up"));
    let speed_up = |index: usize| answer[index].as_f64().unwrap();
    assert_eq!((speed_up(0), speed_up(2)), (1.0, 5.0));
    assert!((speed_up(1) - 8.0 / 4.2).abs() < 1e-9);
    let weak = json(&said(&folder, "scaling --weak 8.json 1.json --json"));
    assert_eq!(weak["columns"][1]["speed_up"], 40.0);
    let md = said(&folder, "scaling --md 1.json 8.json");
    assert!(md.stdout.contains("| threads | 1 | 8 |"), "{}", md.stdout);
}

#[test]
fn stats_shows_one_table() {
    let folder = folder_with_trace("stats_shows_one_table");
    for by in ["construct", "region", "thread", "task", "lock", "device", "process", "phase"] {
        let text = said(&folder, &format!("stats made.omptrace --by {by}"));
        assert_eq!(text.status, Some(0), "{text:?}");
        let csv = said(&folder, &format!("stats made.omptrace --by {by} --csv"));
        assert!(csv.stdout.ends_with("\r\n"), "{csv:?}");
        let answer = json(&said(&folder, &format!("stats made.omptrace --by {by} --json")));
        assert_eq!(answer["schema"], SCHEMA);
        assert_eq!(answer.as_object().unwrap().len(), 4, "{answer}");
    }
    let csv = said(&folder, "stats made.omptrace --by process --csv").stdout;
    assert!(csv.starts_with("id,name,pid,") && csv.lines().count() == 2, "{csv}");
    let process = json(&said(&folder, "stats made.omptrace --select processes.0.id"));
    assert_eq!(process, 0);
    let wrong = said(&folder, "stats made.omptrace --select finding");
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.stderr.contains("the fields are schema, threads, "), "{}", wrong.stderr);
}

#[test]
fn stats_are_the_same_for_any_number_of_jobs() {
    let folder = folder_with_trace("stats_are_the_same_for_any_number_of_jobs");
    let historic = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer-export/tests/historic");
    let historic = historic.display();
    let print = |jobs: &str, traces: &str| {
        let words = format!("stats --json --all {jobs} {traces}");
        let said = said(&folder, &words);
        assert_eq!(said.status, Some(0), "{said:?}");
        said.stdout
    };
    let traces = format!("{historic} made.omptrace");
    let one = print("--jobs 1", &traces);
    assert!(one.contains("\"constructs\":[{"), "{one}");
    for jobs in ["--jobs 2", "--jobs 7", ""] {
        assert_eq!(print(jobs, &traces), one, "{jobs}");
    }
    assert_eq!(print("--jobs 3", &format!("made.omptrace {historic}")), one);
    let window = "--window ..1ms --thread 0";
    let of_window = |jobs: &str| print(&format!("{jobs} {window}"), &traces);
    assert_eq!(of_window("--jobs 1"), of_window("--jobs 5"));
}

#[test]
fn what_stats_is_to_select_must_be_there() {
    let folder = folder_with_trace("what_stats_is_to_select_must_be_there");
    for (options, words) in [
        ("--window 1000s..", "the window is empty"),
        ("--phase solve", "the trace has no phase of that name"),
        ("--thread nobody", "no thread named nobody"),
    ] {
        let said = said(&folder, &format!("stats made.omptrace {options}"));
        assert_eq!((said.status, &*said.stdout), (Some(2), ""), "{options}");
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
    let window = said(&folder, "stats made.omptrace --window ..1s --thread 0");
    assert_eq!(window.status, Some(0), "{window:?}");
    assert!(window.stdout.contains("  only of 0 s to 1 s, thread 0\n"), "{window:?}");
}

#[test]
fn json_is_complete_unless_less_is_asked_for() {
    let folder = folder_with_trace("json_is_complete");
    let mut traces = Vec::new();
    for index in 0..300 {
        let name = format!("{index}.omptrace");
        fs::copy(folder.join("made.omptrace"), folder.join(&name)).unwrap();
        traces.push(name);
    }
    let traces = traces.join(" ");
    for command in ["stats --json", "info --json", "check --json"] {
        let answer = said(&folder, &format!("{command} {traces}"));
        // What is wrong with the made trace does not matter here.
        assert!(answer.status < Some(2), "{answer:?}");
        assert!(answer.stdout.len() > 16 << 10, "{command}");
        assert!(!answer.stdout.contains("left_out"), "{command}");
        for all in ["--all", "--limit 0", "--top 0"] {
            let all = said(&folder, &format!("{command} {all} {traces}"));
            assert_eq!(all.stdout, answer.stdout, "{command}");
        }
        let cut = said(&folder, &format!("{command} --max-bytes 12K {traces}"));
        assert!(cut.stdout.len() <= 12_000, "{}", cut.stdout.len());
        assert!(cut.stdout.contains("\"left_out\":"), "{}", cut.stdout);
    }
    // So is text, where it is for no terminal.
    for table in ["stats --full", "stats --md", "stats --by process"] {
        let whole = said(&folder, &format!("{table} {traces}"));
        assert!(whole.stdout.len() > 16 << 10, "{table}: {}", whole.stdout.len());
        assert!(!whole.stdout.contains("tables were shortened; "), "{table}");
        let all = said(&folder, &format!("{table} --all {traces}"));
        assert_eq!(all.stdout, whole.stdout, "{table}");
        let cut = said(&folder, &format!("{table} --max-bytes 12K {traces}"));
        assert!(cut.stdout.len() <= 12_000, "{table}: {}", cut.stdout.len());
        assert!(cut.stdout.contains("\ntables were shortened; "), "{table}: {}", cut.stdout);
        let none = said(&folder, &format!("{table} --max-bytes 20 {traces}"));
        assert_eq!(none.status, Some(2), "{table}");
    }
    let shown = on_a_terminal(&folder, &format!("stats --by process {traces}"));
    assert!(shown.len() <= 17 << 10 && shown.contains("tables were shortened; "), "{shown}");
    let shown = on_a_terminal(&folder, &format!("stats --by process --all {traces}"));
    assert!(shown.len() > 17 << 10 && !shown.contains("tables were shortened; "), "{shown}");
    let check = json(&said(&folder, "check --json made.omptrace"));
    assert_eq!(
        (&check["schema"], check["is_sound"].is_boolean(), &check["input"]),
        (&SCHEMA.into(), true, &"made.omptrace".into())
    );
}

/// What a terminal shows of the command.
fn on_a_terminal(folder: &Path, words: &str) -> String {
    let command = format!("{} {words} 2>/dev/null", env!("CARGO_BIN_EXE_omptrace"));
    // The terminal of util-linux, which Debian cannot be without.
    let mut script = std::process::Command::new("script");
    script.current_dir(folder).env("TERM", "xterm").args(["-qec", &command, "/dev/null"]);
    let said = run(script.stdin(std::process::Stdio::null()));
    assert_eq!(said.status, Some(0), "{said:?}");
    said.stdout
}

/// A region that ends a function has its caller's line. Between two builds, lines move.
#[test]
fn regions_inside_of_lines_are_compared() {
    let folder = two_sets("regions_inside_of_lines_are_compared");
    let moved = |name: &str, edit: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let text = fs::read_to_string(folder.join("a0.json")).unwrap();
        let mut run: Value = serde_json::from_str(&text).unwrap();
        edit(run["regions"][0].as_object_mut().unwrap());
        if !run["regions"][0].as_object().unwrap().contains_key("position") {
            run["schema"] = 1.into();
            run.as_object_mut().unwrap().remove("blame");
            run["blame"] = serde_json::json!([]);
        }
        fs::write(folder.join(name), run.to_string()).unwrap();
    };
    moved("before.json", &|region| {
        region.insert("position".to_owned(), "inside".into());
    });
    moved("after.json", &|region| {
        region.insert("position".to_owned(), "inside".into());
        region.insert("line".to_owned(), 9.into());
    });
    // As schema 1 had it.
    moved("old.json", &|region| {
        region.insert("construct".to_owned(), "!$omp parallel inside @a.c:5".into());
        for field in ["file", "line", "function"] {
            region.insert(field.to_owned(), Value::Null);
        }
        for field in ["is_directive", "position"] {
            region.remove(field);
        }
    });
    let regions = |one: &str, other: &str| {
        let answer = json(&said(&folder, &format!("diff --json {one} {other}")));
        let rows = answer["rows"].as_array().unwrap().clone();
        let rows = rows.into_iter().map(|row| row["region"].clone());
        let mut regions: Vec<Value> = rows.filter(|region| !region.is_null()).collect();
        regions.dedup();
        regions
    };
    for before in ["before.json", "old.json"] {
        let found = regions(before, "after.json");
        let [region] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (&region["after"]["line"], &region["after"]["position"]),
            (&9.into(), &"inside".into()),
            "{region}"
        );
        assert_eq!(region["before"]["construct"], "parallel", "{region}");
    }
    // A construct that is at a line is another one.
    assert_eq!(regions("a0.json", "after.json").len(), 2);
    let text = said(&folder, "diff --all before.json after.json").stdout;
    assert!(text.contains("parallel inside @a.c:7"), "{text}");
}
