//! The answers of `omptrace stats` are those of the model, but for the differences in `known.json`.
//!
//! `OMPTRACE_TEST_SEED` and `OMPTRACE_TEST_PROGRAMS` try other programs. `OMPTRACE_BLESS=1` looks for the known differences anew: it updates
//! their numbers, and leaves out those that are not found.

mod library;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use omptrace_model::case::Case;
use omptrace_model::checker::Checker;
use omptrace_model::compare::Difference;
use omptrace_model::known::Known;
use omptrace_model::shrink::shrink;
use omptrace_model::without::without;

use library::{number, omptrace};

/// Programs that are tried unless the user says otherwise.
const PROGRAMS: u64 = 2000;
/// Seeds among which a known difference is looked for that its own seed no longer shows.
const SEARCHED: u64 = 9000;
/// Cases that are shrunk to find one of a kind alone; then the first counts, with all that differs there.
const ATTEMPTS: usize = 12;
/// Differences that are shrunk and shown.
const SHOWN: usize = 30;
/// Programs of which an answer was wrong once, and the field. Few others show it.
const REPAIRED: [(u64, &str); 2] =
    [(8_003_361, "what_if.in perfect balance"), (9_002_037, "what_if.in perfect balance")];

/// What all threads of the test have found.
#[derive(Default)]
struct Found {
    equal: u64,
    stuck: u64,
    /// Programs with a known kind of difference, by the kind.
    known: BTreeMap<usize, u64>,
    /// Other differences, by field: how often, and the first case.
    unknown: BTreeMap<String, (u64, Case)>,
    statements: u64,
}

fn look(checker: &Checker, case: &Case, known: &[Known], found: &Mutex<Found>) {
    let verdict = checker.check(case);
    let mut kinds: Vec<(String, Option<usize>)> = vec![];
    for difference in verdict.iter().flat_map(|verdict| &verdict.differences) {
        if kinds.last().is_some_and(|(field, _)| *field == difference.field) {
            continue;
        }
        let is_known = Known::explain(known, checker, case, difference);
        let kind = known.iter().position(|known| known.explains(case, difference));
        kinds.push((difference.field.clone(), kind.filter(|_| is_known)));
    }
    let mut found = found.lock().expect("no thread panics");
    found.statements += case.program.len() as u64;
    let Some(verdict) = verdict else {
        found.stuck += 1;
        return;
    };
    if verdict.differences.is_empty() {
        found.equal += 1;
    }
    for (field, kind) in kinds {
        match kind {
            Some(kind) => *found.known.entry(kind).or_default() += 1,
            None => {
                let of_field = found.unknown.entry(field).or_insert_with(|| (0, case.clone()));
                of_field.0 += 1;
                if case.program.len() < of_field.1.program.len() {
                    of_field.1 = case.clone();
                }
            }
        }
    }
}

/// The smallest case with an unknown difference in a field, in words.
fn shrunk(checker: &Checker, case: &Case, field: &str, known: &[Known]) -> String {
    let is_unknown = |case: &Case, difference: &Difference| {
        difference.field == field && !Known::explain(known, checker, case, difference)
    };
    let differs = |case: &Case| {
        let verdict = checker.check(case);
        verdict.is_some_and(|verdict| verdict.differences.iter().any(|of| is_unknown(case, of)))
    };
    let first = checker.check(case).expect("it ended before");
    let small = shrink(case, differs);
    let verdict = checker.check(&small).expect("it ended before");
    let mut out = format!("== {field}: OMPTRACE_TEST_SEED={} OMPTRACE_TEST_PROGRAMS=1\n", case.seed);
    for difference in first.differences.iter().filter(|of| of.field == field) {
        let _ = writeln!(out, "there: {difference}");
    }
    let _ = write!(out, "shrunk from {} statements to {}: {small}", case.program.len(), small.program.len());
    for difference in &verdict.differences {
        let _ = writeln!(out, "  {difference}");
    }
    let _ = writeln!(out, "  constructs: {}", small.features().join(", "));
    if let Some(Difference { expected, shown, .. }) = first.differences.iter().find(|of| is_unknown(case, of))
    {
        let needs = small.features();
        let seed = case.seed;
        let row = serde_json::json!({"kind": "", "field": field, "needs": needs, "seed": seed, "expected": expected, "shown": shown});
        let _ = writeln!(out, "  for known.json: {row}");
    }
    out
}

#[test]
fn answers_are_those_of_the_model() {
    let first = number("OMPTRACE_TEST_SEED").unwrap_or(1);
    let programs = number("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS);
    println!("{programs} programs from OMPTRACE_TEST_SEED={first}");
    let (omptrace, known) = (omptrace(), Known::all());
    let (next, found) = (AtomicU64::new(0), Mutex::new(Found::default()));
    let folder = tempfile::tempdir().expect("a folder");
    let checker = |name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Checker { omptrace: omptrace.clone(), folder }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get().min(programs as usize));
    thread::scope(|scope| {
        for thread in 0..threads {
            let checker = checker(&thread.to_string());
            let (next, found, known) = (&next, &found, &known);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= programs {
                        return;
                    }
                    look(&checker, &Case::new(first + index), known, found);
                }
            });
        }
    });
    let found = found.into_inner().expect("no thread panicked");
    println!("{} equal, {} wait for themselves, {} statements", found.equal, found.stuck, found.statements);
    for (kind, count) in &found.known {
        println!("known in {count}: {}", known[*kind].kind);
    }
    let mut text = String::new();
    for (field, (count, ..)) in &found.unknown {
        let _ = writeln!(text, "{field} differs in {count}");
    }
    for (field, (_, case)) in found.unknown.iter().take(SHOWN) {
        let _ = write!(text, "\n{}", shrunk(&checker("shrink"), case, field, &known));
    }
    assert!(found.unknown.is_empty(), "\n{text}");
}

