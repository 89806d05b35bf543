//! An MPI job that hangs: which rank waits for which, while it runs and when it has been ended.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use omptrace_tests::env::compile;
use omptrace_tests::mpi::{LIBRARIES, launch, trace};
use omptrace_tests::trace::{Traces, omptrace};
use serde_json::{Value, json};

const RANKS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

fn lines(words: &[&str], folder: &Path) -> Vec<Value> {
    let output = omptrace(words.iter().map(Path::new).chain([folder]));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_job_that_hangs_names_the_deadlock() {
    for (compiler, launcher, name) in LIBRARIES {
        let program = compile("tests/programs/mpi_hang.c", compiler, &["-fno-openmp"]);
        let traces = Traces::folder();
        let folder = traces.path();
        let mut command = launch(folder, (launcher, RANKS), &program, Some(&["--quiet"]), &[]);
        let mut job = command.spawn().expect("the launcher can be run");
        let begin = Instant::now();
        let cycle = json!([0, 1, 2]);
        let found = loop {
            let are_there = (0..RANKS).all(|rank| trace(folder, rank).exists());
            let words = ["top", "--once", "--json", "--interval", "50ms"];
            let look = if are_there { lines(&words, folder).pop() } else { None };
            if let Some(look) = look.filter(|look| look["mpi_deadlock"] == cycle) {
                break look;
            }
            assert!(begin.elapsed() < PATIENCE, "{name}: no deadlock is seen");
            sleep(Duration::from_millis(100));
        };
        let wait =
            |rank: usize| json!({"rank": rank, "function": "MPI_Recv", "waits_for": [(rank + 1) % RANKS]});
        assert_eq!(found["mpi_waits"], (0..RANKS).map(wait).collect::<Value>(), "{name}");
        let text = omptrace(["top".as_ref(), "--once".as_ref(), folder]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains("rank 1 is in MPI_Recv and waits for rank 2"), "{name}: {text}");
        assert!(text.contains("0 -> 1 -> 2 -> 0"), "{name}: {text}");
        let id = libc::pid_t::try_from(job.id()).expect("a process");
        // SAFETY: the process was started above, and nobody has waited for it.
        unsafe { libc::kill(id, libc::SIGTERM) };
        job.wait().expect("it ends");
        let infos = lines(&["info", "--json"], folder);
        assert_eq!(infos.len(), RANKS, "{name}");
        for (rank, info) in infos.iter().enumerate() {
            assert_eq!(info["mpi_waits"], json!([wait(rank)]), "{name}");
            assert_eq!(info["mpi_deadlock"], cycle, "{name}");
        }
    }
}
