//! Compares the CPU time and the bytes per event of OTF2's Enter and Leave between this project and the reference
//! library: `cargo bench -p omptrace-viewer-export --bench otf2 [MILLIONS_OF_PAIRS]`
//!
//! Of this project, the whole export after interpretation is measured, from timeline items to files. Requires Debian's
//! `libotf2-trace-dev`.

use std::path::Path;
use std::process::Command;

use omptrace_timeline::model::*;
use omptrace_viewer_export::{Format, FormatOptions};

const REGIONS: u32 = 200;
const ROUNDS: usize = 7;

fn main() {
    let millions: f64 = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(5.0);
    let pairs = (millions * 1e6) as u64;
    let folder = tempfile::tempdir().expect("a folder");
    let reference = compile(folder.path());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let path = |who: &str| folder.path().join(format!("{who}-{round}"));
        let out = path("ours");
        std::fs::create_dir(&out).expect("a folder");
        ours.push(write(&out, pairs));
        let bytes = std::fs::metadata(out.join("traces/0.evt")).map_or(0, |file| file.len());
        let out = path("theirs");
        let output = Command::new(&reference)
            .arg(&out)
            .arg(pairs.to_string())
            .output()
            .expect("the reference can be run");
        let seconds = String::from_utf8_lossy(&output.stdout);
        theirs.push(seconds.trim().parse::<f64>().expect("seconds"));
        let their_bytes = std::fs::metadata(out.join("traces/0.evt")).map_or(0, |file| file.len());
        if round == 0 {
            println!("bytes of events: ours {bytes}, reference {their_bytes}");
        }
        for who in ["ours", "theirs"] {
            std::fs::remove_dir_all(path(who)).expect("removed");
        }
    }
    for (who, mut seconds) in [("ours", ours), ("reference", theirs)] {
        seconds.sort_by(f64::total_cmp);
        let ns = |seconds: f64| seconds * 1e9 / (2 * pairs) as f64;
        let (least, median) = (ns(seconds[0]), ns(seconds[ROUNDS / 2]));
        println!("{who:<10} {least:>6.1} ns of processor time per event at least, median {median:.1}");
    }
}

fn compile(folder: &Path) -> std::path::PathBuf {
    let program = folder.join("reference");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/otf2_reference.c");
    let status = Command::new("cc")
        .args(["-O2", "-o"])
        .args([&program, &source])
        .arg("-lotf2")
        .status()
        .expect("a C compiler");
    assert!(status.success(), "libotf2-trace-dev is missing");
    program
}

/// Writes an archive of one thread; returns the CPU time in seconds.
fn write(folder: &Path, pairs: u64) -> f64 {
    let start = processor_time();
    let format = Format::by_name("otf2").expect("a format");
    let mut sink = format.folder_sink(folder, &FormatOptions::default(), 1).expect("a folder");
    let (process, location) = (ProcessId(0), LocationId(0));
    sink.item(&Item::Process(&Process {
        id: process,
        name: "bench".to_owned(),
        os_pid: 1,
        ..Process::default()
    }));
    sink.item(&Item::Location(&Location {
        id: location,
        process,
        kind: LocationKind::Thread { os_tid: 1, stream: 1, role: ThreadRole::Main },
        name: "main".to_owned(),
    }));
    for id in 0..REGIONS {
        sink.item(&Item::Region(&Region {
            id: RegionId(id),
            name: format!("!$omp masked @bench.c:{id}"),
            category: Category::Work,
            construct: Construct::Masked,
            source: None,
        }));
    }
    let mut time = 0;
    let mut at = || {
        time += 10;
        Point { location, time }
    };
    for pair in 0..pairs {
        sink.item(&Item::Enter(Enter {
            at: at(),
            region: RegionId((pair % u64::from(REGIONS)) as u32),
            part: Part::First,
            awaited: None,
            arguments: &[],
        }));
        sink.item(&Item::Leave(Leave { at: at(), arguments: &[] }));
    }
    sink.finish().expect("written");
    processor_time() - start
}

/// The CPU time of this process in seconds, as the reference measures its own.
fn processor_time() -> f64 {
    let ticks = |field: &str| field.parse::<f64>().expect("a number") * 1e-9;
    // The first field is the time on a CPU in nanoseconds.
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    ticks(text.split(' ').next().expect("a field"))
}