/// A row of the list that is looked for anew.
#[derive(Clone, Default)]
struct Search {
    found: Option<Known>,
    /// Cases that were shrunk for it, and the numbers of the first of them.
    attempts: usize,
    first: Option<Known>,
}

/// Looks for a program of each known difference that is not as it was, at its own seed first, and writes the list anew.
fn bless(checker: &Checker) {
    let all = Known::all();
    let mut searches = vec![Search::default(); all.len()];
    let attempt = |search: &mut Search, known: &Known, case: &Case, differences: &[Difference]| {
        let mut of_kind = differences.iter().filter(|of| known.explains(case, of)).peekable();
        let Some(&first) = of_kind.peek() else {
            return;
        };
        if case.seed == known.seed && !known.program.is_empty() && of_kind.any(|of| known.is(of)) {
            search.found = Some(known.clone());
            return;
        }
        search.attempts += 1;
        let numbers = search.first.get_or_insert_with(|| with_numbers(known, case.seed, first)).clone();
        let is_last = search.attempts == ATTEMPTS;
        search.found = blessed(checker, case, first, known).or_else(|| is_last.then_some(numbers));
    };
    for (search, known) in searches.iter_mut().zip(&all) {
        let case = Case::new(known.seed);
        if let Some(verdict) = checker.check(&case) {
            attempt(search, known, &case, &verdict.differences);
        }
    }
    for seed in 1..=SEARCHED {
        let mut missing =
            searches.iter_mut().zip(&all).filter(|(search, _)| search.found.is_none()).peekable();
        if missing.peek().is_none() {
            break;
        }
        let case = Case::new(seed);
        let Some(verdict) = checker.check(&case) else {
            continue;
        };
        for (search, known) in missing {
            attempt(search, known, &case, &verdict.differences);
        }
    }
    let mut rows = vec![];
    for (search, known) in searches.into_iter().zip(&all) {
        match search.found.or(search.first) {
            Some(found) => rows.push(found.row()),
            None => println!("not found: {} ({})", known.kind, known.field),
        }
    }
    let text = serde_json::to_string_pretty(&rows).expect("JSON");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("known.json");
    std::fs::write(path, text + "\n").expect("a writable file");
}

/// `known` with the numbers of `difference`.
fn with_numbers(known: &Known, seed: u64, difference: &Difference) -> Known {
    let Difference { expected, shown, .. } = difference.clone();
    Known { seed, expected, shown, program: vec![], ..known.clone() }
}

/// `known` with the numbers of a case, if that can be shrunk to a program in which the difference is of this kind alone.
fn blessed(checker: &Checker, case: &Case, difference: &Difference, known: &Known) -> Option<Known> {
    let all = Known::all();
    let is_alone = |case: &Case, of: &Difference| {
        let candidates = Known::candidates(&all, case, of);
        // Whatever has tasks may be scaled besides.
        let is_this = |other: &&Known| other.kind == known.kind || other.needs == ["task"];
        let is_this = candidates.iter().all(is_this) && known.explains(case, of);
        of.field == difference.field && is_this && !candidates.is_empty()
    };
    let alone = |case: &Case| {
        let verdict = checker.check(case)?;
        let of = verdict.differences.into_iter().find(|of| is_alone(case, of))?;
        Known::explain(&all, checker, case, &of).then_some(of)
    };
    // First to less, of whatever kind; then only this one is left.
    let differs = |case: &Case| {
        let verdict = checker.check(case);
        verdict.is_some_and(|verdict| verdict.differences.iter().any(|of| known.explains(case, of)))
    };
    let mut start = case.clone();
    for other in Known::candidates(&all, case, difference) {
        let first = other.needs.first().filter(|first| !known.needs.contains(first));
        if let Some(changed) = first.and_then(|first| without(&start, first)) {
            start = changed;
        }
    }
    if alone(&start).is_none() {
        start = shrink(case, differs);
    }
    alone(&start)?;
    let small = shrink(&start, |case| alone(case).is_some());
    let here = alone(&small)?;
    let mut program: Vec<String> = small.to_string().lines().map(str::to_owned).collect();
    program.push(here.to_string());
    Some(Known { program, ..with_numbers(known, case.seed, difference) })
}

/// The faults that `plant.sh` plants still have their lines in the sources.
#[test]
fn each_fault_can_be_planted() {
    let output = Command::new("bash").args(["plant.sh", "--check"]).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn each_known_difference_is_still_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let checker = Checker { omptrace: omptrace(), folder: folder.path().to_owned() };
    if env::var_os("OMPTRACE_BLESS").is_some() {
        bless(&checker);
        return;
    }
    let mut text = String::new();
    for known in Known::all() {
        let case = Case::new(known.seed);
        let verdict = checker.check(&case).expect("it ended when it was found");
        let differences: Vec<&Difference> =
            verdict.differences.iter().filter(|of| known.explains(&case, of)).collect();
        if differences.iter().any(|difference| known.is(difference)) {
            continue;
        }
        let _ = match differences.first() {
            None => writeln!(text, "repaired, take it off known.json: {}", known.kind),
            Some(other) => writeln!(text, "another number, {other}: {}", known.kind),
        };
    }
    assert!(text.is_empty(), "\n{text}");
}

#[test]
fn answers_that_were_repaired_are_still_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let checker = Checker { omptrace: omptrace(), folder: folder.path().to_owned() };
    for (seed, field) in REPAIRED {
        let verdict = checker.check(&Case::new(seed)).expect("it ended when it was found");
        let differs = verdict.differences.iter().find(|difference| difference.field == field);
        assert!(differs.is_none(), "seed {seed}: {}", differs.map_or(String::new(), Difference::to_string));
    }
}
