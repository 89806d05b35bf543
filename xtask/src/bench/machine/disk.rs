//! Bytes that a run leaves on the disk.

use std::fs;
use std::path::Path;

use crate::omptrace::omptrace;
use crate::process::output;
use crate::result::Result;

use crate::bench::case::Case;
use crate::bench::runs::{output_folder, trace};
use crate::bench::tools::{Leaves, Tool};

/// Bytes per event of what the tool's last run left; ours sealed. `None` for tools that leave nothing.
///
/// # Errors
/// The trace cannot be completed.
pub(crate) fn bytes_per_event(case: &Case<'_>, tool: &Tool) -> Result<Option<f64>> {
    match tool.leaves {
        Leaves::Nothing => return Ok(None),
        Leaves::Trace => {
            output(omptrace(&["recover"]).arg(trace(tool)))?;
        }
        Leaves::Files | Leaves::Session => {}
    }
    Ok(Some(size(&output_folder(tool))? as f64 / case.events as f64))
}

/// Bytes of all files below the folder.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}
