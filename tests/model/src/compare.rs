//! Compares what `stats --json` says with what is true.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use crate::callback::Callback;
use crate::case::Case;
use crate::program::{Code, Kind, MutexKind, Ns, Schedule, Task};
use crate::run::{Activity, Run, team_at};
use crate::simulate::mutex_id;
use crate::truth::accounting::{Interval, Part, accounting, intervals};
use crate::truth::replay::{Change, gain};
use crate::truth::schedule::{bounds, with_threads};
use crate::truth::threads::{field_of, threads};
use crate::truth::{blame, constructs, path};
use crate::write::Dialect;

/// A number that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which number: the path of its field, without its place.
    pub field: String,
    /// Where, if it has a place.
    pub place: Option<Code>,
    /// What is true.
    pub expected: String,
    /// What the answer has.
    pub shown: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let place = self.place.map_or(String::new(), |place| format!(" at {place:#x}"));
        write!(f, "{}{place}: expected {}, shown {}", self.field, self.expected, self.shown)
    }
}

/// Wake-ups and the ends of barriers take nanoseconds that no definition says where they belong.
const SLACK: Ns = 60;

/// The address that a row names. Schema 1 has it in the construct's text, schema 2 in a place of its own.
pub fn place_of(row: &Value) -> Option<Code> {
    fn hexadecimal(text: &str) -> Option<Code> {
        let (_, digits) = text.rsplit_once("0x")?;
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        Code::from_str_radix(&digits[..end], 16).ok()
    }
    fn within(value: &Value) -> Option<Code> {
        match value {
            Value::String(text) => hexadecimal(text),
            Value::Object(fields) => fields.values().find_map(within),
            _ => None,
        }
    }
    ["place", "construct", "function"].iter().find_map(|field| within(&row[field]))
}

struct Comparison {
    differences: Vec<Difference>,
}

impl Comparison {
    fn add(&mut self, field: &str, place: Option<Code>, expected: String, shown: String) {
        self.differences.push(Difference { field: field.to_owned(), place, expected, shown });
    }

    fn same(&mut self, field: &str, place: Option<Code>, expected: Ns, shown: &Value) {
        self.near(field, place, expected, shown, 0);
    }

    fn near(&mut self, field: &str, place: Option<Code>, expected: Ns, shown: &Value, slack: Ns) {
        if shown.as_u64().is_none_or(|shown| shown.abs_diff(expected) > slack) {
            self.add(field, place, expected.to_string(), shown.to_string());
        }
    }
}

fn rows<'v>(shown: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    shown[list].as_array().into_iter().flatten()
}

/// All that differs of a whole run of one process.
pub fn compare(case: &Case, run: &Run, shown: &Value) -> Vec<Difference> {
    let hidden: &[Activity] = match case.dialect {
        Dialect::Llvm => &[],
        Dialect::Libgomp => &[Activity::Reduction],
        Dialect::Llvm9 | Dialect::Llvm6 | Dialect::Tr4 | Dialect::Collector => {
            &[Activity::Reduction, Activity::Target]
        }
    };
    match case.dialect {
        Dialect::Llvm => {}
        Dialect::Collector => return compare_by_idling(&run.without(hidden), shown),
        _ => return compare_seen(&run.without(hidden), shown, case.dialect != Dialect::Tr4),
    }
    let mut comparison = Comparison { differences: vec![] };
    times(run, &Part::whole(run), shown, &mut comparison);
    critical_path(run, shown, &mut comparison);
    regions(run, shown, &mut comparison);
    of_threads(run, shown, &mut comparison);
    of_constructs(run, shown, &mut comparison);
    charged_in_place(run, shown, &mut comparison);
    comparison.same("replay_error_ns", None, 0, &shown["replay_error_ns"]);
    blamed(run, shown, &mut comparison);
    if case.machine.max_wake_up == 0 {
        blocked(run, shown, &mut comparison);
        gains(run, shown, &mut comparison);
        other_threads(case, shown, &mut comparison);
    }
    comparison.differences
}

