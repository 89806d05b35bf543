//! Checks whether a trace is sound: nothing damaged, nothing lost, no contradictions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use omptrace_trace_format::{Diagnostic, DiagnosticKind, Finding, Reader, Severity};

use omptrace_symbols::nameless;
use omptrace_timeline::null_sink::NullSink;
use omptrace_timeline::{ProcessReport, RankMessages, Repair, Timeline, Unmatched, halves, replay};

/// Reads the whole trace and lists all problems. In the file: damage and gaps (check sums, sequences, blocks). In the
/// events: what was lost, times that go back, begins without end, ends without start, ids that were never announced.
/// Ordered by severity, the worst first. The trace is sound unless a warning or an error is among them.
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

/// Checks across the traces of all ranks of an MPI job, by trace path: messages with only one end, and operations left
/// open. Each finding is only a note, because a program may leave operations open, and a recording may start or end in
/// the middle of an exchange. Returns nothing if ranks are missing.
pub fn check_job(readers: &[&Reader]) -> BTreeMap<PathBuf, Vec<Finding>> {
    let timeline = Timeline::of(readers).with_ranks();
    let Some(ranks) = timeline.ranks() else { return BTreeMap::new() };
    let processes = (0..readers.len()).filter_map(|number| {
        let (reader, _) = timeline.process(number)?;
        Some((reader.path().to_owned(), of_messages(ranks.process(number)?)))
    });
    processes.collect()
}

fn of_messages(messages: &RankMessages) -> Vec<Finding> {
    let partner = |unmatched: &Unmatched, word: &str| match unmatched.first {
        Some((rank, tag)) => format!(" (first {word} rank {rank}, tag {tag})"),
        None => String::new(),
    };
    let to = partner(&messages.unmatched_sends, "to");
    let from = partner(&messages.unmatched_receives, "from");
    let rows = [
        (
            messages.unmatched_sends.count,
            "mpi_unmatched_sends",
            format!("MPI messages were sent, but no rank received them{to}"),
        ),
        (
            messages.unmatched_receives.count,
            "mpi_unmatched_receives",
            format!("MPI receives were started, but no rank sent a matching message{from}"),
        ),
        (
            messages.truncated.count,
            "mpi_truncated_messages",
            format!(
                "MPI messages were longer than the buffers that received them{}",
                partner(&messages.truncated, "from")
            ),
        ),
        (
            messages.forbidden.count,
            "mpi_forbidden_calls",
            format!(
                "MPI calls were made by threads that must not call MPI at thread level {} (first {})",
                messages.forbidden.level, messages.forbidden.first
            ),
        ),
        (
            messages.open_requests,
            "mpi_open_requests",
            "MPI requests were neither completed nor freed".to_owned(),
        ),
        (
            messages.open_persistent,
            "mpi_open_persistent_requests",
            "persistent MPI requests were not freed before MPI_Finalize".to_owned(),
        ),
        (
            messages.open_communicators,
            "mpi_open_communicators",
            "MPI communicators were not freed before MPI_Finalize".to_owned(),
        ),
    ];
    let is_there = |(count, ..): &(u64, &str, String)| *count > 0;
    let finding =
        |(count, name, text)| Finding { severity: Severity::Note, name, text: format!("{count} {text}") };
    rows.into_iter().filter(is_there).map(finding).collect()
}

/// Counts blocks that a second copy repaired as damaged, too: another reader, or more damage, may need the copy.
fn count_as_damage(diagnostic: &mut Diagnostic) {
    let has_another = [DiagnosticKind::BlockHeaderDamaged, DiagnosticKind::ChunkCopyDamaged];
    if has_another.contains(&diagnostic.kind) && !diagnostic.while_sealing {
        diagnostic.severity = diagnostic.severity.max(Severity::Warning);
    }
}

/// Findings about what the recording lacks: function names, and the other end of pairs.
pub(crate) fn of_recording(reader: &Reader) -> impl Iterator<Item = Finding> {
    let note = |name, text| Finding { severity: Severity::Note, name, text };
    let nameless = nameless(reader).into_iter();
    let nameless =
        nameless.map(move |(module, problem)| note("names_missing", format!("{module}: {problem}")));
    let halves = halves(reader.metadata()).into_iter();
    nameless.chain(halves.map(move |text| note("half_a_pair", text)))
}

/// Findings derived from the report of an interpreted process.
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
