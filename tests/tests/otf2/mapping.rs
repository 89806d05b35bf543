//! The content of an archive equals what Perfetto shows and what `dump` counts, by the table in docs/otf2.md.

use std::collections::BTreeMap;
use std::path::Path;

use omptrace_tests::otf2::{events, number, rows, text};
use omptrace_tests::trace::{count, dump};
use omptrace_tests::viewers::query;
use omptrace_timeline::model::split_place;
use serde_json::Value;

use crate::{PROGRAMS, archive, traced};

/// Thread or queue, begin, end, name with details; how often.
type Intervals = BTreeMap<(String, u64, u64, String), u32>;

#[test]
fn archives_report_what_perfetto_reports() {
    for program in PROGRAMS {
        let traced = traced(program);
        let pftrace = traced.convert("perfetto", "a.pftrace", &[]);
        let answer = events(&archive(&traced, &[]));
        let (expected, parallel) = of_perfetto(&pftrace);
        let found = of_otf2(&answer);
        assert!(expected.len() > 50, "{program:?}: {}", expected.len());
        let difference = |left: &Intervals, right: &Intervals| {
            let missing = left.iter().find(|(interval, count)| right.get(interval) != Some(count));
            missing.map(|(interval, count)| format!("{interval:?} {count}"))
        };
        assert_eq!(difference(&expected, &found), None, "{program:?}: of Perfetto only");
        assert_eq!(difference(&found, &expected), None, "{program:?}: of OTF2 only");

        let mut forks: Vec<(String, u64, u64)> =
            rows(&answer["forks"]).map(|row| (text(&row[0]), number(&row[1]), number(&row[2]))).collect();
        forks.sort();
        assert_eq!(forks, parallel, "{program:?}: parallel regions");

        let raw = dump(traced.trace());
        let counts = &answer["counts"];
        let records = |name: &str| counts[name].as_u64().unwrap_or(0) as usize;
        let created = raw.iter().filter(|event| is_explicit_task(event)).count();
        assert_eq!(records("ThreadTaskCreate"), created, "{program:?}: tasks");
        assert_eq!(records("ThreadTaskComplete"), created, "{program:?}: tasks");
        let acquired = count(&raw, "mutex_acquired");
        assert_eq!(records("ThreadAcquireLock"), acquired, "{program:?}: locks");
        assert_eq!(records("ThreadReleaseLock"), acquired, "{program:?}: locks");
        let members = parallel.len();
        assert!(records("ThreadTeamBegin") >= members, "{program:?}: teams");
        assert_eq!(records("ThreadTeamBegin"), records("ThreadTeamEnd"), "{program:?}: teams");
        let transfers = raw.iter().filter(|event| is_end_of_transfer(event)).count();
        assert_eq!(records("RmaGet") + records("RmaPut"), transfers, "{program:?}: transfers");
        let kernels = |event: &&Value| event["event"] == "target_submit_emi" && event["endpoint"] == "end";
        let kernels = raw.iter().filter(kernels).count();
        let executed = rows(&answer["intervals"])
            .filter(|row| text(&row[3]).starts_with("!$omp target (kernel execution)"));
        assert_eq!(executed.count(), kernels, "{program:?}: kernels");
    }
}

fn is_explicit_task(event: &Value) -> bool {
    let flags = event["flags"].to_string();
    event["event"] == "task_create" && !flags.contains("initial")
}

fn is_end_of_transfer(event: &Value) -> bool {
    let kind = event["optype"].to_string();
    event["event"] == "target_data_op_emi" && event["endpoint"] == "end" && kind.contains("transfer")
}