/// What differs where a runtime does not report all: what needs the places of constructs is left out, but regions where they have some.
fn compare_seen(run: &Run, shown: &Value, has_places: bool) -> Vec<Difference> {
    let mut comparison = Comparison { differences: vec![] };
    times(run, &Part::whole(run), shown, &mut comparison);
    critical_path(run, shown, &mut comparison);
    if has_places {
        visits(run, shown, &mut comparison);
    } else {
        all_visits(run, shown, true, &mut comparison);
    }
    of_threads(run, shown, &mut comparison);
    comparison.same("replay_error_ns", None, 0, &shown["replay_error_ns"]);
    comparison.differences
}

/// What differs where the runtime reports which threads are idle, and no teams. A worker is idle until it has begun, and when it has left
/// the region's last barrier. Barriers have one cause there, and it is not known who keeps others waiting.
fn compare_by_idling(run: &Run, shown: &Value) -> Vec<Difference> {
    let mut comparison = Comparison { differences: vec![] };
    let truth = accounting(run, &Part::whole(run));
    comparison.same("duration_ns", None, truth.duration, &shown["duration_ns"]);
    for cause in ["critical", "lock", "ordered", "mpi", "mpi_other"] {
        comparison.same(&format!("accounting.{cause}"), None, truth.of(cause), &time_of(shown, cause));
    }
    let intervals = intervals(run);
    let is_busy = |thread: usize, interval: &&Interval| {
        let is_away = interval.cause == "fork" || interval.cause == "join" && interval.construct == 0;
        !interval.cause.is_empty() && (thread == 0 || !is_away)
    };
    let mut changes: BTreeMap<Ns, i64> = BTreeMap::new();
    for (thread, own) in intervals.iter().enumerate() {
        let busy = own.iter().filter(|interval| is_busy(thread, interval));
        for interval in busy.clone().filter(|interval| interval.begin < interval.end) {
            *changes.entry(interval.begin).or_default() += 1;
            *changes.entry(interval.end).or_default() -= 1;
        }
        let in_regions = busy.filter(|interval| team_at(run, thread, interval.begin) != 0);
        let mut times: BTreeMap<&str, Ns> = BTreeMap::new();
        for interval in in_regions {
            let ns = interval.end - interval.begin;
            *times.entry("parallel_ns").or_default() += ns;
            let field = match field_of(interval.cause) {
                "wake_up_ns" => "working_ns",
                field => field,
            };
            *times.entry(field).or_default() += ns;
        }
        let of_thread = rows(shown, "per_thread").find(|row| row["tid"].as_u64() == Some(10 + thread as u64));
        for field in ["parallel_ns", "working_ns", "barriers_ns", "locks_ns"] {
            let expected = times.get(field).copied().unwrap_or(0);
            let shown = of_thread.map_or(&Value::Null, |row| &row[field]);
            comparison.same(&format!("per_thread.{field}"), None, expected, shown);
        }
    }
    let (mut now, mut most) = (0, 1);
    for change in changes.values() {
        now += change;
        most = most.max(now);
    }
    comparison.same("threads", None, most as u64, &shown["threads"]);
    // The initial thread alone is in a call where no region is open.
    let idle_in_mpi = truth.of("idle_in_mpi") / (truth.threads - 1).max(1) * (most as u64 - 1);
    comparison.same("accounting.idle_in_mpi", None, idle_in_mpi, &time_of(shown, "idle_in_mpi"));
    let at_barriers = intervals.iter().enumerate().flat_map(|(thread, own)| {
        let waits =
            |interval: &&Interval| is_busy(thread, interval) && field_of(interval.cause) == "barriers_ns";
        own.iter().filter(waits).collect::<Vec<_>>()
    });
    let at_barriers = at_barriers.map(|wait| wait.end - wait.begin).sum();
    comparison.same("accounting.barrier", None, at_barriers, &shown["accounting"]["barrier_ns"]);
    // Behind the last event, nothing is known.
    let calls = run.callbacks.iter().filter(|(.., callback)| matches!(callback, Callback::Call { .. }));
    let ends = run.teams.iter().skip(1).map(|team| team.end);
    let last = ends.chain(calls.map(|(time, ..)| *time)).max().unwrap_or(0);
    let works = intervals.iter().enumerate().flat_map(|(thread, own)| {
        let works = |interval: &&Interval| {
            is_busy(thread, interval)
                && matches!(field_of(interval.cause), "working_ns" | "wake_up_ns")
                && !matches!(interval.cause, "mpi" | "mpi_other")
        };
        own.iter().filter(works).collect::<Vec<_>>()
    });
    let works = works.map(|work| work.end.min(last).saturating_sub(work.begin)).sum();
    comparison.same("accounting.useful", None, works, &shown["accounting"]["useful_ns"]);
    all_visits(run, shown, false, &mut comparison);
    comparison.differences
}

