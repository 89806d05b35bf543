//! The newcomer's first command: from nothing to a timeline.

use crate::omptrace::{build, omptrace, release, trace_example};
use crate::process;
use crate::process::target;
use crate::result::Result;
use crate::setup;
use crate::setup::requirements::Purpose;

/// Traces the stencil example and the one that offloads, and says how to look at the results.
///
/// # Errors
/// One of the steps failed; it has said why.
pub(crate) fn run(install: bool) -> Result<()> {
    eprintln!(
        "The demo takes about 10 minutes on two processors, most of them a build of 1.2 GB in target/."
    );
    setup::ensure(Purpose::Demo, install)?;
    build()?;
    let traced = trace_example("stencil.c", &[], &target().join("demo"))?;
    let offload = trace_example("offload.c", &[], &target().join("demo"))?;
    process::run(omptrace(&["info"]).arg(&traced.trace))?;
    println!(
        "
The timeline:
  {program} view {}
or open https://ui.perfetto.dev in a browser, choose \"Open trace file\" and take
  {}
The top of examples/stencil.c says what to look for. A program that offloads, with tracks for its device:
  {program} view {}
The same for a program of yours:
  {program} record -o app.omptrace -- ./app
  {program} view app.omptrace",
        traced.trace.display(),
        traced.timeline.display(),
        offload.trace.display(),
        program = release().join("omptrace").display(),
    );
    Ok(())
}