/// A name, and behind it all details in the order of their names.
fn detailed(name: &str, details: impl IntoIterator<Item = (String, String)>) -> String {
    let mut details: Vec<String> =
        details.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    details.sort();
    format!("{name} [{}]", details.join(" "))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// All intervals of an archive that Perfetto shows, too.
fn of_otf2(answer: &Value) -> Intervals {
    let roots: Vec<&str> =
        answer["roots"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let mut found = Intervals::new();
    for row in rows(&answer["intervals"]) {
        let name = text(&row[3]);
        // Around all that a thread does; at the begin of a flow; at the end of one.
        let is_root = roots.contains(&&name[..]) && !name.starts_with("omptrace ");
        if is_root || name.starts_with("!$omp create task") || name == "task_dependence" {
            continue;
        }
        let attributes = row[4].as_object().expect("attributes");
        let attributes = attributes.iter().map(|(name, value)| (name.clone(), plain(value)));
        // Perfetto's track says that it is OpenMP's.
        let name = detailed(name.strip_prefix("!$omp ").unwrap_or(&name), attributes);
        let interval = (text(&row[0]), number(&row[1]), number(&row[2]), name);
        *found.entry(interval).or_default() += 1;
    }
    for row in rows(&answer["transfers"]) {
        let name = format!("{} {}", text(&row[3]), number(&row[4]));
        let interval = (text(&row[0]), number(&row[1]), number(&row[2]), name);
        *found.entry(interval).or_default() += 1;
    }
    found
}

/// A slice of Perfetto's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    track: String,
    begin: u64,
    end: u64,
    name: String,
    details: Vec<(String, String)>,
}

/// The slices and instants of threads and of queues of devices.
fn slices(pftrace: &Path) -> Vec<Slice> {
    let slices = "select coalesce(thread.name, track.name) as track, s.ts as begin, s.ts + s.dur as end, s.name, \
                  s.arg_set_id as details from slice s join track on s.track_id = track.id \
                  left join thread_track on s.track_id = thread_track.id left join thread using (utid) \
                  where thread.name is not null or track.name glob 'device ? *' \
                  or track.name glob 'hidden helper *' order by s.id";
    let details = "select arg_set_id as details, substr(flat_key, 7) as name, \
                   coalesce(string_value, cast(int_value as text)) as value from args where flat_key glob 'debug.*'";
    let results = query(pftrace, &[slices, details]);
    let mut details: BTreeMap<u64, Vec<(String, String)>> = BTreeMap::new();
    for row in &results[1] {
        let detail = (text(&row["name"]), text(&row["value"]));
        details.entry(number(&row["details"])).or_default().push(detail);
    }
    let slice = |row: &serde_json::Map<String, Value>| Slice {
        track: text(&row["track"]),
        begin: number(&row["begin"]),
        end: number(&row["end"]),
        name: text(&row["name"]),
        details: row["details"].as_u64().and_then(|set| details.get(&set).cloned()).unwrap_or_default(),
    };
    let mut slices: Vec<Slice> = results[0].iter().map(slice).collect();
    slices.sort();
    slices
}

/// The intervals that Perfetto shows, named as docs/otf2.md says, and the parallel regions.
fn of_perfetto(pftrace: &Path) -> (Intervals, Vec<(String, u64, u64)>) {
    let slices = slices(pftrace);
    let mut expected = Intervals::new();
    let mut parallel = Vec::new();
    for slice in &slices {
        let (construct, place) = split_place(&slice.name);
        let interval = |end: u64, name: String| (slice.track.clone(), slice.begin, end, name);
        if slice.track.contains(" transfers ") {
            let record = match slice.track.contains(" transfers to ") {
                true => "RmaGet",
                false => "RmaPut",
            };
            let bytes = slice.details.iter().find(|(name, _)| name == "bytes");
            let name = format!("{record} {}", bytes.expect("bytes").1);
            *expected.entry(interval(slice.end, name)).or_default() += 1;
            continue;
        }
        let renamed = match construct {
            // Ends of flows that have no event of their own there.
            "task_create" | "task_dependence" | "mutex_released" | "mutex_acquired" => continue,
            "target_submit" | "target_data_op" => continue,
            "omptrace buffer flush" => continue,
            "parallel" | "teams" => {
                parallel.push((slice.track.clone(), slice.begin, slice.end));
                continue;
            }
            "implicit task" => "parallel",
            "initial task" if !place.is_empty() => "teams",
            "critical" => "critical sblock",
            "ordered" => "ordered sblock",
            "atomic" => "atomic sblock",
            "critical wait" => "critical",
            "ordered wait" => "ordered",
            "atomic wait" => "atomic",
            "dispatch section" => "section",
            kernel if kernel.starts_with("kernel") => "target (kernel execution)",
            other => other,
        };
        // Waiting goes on around the region that is waited for.
        let held = construct.strip_suffix(" wait").and_then(|region| {
            let held = format!("{region}{place}");
            let is_mutex = ["critical", "ordered", "atomic"].contains(&region);
            let is_it = |other: &&Slice| {
                is_mutex && other.track == slice.track && other.begin == slice.end && other.name == held
            };
            slices.iter().find(is_it).map(|held| held.end)
        });
        let name = detailed(&format!("{renamed}{place}"), slice.details.clone());
        *expected.entry(interval(held.unwrap_or(slice.end), name)).or_default() += 1;
    }
    parallel.sort();
    (expected, parallel)
}
