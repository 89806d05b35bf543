//! The files that the page of `omptrace report` ships inside: of npm's packages, as the lock file pins them.

use std::fs;

use crate::process;
use crate::process::{root, target};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;
use crate::setup::tools::npm;

/// Files of a package, and their names beside our own.
const FILES: [(&str, &str); 3] = [
    ("uplot/dist/uPlot.iife.min.js", "uPlot.iife.min.js"),
    ("uplot/dist/uPlot.min.css", "uPlot.min.css"),
    ("uplot/LICENSE", "uPlot.LICENSE"),
];

/// Fetches them anew. They are checked in: who builds omptrace needs no npm. A test compares them with what npm has.
///
/// # Errors
/// npm cannot be run, has another file than the lock file says, or a file cannot be written.
pub(crate) fn fetch(install: bool) -> Result<()> {
    setup::ensure(Purpose::Tests, install)?;
    let assets = root().join("analysis/report/assets");
    let folder = target().join("assets");
    fs::create_dir_all(&folder)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(assets.join(name), folder.join(name))?;
    }
    process::run(npm(&["ci"]).arg(&folder))?;
    for (file, name) in FILES {
        fs::copy(folder.join("node_modules").join(file), assets.join("vendor").join(name))?;
    }
    Ok(())
}