/// The time of a cause in `accounting`. Causes that are about MPI are left out where they have none.
fn time_of(shown: &Value, cause: &str) -> Value {
    let is_rare = matches!(cause, "mpi" | "mpi_other" | "idle_in_mpi");
    match &shown["accounting"][format!("{cause}_ns")] {
        Value::Null if is_rare => 0.into(),
        shown => shown.clone(),
    }
}

/// What differs of a part of a run: N, T, and the causes.
pub fn compare_part(run: &Run, part: &Part, shown: &Value) -> Vec<Difference> {
    let mut comparison = Comparison { differences: vec![] };
    times(run, part, shown, &mut comparison);
    comparison.differences
}

fn times(run: &Run, part: &Part, shown: &Value, comparison: &mut Comparison) {
    let truth = accounting(run, part);
    comparison.same("threads", None, truth.threads, &shown["threads"]);
    comparison.same("duration_ns", None, truth.duration, &shown["duration_ns"]);
    for (name, value) in shown["accounting"].as_object().into_iter().flatten() {
        let Some(cause) = name.strip_suffix("_ns").filter(|cause| *cause != "total") else {
            continue;
        };
        // The moment at which the last task has ended and the barrier is over.
        let slack = if matches!(cause, "join" | "barrier") { 3 } else { 0 };
        comparison.near(&format!("accounting.{cause}"), None, truth.of(cause), value, slack);
    }
    for (cause, expected) in &truth.causes {
        if time_of(shown, cause).is_null() || time_of(shown, cause) == 0 && *expected > 3 {
            comparison.add(&format!("accounting.{cause}"), None, expected.to_string(), "none".to_owned());
        }
    }
    let total = &shown["accounting"]["total_ns"];
    comparison.same("accounting.total_ns", None, truth.threads * truth.duration, total);
    // Efficiencies follow from these sums.
    if !part.threads.is_empty() || !comparison.differences.is_empty() {
        return;
    }
    let useful = truth.of("useful") as f64;
    let (threads, duration, largest) = (truth.threads as f64, truth.duration as f64, truth.largest() as f64);
    let mut shares = vec![
        ("parallel", useful / (threads * duration)),
        ("load_balance", useful / threads / largest),
        ("communication", largest / duration),
    ];
    if part.window == (0, run.end) {
        let path = shown["critical_path"]["useful_ns"].as_f64().unwrap_or(0.0);
        shares.extend([("serialisation", largest / path), ("transfer", path / duration)]);
    }
    for (name, expected) in shares {
        let share = shown["efficiency"][name].as_f64().unwrap_or(f64::NAN);
        if expected.is_finite() && (share.is_nan() || (share - expected).abs() >= 1e-4) {
            comparison.add(
                &format!("efficiency.{name}"),
                None,
                format!("{expected:.4}"),
                format!("{share:.4}"),
            );
        }
    }
}

fn critical_path(run: &Run, shown: &Value, comparison: &mut Comparison) {
    let shown = &shown["critical_path"];
    comparison.same("critical_path.useful_ns", None, path::critical_path(run), &shown["useful_ns"]);
}

