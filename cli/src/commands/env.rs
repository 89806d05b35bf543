//! `omptrace env`: the variables that `record` would set, for the scripts of batch systems.

use std::ffi::OsStr;
use std::io::Write;

use clap::Args;

use crate::options::shared::{Libgomp, Tracer, WhenLibgomp};
use crate::output::failure::{Outcome, Result};
use crate::output::message;
use crate::output::streams;
use crate::record::find_tracer;
use crate::record::libgomp::{self, Decision};
use crate::record::preload;
use crate::record::tunables;
use crate::system::library_search::Loader;

/// `omptrace env`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eval \"$(omptrace env -o 'traces/%e.%r.%p.omptrace')\"
  srun ./app
  omptrace recover traces/*.omptrace")]
pub(crate) struct Env {
    /// How to record.
    #[command(flatten)]
    pub(crate) tracer: Tracer,
    /// Programs built by GCC.
    #[command(flatten)]
    pub(crate) libgomp: Libgomp,
}

/// Prints lines for `sh`.
///
/// # Errors
/// The tracer is not there, or an option cannot be met.
pub(crate) fn run(arguments: &Env) -> Result<Outcome> {
    let library = find_tracer::find(arguments.tracer.tool.as_deref())?;
    let mut lines = vec![prepend("OMP_TOOL_LIBRARIES", library.as_os_str())];
    for (name, value) in find_tracer::settings(&arguments.tracer)? {
        lines.push(format!("export {name}={}", message::shell_word(&value)));
    }
    // Which programs will run is not known: only what is asked for is done.
    let decision = match arguments.libgomp.libgomp {
        WhenLibgomp::Auto | WhenLibgomp::Keep if !arguments.libgomp.audit => Decision::Keep,
        _ => libgomp::decide(&arguments.libgomp, &library, &[], &Loader::new())?,
    };
    let preloaded = preload::libraries(&decision, &library, arguments.tracer.preload);
    let audits = matches!(decision, Decision::ObserveBy(_)) && arguments.libgomp.audit;
    for (name, value) in tunables::additions(&preloaded, audits, &[], &Loader::new()) {
        lines.push(prepend(name, OsStr::new(&value)));
    }
    for library in preloaded.into_iter().rev() {
        lines.push(prepend("LD_PRELOAD", preload::named(library)?));
    }
    if let (Decision::ObserveBy(adapter), true) = (&decision, arguments.libgomp.audit) {
        lines.push(prepend("LD_AUDIT", preload::named(adapter)?));
    }
    let mut stdout = streams::data();
    for line in lines {
        writeln!(stdout, "{line}")?;
    }
    stdout.flush()?;
    Ok(Outcome::Success)
}

/// A line that puts `value` before what the variable holds when it is run.
fn prepend(name: &str, value: &OsStr) -> String {
    format!("export {name}={}${{{name}:+:${name}}}", message::shell_word(value))
}
