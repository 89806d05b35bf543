//! `omptrace env`: the variables that `record` would set, for the scripts of batch systems.

use std::ffi::OsStr;
use std::io::{self, Write};

use crate::arguments::{Env, WhenLibgomp};
use crate::failure::{Outcome, Result};
use crate::find_tracer;
use crate::libgomp::{self, Decision};
use crate::loader::Loader;
use crate::message;
use crate::preload;

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
        WhenLibgomp::Observe | WhenLibgomp::Replace => {
            libgomp::decide(&arguments.libgomp, &library, &[], &Loader::new())?
        }
        WhenLibgomp::Auto | WhenLibgomp::Keep => Decision::Keep,
    };
    let preloaded = preload::libraries(&decision, &library, arguments.tracer.preload);
    for library in preloaded.into_iter().rev() {
        lines.push(prepend("LD_PRELOAD", preload::named(library)?));
    }
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{line}")?;
    }
    Ok(Outcome::Success)
}

/// A line that puts `value` before what the variable holds when it is run.
fn prepend(name: &str, value: &OsStr) -> String {
    format!(
        "export {name}={}${{{name}:+:${name}}}",
        message::shell_word(value)
    )
}
