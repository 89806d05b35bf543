//! The documentation's pictures: each example traced anew and shown by the real Perfetto UI.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::omptrace::{build, omptrace, release, trace_example};
use crate::process;
use crate::process::{root, target};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;
use crate::setup::tools::{node, tools};

/// The examples that have a picture named after them, with arguments. They make a run of which one still sees
/// something when all of it is in the picture.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("stencil.c", &["3000", "5"]),
    ("task_tree.c", &["11", "2"]),
    ("lock_fight.c", &["300"]),
    ("nested.c", &["960", "2"]),
    ("heat.f90", &["8"]),
    ("offload.c", &["3000000", "4"]),
];

/// The one that is shown as `omptrace view` opens it, with its finding and the critical path on top.
const OF_VIEW: &str = "stencil.c";

/// The one that the page of `omptrace report` is shown of.
const OF_REPORT: &str = "lock_fight.c";

/// The time span that is shown: what comes before the first parallel or target region is the start of the
/// runtime.
const SPAN: &str = "select min(ts) as ts, max(ts + dur) - min(ts) as dur from slice
    where name like 'parallel%' or name like 'target%'";

/// Makes `docs/images/NAME.png` for each example.
///
/// # Errors
/// One of the steps failed; it has said why.
pub(crate) fn run(install: bool) -> Result<()> {
    setup::ensure(Purpose::Tests, install)?;
    build()?;
    let pictures = root().join("docs/images");
    fs::create_dir_all(&pictures)?;
    for (example, arguments) in EXAMPLES {
        let traced = trace_example(&release(), example, arguments, &target().join("screenshots"))?;
        if *example == OF_VIEW {
            view(&traced.trace, &pictures.join(example).with_extension("png"))?;
            continue;
        }
        process::run(
            node(&["tests/tools/perfetto_ui.mjs"])
                .arg(&traced.timeline)
                .args(["--expand", "--show", SPAN])
                .arg("--screenshot")
                .arg(pictures.join(example).with_extension("png"))
                .env("OMPTRACE_TOOLS", tools())
                // Its answer to queries, of which there are none.
                .stdout(Stdio::null()),
        )?;
        if *example == OF_REPORT {
            report(&traced.trace, &pictures)?;
        }
    }
    Ok(())
}

/// What `omptrace view` opens of a trace.
fn view(trace: &Path, picture: &Path) -> Result<()> {
    let mut words = omptrace(&["view", "--no-browser", "--ui"]);
    let mut serving = words.arg(tools().join("perfetto-ui")).arg(trace).stdout(Stdio::piped()).spawn()?;
    let mut address = String::new();
    BufReader::new(serving.stdout.take().expect("it is piped")).read_line(&mut address)?;
    process::run(
        node(&["tests/tools/address.mjs", address.trim(), "--screenshot"])
            .arg(picture)
            .env("OMPTRACE_TOOLS", tools())
            .stdout(Stdio::null()),
    )?;
    // It ends when the browser has the trace.
    match serving.wait()?.success() {
        true => Ok(()),
        false => Err("omptrace view failed".into()),
    }
}

/// The page of `omptrace report` about a trace: its top, and its timeline.
fn report(trace: &Path, pictures: &Path) -> Result<()> {
    let folder = target().join("screenshots");
    let page = folder.join("report.html");
    process::run(omptrace(&["report", "-o"]).arg(&page).arg(trace))?;
    process::run(
        node(&["tests/tools/report.mjs"])
            .arg(&page)
            .arg("--folder")
            .arg(&folder)
            .env("OMPTRACE_TOOLS", tools())
            .stdout(Stdio::null()),
    )?;
    fs::copy(folder.join("top.png"), pictures.join("report.png"))?;
    fs::copy(folder.join("lanes.png"), pictures.join("report_time.png"))?;
    Ok(())
}
