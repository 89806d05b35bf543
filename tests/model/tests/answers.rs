//! The answers of `omptrace stats` are those of the model, but for the differences in `known.json`.
//!
//! `OMPTRACE_TEST_SEED` and `OMPTRACE_TEST_PROGRAMS` try other programs; with `OMPTRACE_TEST_SIZE`, all have that size.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use omptrace_model::case::Case;
use omptrace_model::compare::Difference;
use omptrace_model::judge::Judge;
use omptrace_model::known::Known;
use omptrace_model::shrink::shrink;

/// Programs that are tried unless the user says otherwise.
const PROGRAMS: u64 = 2000;
/// Statements of the largest of them, about.
const LARGEST: u64 = 32;
/// Differences that are shrunk and shown.
const SHOWN: usize = 12;

/// The number that the user sets in a variable.
fn number(variable: &str) -> Option<u64> {
    let value = env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value}")))
}

/// The program `omptrace`, built where nobody says where it is.
fn omptrace() -> PathBuf {
    if let Some(folder) = env::var_os("OMPTRACE_TEST_BIN_DIR") {
        return Path::new(&folder).join("omptrace");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package=omptrace-cli"]).current_dir(&root);
    assert!(build.status().expect("cargo runs").success(), "{build:?}");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("debug/omptrace")
}

/// What all threads of the test have found.
#[derive(Default)]
struct Found {
    equal: u64,
    stuck: u64,
    /// Programs with a known kind of difference, by the kind.
    known: BTreeMap<usize, u64>,
    /// Other differences, by field: how often, and the first case.
    unknown: BTreeMap<String, (u64, Case, usize)>,
    statements: u64,
}

fn look(judge: &Judge, case: &Case, size: usize, known: &[Known], found: &Mutex<Found>) {
    let verdict = judge.judge(case);
    let mut found = found.lock().expect("no thread panics");
    found.statements += case.program.len() as u64;
    let Some(verdict) = verdict else {
        found.stuck += 1;
        return;
    };
    if verdict.differences.is_empty() {
        found.equal += 1;
    }
    let mut fields: Vec<&Difference> = verdict.differences.iter().collect();
    fields.dedup_by(|one, other| one.field == other.field);
    for difference in fields {
        match known.iter().position(|known| known.explains(case, difference)) {
            Some(kind) => *found.known.entry(kind).or_default() += 1,
            None => {
                let first = || (0, case.clone(), size);
                let of_field = found.unknown.entry(difference.field.clone()).or_insert_with(first);
                of_field.0 += 1;
                if case.program.len() < of_field.1.program.len() {
                    (of_field.1, of_field.2) = (case.clone(), size);
                }
            }
        }
    }
}

/// The smallest case with an unknown difference in a field, in words.
fn shrunk(judge: &Judge, case: &Case, size: usize, field: &str, known: &[Known]) -> String {
    let is_unknown = |case: &Case, difference: &Difference| {
        difference.field == field && !known.iter().any(|known| known.explains(case, difference))
    };
    let differs = |case: &Case| {
        let verdict = judge.judge(case);
        verdict.is_some_and(|verdict| verdict.differences.iter().any(|of| is_unknown(case, of)))
    };
    let first = judge.judge(case).expect("it ended before");
    let small = shrink(case, differs);
    let verdict = judge.judge(&small).expect("it ended before");
    let mut out = format!("== {field}: OMPTRACE_TEST_SEED={} OMPTRACE_TEST_SIZE={size} OMPTRACE_TEST_PROGRAMS=1\n", case.seed);
    for difference in first.differences.iter().filter(|of| of.field == field) {
        let _ = writeln!(out, "there: {difference}");
    }
    let _ = write!(out, "shrunk from {} statements to {}: {small}", case.program.len(), small.program.len());
    for difference in &verdict.differences {
        let _ = writeln!(out, "  {difference}");
    }
    let _ = writeln!(out, "  constructs: {}", small.features().join(", "));
    if let Some(Difference { expected, shown, .. }) = first.differences.iter().find(|of| is_unknown(case, of)) {
        let needs = small.features();
        let seed = case.seed;
        let row = serde_json::json!({"kind": "", "field": field, "needs": needs, "seed": seed, "size": size, "expected": expected, "shown": shown});
        let _ = writeln!(out, "  for known.json: {row}");
    }
    out
}

#[test]
fn answers_are_those_of_the_model() {
    let first = number("OMPTRACE_TEST_SEED").unwrap_or(1);
    let programs = number("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS);
    let fixed_size = number("OMPTRACE_TEST_SIZE");
    println!("{programs} programs from OMPTRACE_TEST_SEED={first}");
    let (omptrace, known) = (omptrace(), Known::all());
    let (next, found) = (AtomicU64::new(0), Mutex::new(Found::default()));
    let folder = tempfile::tempdir().expect("a folder");
    let judge = |name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Judge { omptrace: omptrace.clone(), folder }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get().min(programs as usize));
    thread::scope(|scope| {
        for thread in 0..threads {
            let judge = judge(&thread.to_string());
            let (next, found, known) = (&next, &found, &known);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= programs {
                        return;
                    }
                    let size = fixed_size.unwrap_or(2 + LARGEST * index / programs) as usize;
                    look(&judge, &Case::new(first + index, size), size, known, found);
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
    for (field, (_, case, size)) in found.unknown.iter().take(SHOWN) {
        let _ = write!(text, "\n{}", shrunk(&judge("shrink"), case, *size, field, &known));
    }
    assert!(found.unknown.is_empty(), "\n{text}");
}

#[test]
fn each_known_difference_is_still_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let judge = Judge { omptrace: omptrace(), folder: folder.path().to_owned() };
    let mut text = String::new();
    for known in Known::all() {
        let case = Case::new(known.seed, known.size);
        let verdict = judge.judge(&case).expect("it ended when it was found");
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