fn visits(run: &Run, shown: &Value, comparison: &mut Comparison) {
    let truth = path::regions(run);
    let mut seen = BTreeSet::new();
    for row in rows(shown, "regions") {
        let place = place_of(row);
        let Some(region) = place.and_then(|place| truth.get(&place)) else {
            comparison.add("regions", place, "no such region".to_owned(), "one".to_owned());
            continue;
        };
        seen.extend(place);
        comparison.same("regions.visits", place, region.visits, &row["visits"]);
        comparison.same("regions.duration_ns", place, region.duration, &row["duration_ns"]);
        comparison.same("regions.useful_ns", place, region.useful, &row["accounting"]["useful_ns"]);
    }
    for place in truth.keys().filter(|place| !seen.contains(place)) {
        comparison.add("regions", Some(*place), "a region".to_owned(), "none".to_owned());
    }
}

/// Regions without places: all together.
fn all_visits(run: &Run, shown: &Value, has_work: bool, comparison: &mut Comparison) {
    let truth = path::regions(run);
    let sum = |of: fn(&path::Region) -> Ns| truth.values().map(of).sum::<Ns>();
    let all = |field: &str| rows(shown, "regions").map(|row| row[field].as_u64().unwrap_or(0)).sum::<Ns>();
    comparison.same("regions.visits", None, sum(|region| region.visits), &all("visits").into());
    comparison.same("regions.duration_ns", None, sum(|region| region.duration), &all("duration_ns").into());
    if has_work {
        let useful = rows(shown, "regions").map(|row| row["accounting"]["useful_ns"].as_u64().unwrap_or(0));
        comparison.same("regions.useful_ns", None, sum(|region| region.useful), &useful.sum::<Ns>().into());
    }
}

fn regions(run: &Run, shown: &Value, comparison: &mut Comparison) {
    visits(run, shown, comparison);
    let truth = path::regions(run);
    let mut with_tasks = BTreeSet::new();
    for row in rows(shown, "task_regions") {
        let place = place_of(row);
        let Some(region) = place.and_then(|place| truth.get(&place)) else {
            comparison.add("task_regions", place, "an outermost region".to_owned(), "another".to_owned());
            continue;
        };
        with_tasks.extend(place);
        comparison.same("task_regions.tasks", place, region.tasks, &row["tasks"]);
        comparison.same("task_regions.work_ns", place, region.work, &row["work_ns"]);
        // What is scheduled has no regions inside.
        let is_unknown = row["span_ns"].is_null() && row["span_reason"].is_string();
        if !(is_unknown && has_regions_inside(run)) {
            comparison.same("task_regions.span_ns", place, region.span, &row["span_ns"]);
        }
    }
    for (place, region) in &truth {
        if region.tasks > 0 && region.work > 0 && !with_tasks.contains(place) {
            comparison.add(
                "task_regions",
                Some(*place),
                format!("{} tasks", region.tasks),
                "no row".to_owned(),
            );
        }
    }
}

fn has_regions_inside(run: &Run) -> bool {
    (1..run.teams.len()).any(|team| run.outermost(team) != team)
}

fn blamed(run: &Run, shown: &Value, comparison: &mut Comparison) {
    let truth = blame::blame(run);
    let mut blamed: BTreeMap<(String, Code), f64> = BTreeMap::new();
    for row in rows(shown, "blame") {
        let cause = row["cause"].as_str().unwrap_or_default().to_owned();
        let place = place_of(row).unwrap_or(0);
        *blamed.entry((cause, place)).or_default() += row["ns"].as_f64().unwrap_or(0.0);
    }
    for cause in ["imbalance", "task_starvation", "task_wait", "critical", "lock", "ordered"] {
        let places = blamed.keys().filter(|(of, _)| of == cause).map(|(_, place)| *place);
        let places: BTreeSet<Code> =
            places.chain(truth.keys().filter(|(of, _)| *of == cause).map(|(_, place)| *place)).collect();
        for place in places {
            let expected = truth.get(&(cause, place)).copied().unwrap_or(0.0);
            let shown = blamed.get(&(cause.to_owned(), place)).copied().unwrap_or(0.0);
            if (expected - shown).abs() > SLACK as f64 + 0.01 * expected {
                comparison.add(
                    &format!("blame.{cause}"),
                    Some(place),
                    format!("{expected:.0}"),
                    format!("{shown:.0}"),
                );
            }
        }
    }
}

