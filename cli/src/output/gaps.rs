//! Warnings about what a timeline lacks.

use omptrace_timeline::Report;
use omptrace_trace_format::Severity;

use crate::output::message;

/// Prints what is missing in the timeline. The export itself notes repaired quirks of runtimes.
pub(crate) fn report_gaps(report: &Report) {
    for process in &report.processes {
        for (severity, note) in process.notes() {
            if severity > Severity::Note {
                let note = message::without_severity(severity, &note);
                message::warning(&format!("{}: {note}", process.name));
            }
        }
    }
}
