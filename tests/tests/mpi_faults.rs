//! Programs with a fault in their use of MPI, each beside its repair: the finding names the fault, its place, and what the repair saves.

use std::path::Path;

use omptrace_tests::env::compile;
use omptrace_tests::mpi::{LIBRARIES, Library, launched};
use omptrace_tests::trace::{Traces, omptrace};
use serde_json::Value;

/// A fault of `tests/programs/mpi_faults.c`, the rule that finds it, the number of ranks, and the function that the finding is
/// about; empty if it is about the whole program.
struct Fault(&'static str, &'static str, usize, &'static str);

const FAULTS: &[Fault] = &[
    Fault("unequal_ranks", "rank_imbalance", 2, "unequal_ranks"),
    Fault("unequal_regions", "rank_imbalance", 2, "unequal_regions"),
    Fault("late_message", "late_sender", 2, "late_message"),
    Fault("one_by_one", "small_messages", 2, "one_by_one"),
    Fault("one_after_another", "serialised_exchange", 4, "one_after_another"),
    Fault("wrong_order", "late_sender", 2, "wrong_order"),
    Fault("one_before_another", "serialised_exchange", 4, "one_before_another"),
    Fault("wait_at_once", "no_overlap", 2, "wait_at_once"),
    Fault("probes_only", "unsuccessful_tests", 2, "probes_only"),
    Fault("wait_before_work", "no_overlap", 2, "wait_before_work"),
    Fault("idle_threads", "idle_during_mpi", 2, "idle_threads"),
    Fault("in_critical", "mpi_in_critical", 2, "in_critical"),
    Fault("oversubscribed_host", "oversubscribed_host", 2, ""),
];

/// The fault that is found only where no other program uses the CPUs.
const ON_IDLE_CPUS: &str = "oversubscribed_host";

/// A saving is right up to this share of what the repair saves.
const TOLERANCE: f64 = 0.2;
/// Other programs may take the CPUs in a run of some tenths of a second.
const ATTEMPTS: usize = 4;

/// How long the ranks take without the tracer, in seconds, and the answers of a run with it.
fn run(program: &Path, library: Library, (fault, ranks): (&str, usize), how: &str) -> (f64, Value) {
    let (_, launcher, family) = library;
    let traces = Traces::folder();
    let folder = traces.path();
    let once = |record| {
        let output = launched(folder, (launcher, ranks), program, record, &[fault, how]);
        assert!(output.status.success(), "{family} {fault}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().parse().unwrap_or_else(|_| panic!("{fault}: {said}"))
    };
    let seconds: f64 = once(None);
    let _: f64 = once(Some(&["--quiet"]));
    let output = omptrace([Path::new("stats"), folder, Path::new("--json"), Path::new("--all")]);
    assert!(output.status.success(), "{output:?}");
    (seconds, serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn finding<'a>(answers: &'a Value, rule: &str) -> Option<&'a Value> {
    answers["findings"].as_array().expect("a list").iter().find(|finding| finding["id"] == rule)
}

/// What is wrong with the findings of the faulty and the repaired program.
fn judged(program: &Path, library: Library, fault: &Fault) -> Result<(), String> {
    let Fault(name, rule, ranks, place) = fault;
    let (faulty, answers) = run(program, library, (name, *ranks), "faulty");
    let (repaired, after) = run(program, library, (name, *ranks), "repaired");
    let saved = faulty - repaired;
    let Some(found) = finding(&answers, rule) else {
        return Err(format!("nothing found, saved {saved}: {} {}", answers["findings"], answers["cpu_note"]));
    };
    let gain = found["gain_ns"].as_u64().unwrap_or(0) as f64 / 1e9;
    println!("{} {name}: {rule} {gain:.3} s, saved {saved:.3} s: {}", library.2, found["text"]);
    if (gain - saved).abs() > TOLERANCE * saved {
        return Err(format!("saves {gain} s, but saved {saved} s of {faulty} s: {found}"));
    }
    if found["function"].as_str().unwrap_or("") != *place {
        return Err(format!("the place is not {place}: {found}"));
    }
    match finding(&after, rule) {
        Some(found) => Err(format!("found after the repair: {found}")),
        None => Ok(()),
    }
}

/// Half of the faults, each on one of the libraries. `OMPTRACE_TEST_FAULTS=all`, which `cargo xtask soak` sets, selects all
/// faults on both libraries; it may also be the name of a fault.
#[test]
fn a_finding_names_the_fault_its_place_and_what_the_repair_saves() {
    let wanted = std::env::var("OMPTRACE_TEST_FAULTS").unwrap_or_default();
    let mut wrong = Vec::new();
    for (number, library) in LIBRARIES.into_iter().enumerate() {
        let program = compile("tests/programs/mpi_faults.c", library.0, &[]);
        let is_meant = |place: usize, fault: &Fault| match &wanted[..] {
            "" => place % (2 * LIBRARIES.len()) == number && fault.0 != ON_IDLE_CPUS,
            "all" => true,
            name => fault.0 == name,
        };
        let faults = FAULTS.iter().enumerate().filter(|(place, fault)| is_meant(*place, fault));
        for (_, fault) in faults {
            let mut said = Vec::new();
            let is_right = (0..ATTEMPTS).any(|_| {
                let judged = judged(&program, library, fault);
                let is_right = judged.is_ok();
                said.extend(judged.err());
                is_right
            });
            if !is_right {
                wrong.push(format!("{} {}: {said:#?}", library.2, fault.0));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
