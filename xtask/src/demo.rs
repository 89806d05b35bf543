//! The newcomer's first command: from nothing to a timeline.

use crate::Result;
use crate::omptrace::{build, omptrace, release, trace_example};
use crate::process::{self, target};
use crate::requirements::Purpose;
use crate::setup;

/// Traces the stencil example and says how to look at the result.
///
/// # Errors
/// One of the steps failed; it has said why.
pub(crate) fn run(install: bool) -> Result<()> {
    setup::ensure(Purpose::Demo, install)?;
    build()?;
    let traced = trace_example("stencil.c", &[], &target().join("demo"))?;
    process::run(omptrace(&["info"]).arg(&traced.trace))?;
    println!(
        "
The timeline:
  {program} view {}
or open https://ui.perfetto.dev in a browser, choose \"Open trace file\" and take
  {}
What to look for is told at the top of examples/stencil.c. The same for a program of yours:
  {program} record -o app.omptrace -- ./app
  {program} view app.omptrace",
        traced.trace.display(),
        traced.timeline.display(),
        program = release().join("omptrace").display(),
    );
    Ok(())
}
