//! Possible improvements, as cards.

use super::*;
use omptrace_analysis::answers::{Position, Rule, tracing_note};

/// The command that opens a moment in a viewer.
pub(crate) fn view_command(view: &str, moment: &Moment) -> String {
    let begin = moment.begin_ns.max(0);
    let end = moment.end_ns.max(begin.saturating_add(1));
    format!("{view} --window {begin}ns..{end}ns")
}

/// Writes possible improvements, as cards.
pub(crate) fn findings(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let answers = &report.stats.answers;
    if answers.findings.is_empty() {
        if !report.stats.looks_for_findings() {
            return;
        }
        section(out, "findings", "Findings", "");
        let _ = write!(out, "<p>{}</p></section>", answers.no_finding());
        return;
    }
    let lead = "Each saving is the wall time that the program would save without the problem, estimated by a replay of the run. The savings of several findings may overlap, so do not add them.";
    section(out, "findings", "Findings", lead);
    if let Some(note) = tracing_note(answers) {
        let _ = write!(out, "<p>Note that {note}.</p>");
    }
    *out += "<ol class=cards>";
    let shown = (limits.rows / 10).max(1);
    for (index, finding) in answers.findings.iter().take(shown).enumerate() {
        let share = finding.gain_ns as f64 / answers.duration_ns.max(1) as f64;
        let _ = write!(
            out,
            "<li class=card id=finding-{index} data-id=\"{}\"><h3>{} <code>{}</code></h3><p class=gain><b \
             data-value={}>{}</b> <span>saving, {} of the wall time</span></p><span class=at style=\"width:{:.2}%\"><i \
             class=c-useful></i></span><p class=advice>{}</p>",
            Text(&finding.id),
            Text(Rule::by_id(&finding.id).map_or(&*finding.id, |rule| rule.title)),
            Text(&place(&finding.place)),
            finding.gain_ns,
            Text(&time(finding.gain_ns)),
            percent(share),
            (share * 100.0).clamp(0.0, 100.0),
            Text(&finding.text)
        );
        // Where the line is not the construct's own, neither is the function.
        if let Some(function) = &finding.place.function
            && finding.place.position != Some(Position::Inside)
        {
            let _ = write!(out, "<p class=note>in <code>{}</code></p>", Text(&short(function)));
        }
        *out += "<dl>";
        for (name, value) in &finding.evidence {
            let (name, value) = figure(name, value);
            let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Text(&name), Text(&short(&value)));
        }
        let _ = write!(out, "<div><dt>rule</dt><dd><code>{}</code></dd></div></dl>", Text(&finding.id));
        instances(out, report, &finding.instances);
        *out += "</li>";
    }
    *out += "</ol>";
    left_out(out, answers.findings.len(), shown, &format!("{} --select findings", report.stats_command));
    *out += "</section>";
}

fn instances(out: &mut String, report: &Report<'_>, instances: &[Moment]) {
    if instances.is_empty() {
        return;
    }
    *out += "<details><summary>worst occurrences</summary><ul class=commands>";
    for moment in instances {
        let ns = moment.end_ns.abs_diff(moment.begin_ns);
        let at = moment.begin_ns.max(0).cast_unsigned();
        let _ = write!(
            out,
            "<li>{} long, {} into the run, on {} <code class=copy>{}</code></li>",
            Text(&time(ns)),
            Text(&time(at)),
            Text(&short(&moment.thread)),
            Text(&view_command(&report.view, moment))
        );
    }
    *out += "</ul></details>";
}

/// A figure of a finding in words.
fn figure(name: &str, value: &Value) -> (String, String) {
    let words = |name: &str| name.replace('_', " ");
    match (name.strip_suffix("_ns"), value) {
        (Some(name), Value::Number(ns)) => (words(name), ns.as_u64().map_or(format!("{ns} ns"), time)),
        (_, Value::Number(number)) => (words(name), number.as_u64().map_or(number.to_string(), with_commas)),
        (_, Value::String(text)) => (words(name), text.clone()),
        (_, other) => (words(name), other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        let shown = |name: &str, value: Value| figure(name, &value);
        assert_eq!(shown("event_cost_ns", 9.18.into()), ("event cost".to_owned(), "9.18 ns".to_owned()));
        assert_eq!(shown("cost_ns", 2_000.into()), ("cost".to_owned(), "2.00 us".to_owned()));
        assert_eq!(shown("tasks", 2_000.into()), ("tasks".to_owned(), "2,000".to_owned()));
    }
}
