//! Where the numbers come from.

use super::*;
use crate::text::info::end_words;

/// Where the numbers come from, as names and values.
pub(crate) fn provenance(report: &Report<'_>) -> Vec<(String, String)> {
    /// More are counted.
    const MAX_TRACES: usize = 8;
    let mut rows: Vec<(String, String)> = Vec::new();
    let infos = report.infos;
    // What all have in common is said once.
    let mut each = |name: &str, value: &dyn Fn(&omptrace_analysis::Info) -> String| {
        let mut seen: Vec<String> = Vec::new();
        for value in infos.iter().map(value).filter(|value| !value.is_empty()) {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        let more = seen.len().saturating_sub(MAX_TRACES);
        for value in seen.into_iter().take(MAX_TRACES) {
            rows.push((name.to_owned(), value));
        }
        if more > 0 {
            rows.push((name.to_owned(), format!("and {more} more")));
        }
    };
    let words = |words: &[String]| words.join(" ");
    each("command line", &|info| words(&info.program.command_line));
    each("directory", &|info| info.program.directory.clone());
    each("host", &|info| match info.machine.cpus {
        0 => info.machine.host.clone(),
        cpus => format!("{}, {}, {}", info.machine.host, info.machine.cpu, counted(cpus.into(), "CPU")),
    });
    each("began", &|info| info.start.clone());
    each("ended", &|info| end_words(info));
    each("MPI", &|info| info.mpi_note.clone().unwrap_or_default());
    each("OpenMP runtime", &|info| info.runtime.version.clone());
    each("tools interface", &|info| info.runtime.dialect.clone());
    each("tracer", &|info| info.runtime.tracer.clone());
    each("trace", &|info| {
        format!(
            "{}, {} bytes, {}",
            info.file,
            with_commas(info.size.file_bytes),
            counted(info.events, "event")
        )
    });
    each("lost events", &|info| match info.lost {
        0 => "none".to_owned(),
        lost => with_commas(lost),
    });
    each("corrected", &|info| {
        let findings = info.findings.iter().take(MAX_TRACES).map(|finding| finding.text.clone());
        findings.collect::<Vec<_>>().join("; ")
    });
    each("the tracer\u{2019}s messages", &|info| {
        info.messages.iter().take(MAX_TRACES).cloned().collect::<Vec<_>>().join("; ")
    });
    let accounting = &report.stats.answers.accounting;
    let tracer = accounting[Cause::Tracer];
    let share = accounting.share(Cause::Tracer).unwrap_or(0.0);
    rows.push((
        "the tracer\u{2019}s own cost".to_owned(),
        format!(
            "{} on all threads ({} of their time), spent on writing event buffers to the trace",
            time(tracer),
            percent(share)
        ),
    ));
    for note in report.stats.notes.iter().take(MAX_TRACES * 2) {
        rows.push(("corrected or missing".to_owned(), note.clone()));
    }
    let unknown = report.stats.processes.iter().flat_map(|process| &process.unknown);
    let unknown: std::collections::BTreeSet<&String> = unknown.collect();
    for note in unknown {
        rows.push(("not available".to_owned(), note.clone()));
    }
    rows
}

/// Writes the origin as a section.
pub(crate) fn origin(out: &mut String, report: &Report<'_>) {
    section(out, "origin", "Run details", "");
    *out += "<table class=facts><tbody>";
    let mut before = String::new();
    for (name, value) in provenance(report) {
        let shown = if name == before { "" } else { &*name };
        let value: String = value.chars().take(2_000).collect();
        let _ = write!(out, "<tr><th scope=row>{}</th><td>{}</td></tr>", Text(shown), Text(&value));
        before = name;
    }
    *out += "</tbody></table></section>";
}
