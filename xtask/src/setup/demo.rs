//! The newcomer's first command: from nothing to an answer.

use crate::omptrace::{build_quickly, omptrace_in, quick, trace_example};
use crate::process::{self, target};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;

/// Traces the example that offloads and the stencil, and ends with the stencil's answer, its report and what to type next.
///
/// # Errors
/// One of the steps failed; it has said why.
pub(crate) fn run(install: bool) -> Result<()> {
    eprintln!(
        "The demo takes about 6 minutes on two CPUs, most of them for a build that uses 1 GB in target/."
    );
    setup::ensure(Purpose::Demo, install)?;
    build_quickly()?;
    let folder = target().join("demo");
    let product = quick();
    let offload = trace_example(&product, "offload.c", &[], &folder)?;
    let traced = trace_example(&product, "stencil.c", &[], &folder)?;
    let report = folder.join("stencil.html");
    process::run(omptrace_in(&product, &["report", "-o"]).arg(&report).arg(&traced.trace))?;
    process::run(omptrace_in(&product, &["stats"]).arg(&traced.trace))?;
    println!(
        "
This is the result for examples/stencil.c. The same as a web page, with a timeline of all threads:
  {}
Its timeline in Perfetto, and a timeline with tracks of a device:
  {program} view {}
  {program} view {}
Your own program:
  {program} record -o app.omptrace -- ./app
This build records as fast as a release, but analyses traces at less than half the speed: cargo build --release",
        report.display(),
        traced.trace.display(),
        offload.trace.display(),
        program = product.join("omptrace").display(),
    );
    Ok(())
}
