//! Whether a trace is sound: nothing damaged, nothing lost, nothing that contradicts itself.

use omptrace_trace_format::{Diagnostic, DiagnosticKind, Finding, Reader, Severity};

use omptrace_symbols::nameless;
use omptrace_timeline::null_sink::NullSink;
use omptrace_timeline::{ProcessReport, Repair, halves, replay};

/// Reads the whole trace and lists what is not as it should be. In the file: damage and gaps (check sums, sequences,
/// blocks). In the events: what was lost, times that go back, begins without end, ends without begin, ids that were never
/// announced. Ordered by severity, the worst first. The trace is sound unless a warning or an error is among them.
pub fn check(reader: &Reader) -> Vec<Finding> {
    let mut report = replay(&[reader], &mut NullSink, &mut |_| {});
    let process = report.processes.first_mut();
    let mut findings = process.map_or_else(Vec::new, |process| {
        process.diagnostics.extend(reader.flaws_elsewhere());
        process.diagnostics.iter_mut().for_each(count_as_damage);
        findings(process)
    });
    findings.extend(of_recording(reader));
    let taken_back = reader.metadata().taken_back();
    findings.extend(taken_back.map(|(callback, why)| Finding {
        severity: Severity::Note,
        name: "withheld_callback",
        text: format!("{callback}: {why}"),
    }));
    findings
}

/// What a reader has twice is damaged all the same: another reader, or more damage, may need it.
fn count_as_damage(diagnostic: &mut Diagnostic) {
    let has_another = [DiagnosticKind::BlockHeaderDamaged, DiagnosticKind::ChunkCopyDamaged];
    if has_another.contains(&diagnostic.kind) && !diagnostic.while_sealing {
        diagnostic.severity = diagnostic.severity.max(Severity::Warning);
    }
}

/// Findings about things that the recording left out: names of functions, and one end of things.
pub(crate) fn of_recording(reader: &Reader) -> impl Iterator<Item = Finding> {
    let note = |name, text| Finding { severity: Severity::Note, name, text };
    let nameless = nameless(reader).into_iter();
    let nameless =
        nameless.map(move |(module, problem)| note("names_missing", format!("{module}: {problem}")));
    let halves = halves(reader.metadata()).into_iter();
    nameless.chain(halves.map(move |text| note("half_a_pair", text)))
}

/// Findings by the report of an interpreted process.
pub(crate) fn findings(process: &ProcessReport) -> Vec<Finding> {
    let lost = process.losses().map(|(severity, name, text)| Finding { severity, name, text });
    let damage = process.diagnostics.iter().map(of_diagnostic);
    let repairs = process.repairs.iter().map(|repair| of_repair(process, repair));
    let mut findings: Vec<Finding> = damage.chain(lost).chain(repairs).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn of_diagnostic(diagnostic: &Diagnostic) -> Finding {
    let text = diagnostic.to_string();
    let prefix = format!("{}: ", diagnostic.severity.name());
    Finding {
        severity: diagnostic.severity,
        name: diagnostic.kind.name(),
        text: text.strip_prefix(&prefix).unwrap_or(&text).to_owned(),
    }
}

fn of_repair(process: &ProcessReport, repair: &Repair) -> Finding {
    let cause = repair.cause;
    let (place, stream) = (repair.first.time, repair.first.stream);
    let on = match &process.runtime[..] {
        "" => String::new(),
        runtime => format!(" on {runtime}"),
    };
    Finding {
        severity: process.severity(repair),
        name: cause.name(),
        text: format!("{} ({}{on}; first in stream {stream} at {place} ns)", cause.text(), repair.count),
    }
}
