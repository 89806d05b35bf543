//! Archives of OTF2, in a folder in memory.

use omptrace_trace_format::{Reader, Severity};
use omptrace_viewer_export::{ConvertOptions, Format, convert_to_folder};
use otf2_archive::check_archive;

use faults::FAULTS_OF_TRACES;

#[path = "../../../viewer-export/tests/library/faults.rs"]
mod faults;

/// Converts the inputs to an archive, which can be read and is as OTF2 wants it.
pub fn is_sound(inputs: &[&Reader], format: &Format, options: &ConvertOptions) {
    let folder = tempfile::tempdir_in(crate::memory()).expect("a folder");
    convert_to_folder(inputs, format, options, folder.path(), &mut |_| ()).expect("memory can be written");
    let mut findings = check_archive(&folder.path().join("traces.otf2"));
    findings.retain(|found| found.severity > Severity::Note && !FAULTS_OF_TRACES.contains(&found.name));
    assert!(findings.is_empty(), "{findings:?}");
}