/// What is charged where it arises.
fn charged_in_place(run: &Run, shown: &Value, comparison: &mut Comparison) {
    let truth = blame::at_places(run);
    let mut blamed: BTreeMap<(&str, Code), f64> = BTreeMap::new();
    for row in rows(shown, "blame") {
        let place = place_of(row).unwrap_or(0);
        let is_after = row["construct"].as_str().is_some_and(|name| name.contains(" after "));
        let cause = match row["cause"].as_str().unwrap_or_default() {
            "serial" if is_after || place == 0 => "serial after",
            "serial" => "serial before",
            cause => cause,
        };
        *blamed.entry((cause, place)).or_default() += row["ns"].as_f64().unwrap_or(0.0);
    }
    let all =
        ["serial before", "serial after", "narrow_team", "fork", "join", "barrier", "reduction", "target"];
    for cause in all.into_iter().chain(["mpi", "mpi_other", "idle_in_mpi"]) {
        // The moment at which the last task has ended and the barrier is over.
        let slack = if matches!(cause, "join" | "barrier") { 3.0 } else { 0.0 };
        let keys = blamed.keys().chain(truth.keys()).filter(|(of, _)| *of == cause);
        let places: BTreeSet<Code> = keys.map(|(_, place)| *place).collect();
        for place in places {
            let expected = truth.get(&(cause, place)).copied().unwrap_or(0.0);
            let shown = blamed.get(&(cause, place)).copied().unwrap_or(0.0);
            if (expected - shown).abs() > slack {
                let field = format!("blame.{cause}");
                comparison.add(&field, Some(place), format!("{expected:.0}"), format!("{shown:.0}"));
            }
        }
    }
}

/// The model's numbers of threads by their names in the answer.
fn thread_names(shown: &Value) -> BTreeMap<String, usize> {
    let name = |row: &Value| Some((row["name"].as_str()?.to_owned(), (row["tid"].as_u64()? - 10) as usize));
    rows(shown, "per_thread").filter_map(name).collect()
}

