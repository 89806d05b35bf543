//! Models of the tracer's lock-free protocols. loom runs them in every order of steps, and with every value that the
//! memory model permits a load to see. The models use the tracer's own source files, compiled with [`sync`].
//!
//! The models prove only what they contain: a few threads, chunks and events, and at most [`PREEMPTIONS`] preemptive
//! switches between threads. The queue is crossbeam's, and is assumed to be correct.

#[allow(dead_code, reason = "the models use what they need")]
#[path = "../../src/lockfree/mod.rs"]
mod lockfree;
mod models;
mod sync;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use models::MODELS;

/// Loom's own advice: few bugs need more than two.
const PREEMPTIONS: usize = 2;
/// The site to weaken, in the format in which sites are printed.
const WEAKENED: &str = "OMPTRACE_MODELS_WEAKENED";

/// Runs a model in every order; returns the number of orders.
///
/// # Panics
/// If the model panics.
fn check(model: fn()) -> u64 {
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    runs.load(Ordering::Relaxed)
}

/// Runs all models; prints what each shows before it runs.
fn check_all() {
    if let Ok(site) = std::env::var(WEAKENED) {
        sync::weaken(site);
    }
    for (name, model) in MODELS {
        println!("{name}");
        let start = Instant::now();
        let runs = check(*model);
        println!("    {runs} runs in {:.2} s", start.elapsed().as_secs_f64());
    }
}

#[test]
fn hold_in_every_order() {
    check_all();
}

/// Shows that the models detect mistakes: for each ordering, weakening it by one step makes a model fail.
#[test]
fn every_ordering_is_needed() {
    check_all();
    let sites = sync::sites();
    assert!(!sites.is_empty());
    let spared: Vec<String> = sites.into_iter().filter(|site| !is_needed(site)).collect();
    assert!(spared.is_empty(), "no model needs {spared:?}");
}

/// Whether a model fails if `site` gets a weaker ordering. Runs in a separate process, because a failing model may
/// abort.
fn is_needed(site: &str) -> bool {
    let this = std::env::current_exe().expect("the test has a path");
    let output = Command::new(this)
        .args(["--exact", "hold_in_every_order", "--nocapture"])
        .env(WEAKENED, site)
        .output()
        .expect("the test can be run");
    let printed = String::from_utf8_lossy(&output.stdout);
    let failed = printed.lines().rfind(|line| MODELS.iter().any(|(name, _)| name == line));
    println!("{site}: {} {}", output.status, failed.unwrap_or_default());
    !output.status.success()
}
