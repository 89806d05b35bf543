//! What is said of random MPI jobs is that of the model, to the nanosecond: waits, critical path, gains and efficiencies.
//!
//! `OMPTRACE_TEST_SEED` and `OMPTRACE_TEST_PROGRAMS` try other jobs.

#[path = "library/number.rs"]
mod number;

use std::collections::BTreeMap;

use omptrace_analysis::answers::{Cause, Place};
use omptrace_analysis::{JobChange, JobGains, JobPath, Options, RankWaits, Stats};
use omptrace_model::job::program::{Mode, Program, Step};
use omptrace_model::job::simulate::{Changed, Run};
use omptrace_model::job::truth::{Doing, Durations, Path, Sums, Waits};
use omptrace_model::job::write::{REGIONS, text};
use omptrace_tests::trace::omptrace;
use omptrace_timeline::match_after;
use omptrace_trace_format::Reader;

use number::number;

/// Jobs that are tried unless the user says otherwise.
const JOBS: u64 = 300;

/// After how many events messages are matched, by turns; most jobs have fewer than the last number.
const EVENTS: [usize; 4] = [1, 40, 250, 1 << 19];

fn analysed(program: &Program, run: &Run) -> Stats {
    of_text(&text(program, run))
}

fn of_text(text: &str) -> Stats {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = omptrace_trace_builder::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    Stats::with(&inputs, &Options::default()).expect("answers").0
}

fn path(found: &JobPath) -> Path {
    let sums = found.rows.iter().map(|row| {
        let place = row.place.as_ref().map_or_else(String::new, Place::long);
        ((row.rank as usize, Doing { cause: row.cause.map_or("", Cause::name), place }), row.ns)
    });
    Path { sums: sums.collect::<Sums>(), changes: found.changes }
}

fn waits(found: &RankWaits) -> Waits {
    let mut all = Waits::new();
    for row in &found.waits {
        *all.entry((row.rank as usize, row.place.long(), row.waits_for as usize)).or_default() += row.ns;
    }
    all
}

/// The durations of changed jobs; of regions that are not shown, the recorded one.
fn durations(found: &JobGains, recorded: u64) -> Durations {
    let mut all = Durations { recorded, faster: [recorded; 2], ..Durations::default() };
    for gain in &found.gains {
        assert_eq!(gain.gain_ns, recorded.saturating_sub(gain.duration_ns), "{gain:?}");
        let place = gain.place.as_ref().map(Place::long);
        let of_region = |at: &u64| place == Some(format!("parallel @{at:#x}"));
        match gain.change {
            JobChange::NoLateSenders => all.changed[0] = gain.duration_ns,
            JobChange::BalancedRanks => all.changed[1] = gain.duration_ns,
            JobChange::BalancedThreads => all.changed[2] = gain.duration_ns,
            JobChange::IdealNetwork => all.changed[3] = gain.duration_ns,
            JobChange::FasterRegion => {
                let region = REGIONS.iter().position(of_region).expect("a region of the program");
                all.faster[region] = gain.duration_ns;
            }
        }
    }
    all
}

/// What differs from the truth.
fn differences(seed: u64, shown: &mut BTreeMap<JobChange, u64>) -> Vec<String> {
    let program = Program::generate(seed);
    let run = program.run(&Changed::default());
    match_after(EVENTS[seed as usize % EVENTS.len()]);
    let stats = analysed(&program, &run);
    let mut all = Vec::new();
    let mut compare = |what: &str, found: String, expected: String| {
        if found != expected {
            all.push(format!("seed {seed}, {what}:\n  {found}, not\n  {expected}"));
        }
    };
    let (Some(of_path), Some(gains), Some(of_waits)) = (&stats.job_path, &stats.job_gains, &stats.rank_waits)
    else {
        return vec![format!("seed {seed}: no path, gains or waits")];
    };
    compare("duration", stats.answers.duration_ns.to_string(), run.end().to_string());
    compare("waits", format!("{:?}", waits(of_waits)), format!("{:?}", run.waits()));
    let accounted: u64 = run.waits().values().sum();
    compare("accounting", stats.answers.accounting[Cause::MpiWait].to_string(), accounted.to_string());
    let (found, expected) = (path(of_path), run.path());
    for key in found.sums.keys().chain(expected.sums.keys()) {
        compare(
            "path",
            format!("{key:?} {:?}", found.sums.get(key)),
            format!("{key:?} {:?}", expected.sums.get(key)),
        );
    }
    compare("changes of rank", found.changes.to_string(), expected.changes.to_string());
    let of_ranks: u64 = of_path.ranks.iter().map(|rank| rank.ns).sum();
    let of_causes: u64 = of_path.causes.iter().map(|cause| cause.ns).sum();
    compare(
        "sums of the path",
        format!("{of_ranks} {of_causes} {}", of_path.total_ns),
        format!("{0} {0} {0}", run.end()),
    );
    let truth = run.durations(&program);
    compare("gains", format!("{:?}", durations(gains, run.end())), format!("{truth:?}"));
    compare("unknown", format!("{:?}", gains.unknown), "[]".to_owned());
    let longest = run.outside().into_iter().max().unwrap_or(0) as f64;
    let ideal = truth.changed[3] as f64;
    let expected = format!("{:?} {:?}", longest / ideal, ideal / run.end() as f64);
    let json = serde_json::to_value(&stats.mpi_efficiency).expect("JSON");
    compare(
        "efficiencies",
        format!(
            "{:?} {:?}",
            json["serialisation"].as_f64().unwrap_or(0.0),
            json["transfer"].as_f64().unwrap_or(0.0)
        ),
        expected,
    );
    let additive = run.additive();
    for (name, expected) in &additive {
        let found = json["additive"][*name].as_f64().unwrap_or(0.0);
        let is_near = (found - expected).abs() < 1e-12;
        compare(
            name,
            if is_near { String::new() } else { format!("{found:?}") },
            if is_near { String::new() } else { format!("{expected:?}") },
        );
    }
    for gain in gains.gains.iter().filter(|gain| gain.gain_ns > 0) {
        *shown.entry(gain.change).or_default() += 1;
    }
    all
}