fn blocked(run: &Run, shown: &Value, comparison: &mut Comparison) {
    let names = thread_names(shown);
    let mut found: BTreeMap<blame::Blocked, Ns> = BTreeMap::new();
    for row in rows(shown, "blocked") {
        let thread = |field: &str| row[field].as_str().and_then(|name| names.get(name)).copied();
        let place = |field: &str| place_of(&serde_json::json!({ "place": row[field] }));
        let lock = row["lock"].as_str().and_then(|name| name.rsplit_once("0x"));
        let id = lock.and_then(|(_, digits)| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
        let kinds = [MutexKind::Critical, MutexKind::Lock, MutexKind::NestLock, MutexKind::Ordered];
        let kind = kinds.into_iter().rfind(|kind| mutex_id(*kind, 0) <= id).unwrap_or(MutexKind::Critical);
        let holder = thread("holder_thread").zip(place("holder"));
        let waiter = (thread("waiter_thread").unwrap_or(usize::MAX), place("waiter").unwrap_or(0));
        let number = id.saturating_sub(mutex_id(kind, 0));
        *found.entry(blame::Blocked { kind, number, holder, waiter }).or_default() +=
            row["ns"].as_u64().unwrap_or(0);
    }
    let truth = blame::blocked(run);
    let keys: BTreeSet<&blame::Blocked> = truth.keys().chain(found.keys()).collect();
    for key in keys {
        let expected = truth.get(key).copied().unwrap_or(0);
        let shown = found.get(key).copied().unwrap_or(0);
        // To wake up takes a nanosecond.
        if expected.abs_diff(shown) > SLACK {
            let of = format!("{key:?}: {expected}");
            comparison.add("blocked", Some(key.waiter.1), of, shown.to_string());
        }
    }
}

fn of_threads(run: &Run, shown: &Value, comparison: &mut Comparison) {
    let truth = threads(run);
    let is_inside = |row: &&Value| row["role"] != "helper" && row["role"] != "other";
    for row in rows(shown, "per_thread").filter(is_inside) {
        let thread = row["tid"].as_u64().unwrap_or(0).wrapping_sub(10) as usize;
        let Some(truth) = truth.get(thread) else {
            comparison.add("per_thread", None, "one of the threads".to_owned(), thread.to_string());
            continue;
        };
        comparison.same("per_thread.duration_ns", None, run.end, &row["duration_ns"]);
        for (field, expected) in truth {
            let slack = if matches!(*field, "barriers_ns" | "taskwaits_ns") { 3 } else { 0 };
            comparison.near(&format!("per_thread.{field}"), None, *expected, &row[field], slack);
        }
    }
}

/// How long the instances of a construct were: the shortest, the longest, the mean and two quantiles. Also what was waited in them, and
/// the chunks of a loop.
fn distribution(
    name: &str,
    place: Code,
    construct: &constructs::Construct,
    row: &Value,
    comparison: &mut Comparison,
) {
    let durations = || construct.durations.iter().copied();
    let numbers = [
        ("min_ns", durations().min().unwrap_or(0)),
        ("max_ns", durations().max().unwrap_or(0)),
        ("mean_ns", construct.total / construct.count.max(1)),
    ];
    for (field, expected) in numbers {
        comparison.same(&format!("constructs.{field} of {name}"), Some(place), expected, &row[field]);
    }
    if durations().max() > Some(0) {
        for (field, percent) in [("median_ns", 50), ("p99_ns", 99)] {
            let expected = construct.quantile(percent);
            let field_of = format!("constructs.{field} of {name}");
            comparison.near(&field_of, Some(place), expected, &row[field], expected / 16 + 1);
        }
    }
    // Of a region, that of its members.
    if name != "parallel" {
        let field = format!("constructs.waiting_ns of {name}");
        comparison.near(&field, Some(place), construct.waiting, &row["waiting_ns"], 3 * construct.count);
    }
    if name == "for" && construct.chunks > 0 {
        let constructs::Construct { chunks, iterations, chunks_time, .. } = *construct;
        let numbers = [
            ("chunks", chunks),
            ("iterations", iterations),
            ("chunks_ns", chunks_time),
            ("chunk_mean_ns", chunks_time / chunks),
        ];
        for (field, expected) in numbers {
            comparison.same(&format!("constructs.{field}"), Some(place), expected, &row[field]);
        }
    } else if name == "for" && !row["chunks"].is_null() {
        comparison.add("constructs.chunks", Some(place), "none".to_owned(), row["chunks"].to_string());
    }
}

fn of_constructs(run: &Run, shown: &Value, comparison: &mut Comparison) {
    let truth = constructs::constructs(run);
    let members = constructs::members(run);
    let mut own: BTreeMap<Code, Ns> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for row in rows(shown, "constructs") {
        let name = row["name"].as_str().unwrap_or_default();
        let (name, _) = name.rsplit_once(" @").unwrap_or((name, ""));
        let name = name.trim_start_matches("!$omp ");
        let place = place_of(row).unwrap_or(0);
        let category = row["category"].as_str().unwrap_or_default();
        let name = if category == "mpi" { constructs::MPI_CALL } else { name };
        let is_own = matches!(category, "implicit_task" | "work" | "mutex" | "task" | "masked");
        if is_own || name == "taskgroup" {
            *own.entry(place).or_default() += row["self_ns"].as_u64().unwrap_or(0);
        }
        let Some((key, construct)) = truth.get_key_value(&(name, place)) else {
            continue;
        };
        seen.insert(*key);
        comparison.same(&format!("constructs.count of {name}"), Some(place), construct.count, &row["count"]);
        let field = format!("constructs.total_ns of {name}");
        comparison.same(&field, Some(place), construct.total, &row["total_ns"]);
        distribution(name, place, construct, row, comparison);
        if name == "parallel"
            && let Some(members) = members.get(&place)
        {
            let constructs::Members { members, members_ns, members_waiting, longest, imbalance } = *members;
            let numbers = [
                ("members", members),
                ("members_ns", members_ns),
                ("members_waiting_ns", members_waiting),
                ("working_ns", members_ns - members_waiting),
                ("longest_ns", longest),
            ];
            for (field, expected) in numbers {
                comparison.same(&format!("constructs.{field}"), Some(place), expected, &row[field]);
            }
            let (field, expected) = ("constructs.imbalance_ns", imbalance);
            let imbalance = &row["imbalance_ns"];
            // The mean of each visit is a whole number.
            comparison.near(field, Some(place), expected, imbalance, construct.count);
            let on_average = construct.total * members_waiting / members_ns.max(1);
            let field = format!("constructs.waiting_ns of {name}");
            if construct.total > 0 {
                comparison.near(&field, Some(place), on_average, &row["waiting_ns"], 3);
            }
        }
    }
    for (name, place) in truth.keys().filter(|key| !seen.contains(key)) {
        let field = format!("constructs.count of {name}");
        comparison.add(&field, Some(*place), "a row".to_owned(), "none".to_owned());
    }
    let useful = constructs::own(run);
    let places: BTreeSet<Code> = useful.keys().chain(own.keys()).copied().collect();
    for place in places {
        let expected = useful.get(&place).copied().unwrap_or(0);
        let shown = own.get(&place).copied().unwrap_or(0);
        if expected != shown {
            comparison.add("constructs.self_ns", Some(place), expected.to_string(), shown.to_string());
        }
    }
}

fn gains(run: &Run, shown: &Value, comparison: &mut Comparison) {
    assert_eq!(gain(run, Change::Nothing), 0, "the model's replay ends early");
    for row in rows(shown, "what_if") {
        let place = place_of(row);
        if row["change"] == "in perfect balance" {
            balanced(run, place, &row["gain_ns"], comparison);
            continue;
        }
        let is_serial = row["construct"].as_str().is_some_and(|name| name.contains("serial"));
        let change = match (row["change"].as_str(), place) {
            _ if is_serial => continue,
            (Some("twice as fast"), Some(place)) => Change::TwiceAsFast(place),
            (Some("with nowait"), Some(place)) => Change::Nowait(place),
            (Some("without waits for the mutex"), Some(place)) => Change::WithoutMutex(place),
            (Some("regions and barriers without cost"), _) => Change::WithoutOverhead,
            _ => continue,
        };
        let expected = gain(run, change);
        let field = format!("what_if.{}", row["change"].as_str().unwrap_or_default());
        comparison.near(&field, place, expected, &row["gain_ns"], SLACK.max(expected / 20));
    }
}

/// A row says in perfect balance of what: of members, or of tasks.
fn balanced(run: &Run, place: Option<Code>, shown: &Value, comparison: &mut Comparison) {
    let Some(place) = place else { return };
    let gains = [Change::Balanced(place), Change::TasksBalanced(place)].map(|change| gain(run, change));
    let is_near = |expected: &Ns| {
        let slack = SLACK.max(expected / 20);
        shown.as_u64().is_some_and(|shown| shown.abs_diff(*expected) <= slack)
    };
    if !gains.iter().any(is_near) {
        let expected = format!("{} or {}", gains[0], gains[1]);
        comparison.add("what_if.in perfect balance", Some(place), expected, shown.to_string());
    }
}

/// Whether all members' own code takes as long, so that it can be said how long another number of members takes.
fn has_like_members(case: &Case) -> bool {
    !case.program.has(|kind| match kind {
        Kind::Work(times) => times.windows(2).any(|pair| pair[0] != pair[1]),
        Kind::Target { .. } => true,
        // Each member creates tasks of its own.
        Kind::Parallel { body, .. } => body.iter().any(|inner| {
            matches!(inner.kind, Kind::Task(_) | Kind::Taskloop { .. } | Kind::Taskgroup { .. })
        }),
        _ => false,
    })
}

/// Whether static loops can be divided anew: each iteration takes as long, and none waits for another.
fn has_like_iterations(case: &Case) -> bool {
    !case.program.has(|kind| match kind {
        Kind::For { schedule: Schedule::StaticChunks(size), iterations, .. }
            if looks_like_blocks(*size, iterations.len(), case.program.widest()) =>
        {
            true
        }
        Kind::For { schedule: Schedule::Static | Schedule::StaticChunks(_), iterations, .. } => {
            iterations.windows(2).any(|pair| pair[0] != pair[1])
        }
        Kind::Ordered { .. } | Kind::Doacross { .. } => true,
        _ => false,
    })
}

/// Whether chunks of this size begin where blocks for as many threads would: a trace does not show which they are.
fn looks_like_blocks(size: usize, count: usize, threads: usize) -> bool {
    let threads = threads.max(1);
    let chunks = count.div_ceil(size.max(1));
    chunks <= threads
        && (0..chunks).all(|number| number * size == count / threads * number + number.min(count % threads))
}

/// Whether other numbers of threads can be predicted: whoever is idle takes what comes next, and only work decides.
fn is_list_schedule(case: &Case) -> bool {
    let is_simple = |kind: &Kind| match kind {
        // Behind `nowait`, who is idle first may have a static loop to do.
        Kind::For { reduction, nowait, .. } => reduction.is_none() && !nowait,
        Kind::Single { nowait, .. } => !nowait,
        Kind::Work(_) | Kind::Barrier | Kind::Call { .. } => true,
        Kind::Parallel { threads, .. } => *threads == case.program.widest(),
        Kind::Task(task) => *task == Task { body: task.body.clone(), ..Task::default() },
        _ => false,
    };
    let is_simple = !case.program.has(|kind| !is_simple(kind)) && case.program.depth() == 1;
    // One thread alone does not show what depends on its number.
    let is_simple = is_simple && case.program.widest() > 1;
    is_simple && case.machine.is_first_come && has_like_members(case) && has_like_iterations(case)
}

fn other_threads(case: &Case, shown: &Value, comparison: &mut Comparison) {
    let mut predictions = rows(shown, "other_threads").peekable();
    let is_predicted = rows(shown, "not_predicted").next().is_none();
    let has_regions = case.program.has(|kind| matches!(kind, Kind::Parallel { .. }));
    if predictions.peek().is_none() && is_predicted && has_regions {
        comparison.add("other_threads", None, "rows, or a reason".to_owned(), "neither".to_owned());
    }
    // Wake-ups decide how long an empty region takes.
    // Code of a region's own may be divided by the threads' numbers.
    let is_own =
        |row: &&Value| row["reason"].as_str().is_some_and(|why| why.contains("code outside of loops"));
    let is_long = |row: &&Value| !is_own(row) && row["ns"].as_u64().is_none_or(|ns| ns > SLACK);
    if let Some(reason) = rows(shown, "not_predicted").find(is_long).filter(|_| is_list_schedule(case)) {
        comparison.add("not_predicted", None, "rows".to_owned(), reason.to_string());
    }
    for row in predictions {
        let threads = row["threads"].as_u64().unwrap_or(0) as usize;
        let duration = row["duration_ns"].as_u64().unwrap_or(0);
        let is_known = has_like_members(case) && (threads == 1 || has_like_iterations(case));
        // Where members are added, what the new ones do is not known.
        if !is_known || !is_predicted || with_threads(&case.program, threads).widest() < threads {
            continue;
        }
        let Some(bounds) = bounds(&case.program, &case.machine, threads) else {
            continue;
        };
        let most = bounds.most.unwrap_or(Ns::MAX);
        if duration < bounds.least || duration > most {
            let which = if duration < bounds.least { "too_short" } else { "too_long" };
            let on = match (threads, case.program.widest()) {
                (1, _) => "one",
                (threads, recorded) if threads < recorded => "fewer",
                (threads, recorded) if threads == recorded => "same",
                _ => "more",
            };
            let expected = format!("{} to {most} on {threads}", bounds.least);
            comparison.add(&format!("other_threads.{on}.{which}"), None, expected, duration.to_string());
        }
    }
}