#[test]
fn what_is_said_of_random_jobs_is_true() {
    let (first, jobs) =
        (number("OMPTRACE_TEST_SEED").unwrap_or(1), number("OMPTRACE_TEST_PROGRAMS").unwrap_or(JOBS));
    let mut shown = BTreeMap::new();
    let all: Vec<String> = (first..first + jobs).flat_map(|seed| differences(seed, &mut shown)).collect();
    let mut of_fields: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for difference in &all {
        let field = difference.split([',', ':']).nth(1).unwrap_or_default();
        of_fields.entry(field).or_default().push(difference);
    }
    let shown_of = |(field, all): (&&str, &Vec<&str>)| {
        format!("{} x{field}, the first:\n{}", all.len(), all.first().copied().unwrap_or_default())
    };
    let words: Vec<String> = of_fields.iter().map(shown_of).collect();
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), words.join("\n"));
    // Each kind of gain was there to be found.
    assert!(jobs < JOBS || shown.len() == 5 && shown.values().all(|count| *count > 20), "{shown:?}");
}

/// A job that is executed again without changes takes as long.
#[test]
fn the_model_repeats_itself() {
    for seed in 0..200 {
        let program = Program::generate(seed);
        let run = program.run(&Changed::default());
        assert_eq!(run.durations(&program).recorded, run.end(), "seed {seed}");
    }
}

/// The answers do not depend on the number of threads that find them, nor on when messages are matched.
#[test]
fn a_job_has_the_same_answers_with_any_number_of_threads() {
    for seed in 1..=5 {
        let program = Program::generate(seed);
        let text = text(&program, &program.run(&Changed::default()));
        let folder = tempfile::tempdir().expect("a folder");
        omptrace_trace_builder::open(&text, folder.path());
        let answers = |jobs: &str| {
            let folder = folder.path().to_str().expect("a path");
            let output = omptrace(["stats", folder, "--json", "--jobs", jobs]);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).expect("JSON")
        };
        let one = answers("1");
        assert!(one.contains("\"job_path\"") && one.contains("\"job_gains\""), "seed {seed}");
        for jobs in ["2", "8"] {
            assert!(answers(jobs) == one, "seed {seed}, {jobs} threads");
        }
        let in_windows = EVENTS.map(|events| {
            match_after(events);
            serde_json::to_string(&of_text(&text)).expect("JSON")
        });
        assert!(in_windows.iter().all(|answers| *answers == in_windows[0]), "seed {seed}");
    }
}

/// A job of two ranks, of which one sends a message to the other.
fn message() -> String {
    let steps = vec![
        Step::Serial { rank: 0, ns: 100 },
        Step::Message { from: 0, send: (Mode::Buffered, 5), to: 1, cost: 5 },
        Step::Serial { rank: 1, ns: 100 },
    ];
    let program = Program { ranks: 2, split: 1, steps };
    text(&program, &program.run(&Changed::default()))
}

/// What is said of gains that are not known; there must be none.
fn reasons(text: &str) -> Vec<String> {
    let stats = of_text(text);
    let gains = stats.job_gains.expect("a job");
    assert_eq!(gains.gains, []);
    let unknown = stats.mpi_efficiency.map(|it| serde_json::to_value(it).expect("JSON")["unknown"].clone());
    let is_said =
        unknown.is_none_or(|it| it[0] == format!("MPI serialisation and transfer: {}", gains.unknown[0]));
    assert!(is_said, "{:?}", gains.unknown);
    gains.unknown
}

#[test]
fn gains_that_cannot_be_known_are_absent_with_the_reason() {
    let known = message();
    assert_eq!(of_text(&known).job_gains.expect("a job").unknown, [""; 0]);
    let ends_at = known.find("process rank1").expect("a second rank");
    assert_eq!(reasons(&known[..ends_at]), ["the traces of 1 of 2 ranks are missing"]);
    let other_times = ", so the job may behave differently if its timing changes";
    let of_any = known
        .replace("function=313 domain=1 object=0x10 peer=0", "function=313 domain=1 object=0x10 peer=-1");
    let reason = format!("rank 1 receives messages from any source (MPI_Recv){other_times}");
    assert_eq!(reasons(&of_any), [reason]);
    let call = "call_end class=2 function=313";
    let open: Vec<&str> = known.lines().filter(|line| !line.contains(call)).collect();
    let reason = format!("rank 1 did not return from its last MPI call{other_times}");
    assert_eq!(reasons(&open.join("\n")), [reason]);
    let (first, second) = known.split_at(ends_at);
    let hosts = format!("{first}{}", second.replace("b1", "b2"));
    let reason = "the clocks of the hosts are aligned only by the time of day, so it is not known which rank waits for which";
    assert_eq!(reasons(&hosts), [reason]);
    // The second thread calls as well.
    let (begin, end) = (
        "500 2 call_begin class=10 function=30 domain=1 peer=-4 tag=-4\n",
        "501 2 call_end class=10 function=30 domain=1 peer=-4 tag=-4\n",
    );
    let threads = format!("{known}{begin}{end}");
    assert_eq!(reasons(&threads), [format!("rank 1 calls MPI from several threads{other_times}")]);
}
