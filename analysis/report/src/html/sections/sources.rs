//! The sources, a bar beside each line that has time.

use super::*;
use crate::html::source;

/// Lines of a source around those that have time.
const LINES_AROUND: u32 = 3;

/// The letters of a source line that are shown.
const MAX_LINE: usize = 200;

/// The sources, a bar beside each line that has time.
pub(crate) fn sources(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let Some(files) = report.sources else { return };
    let by_line = source::by_line(report.stats, report.overview);
    if by_line.is_empty() {
        return;
    }
    let lead = "The useful time of each source line, and the time that threads lost because of this line."
        .to_owned();
    let lead = match source::is_any_near(report.stats) {
        true => {
            lead + " If the line of a construct is not known exactly, the time of the construct is shown at a line nearby."
        }
        false => lead,
    };
    section(out, "source", "Source", &lead);
    let total = report.stats.answers.accounting.total().max(1);
    let mut room = limits.lines;
    let mut held = Vec::new();
    for path in source::files(&by_line) {
        let lines = &by_line[&path];
        let Some(file) = files.iter().find(|file| file.path == path) else {
            continue;
        };
        let shown = shown_lines(lines, file.lines.len());
        if shown.len() > room {
            let _ = write!(
                out,
                "<p class=more>{}: left out, because the report would be too large</p>",
                Text(&short(&path))
            );
            continue;
        }
        room -= shown.len();
        held.push(format!("<code>{}</code>", Text(&short(&file.found))));
        let _ = write!(out, "<h3><code>{}</code></h3>", Text(&short(&path)));
        if file.is_newer {
            *out += "<p class=warn>This file has changed since the program was built or started, so its lines may have moved.</p>";
        }
        let _ = write!(
            out,
            "<div class=scroll tabindex=0 role=region aria-label=\"{}\">",
            Text(&format!("lines of {}", short(&path)))
        );
        *out += "<table class=source><thead class=hidden><tr><th scope=col>line</th><th \
                 scope=col>share</th><th scope=col>time</th><th scope=col>source</th></tr></thead><tbody>";
        let most = lines.values().map(Accounting::total).max().unwrap_or(1).max(1);
        let mut before = 0;
        for line in shown {
            if before > 0 && line > before + 1 {
                *out += "<tr class=gap><td colspan=4>\u{22ef}</td></tr>";
            }
            before = line;
            let text = file.lines.get(line as usize - 1).map_or("", String::as_str);
            let text: String = text.chars().take(MAX_LINE).collect();
            let sums = lines.get(&line);
            let (share, width) = sums.map_or((String::new(), 0.0), |sums| {
                let ns = sums.total();
                (percent(ns as f64 / total as f64), ns as f64 * 100.0 / most as f64)
            });
            let class = if sums.is_some() { " class=hot" } else { "" };
            let bar = sums.map(bar).unwrap_or_default();
            let _ = write!(
                out,
                "<tr{class}><td class=n>{line}</td><td class=n>{share}</td><td class=b><span \
                 style=\"display:block;width:{width:.1}%\">{bar}</span></td><td><code>{}</code></td></tr>",
                Text(&text)
            );
        }
        *out += "</tbody></table></div>";
    }
    if !held.is_empty() {
        let _ = write!(
            out,
            "<p class=more>This report quotes these files from the machine on which it was written: {}</p>",
            held.join(", ")
        );
    }
    let missing: Vec<String> = by_line
        .keys()
        .filter(|path| !files.iter().any(|file| file.path == **path))
        .take(limits.rows / 10)
        .map(|path| format!("<code>{}</code>", Text(&short(path))))
        .collect();
    if !missing.is_empty() {
        let _ = write!(
            out,
            "<p class=more>Not shown, because they are not among the sources that <code>report</code> found or may quote: {}</p>",
            missing.join(", ")
        );
    }
    *out += "</section>";
}

/// Lines with time, and some around them.
fn shown_lines(lines: &BTreeMap<u32, Accounting>, length: usize) -> Vec<u32> {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut shown = std::collections::BTreeSet::new();
    for line in lines.keys().filter(|line| (1..=length).contains(*line)) {
        let first = line.saturating_sub(LINES_AROUND).max(1);
        shown.extend(first..=line.saturating_add(LINES_AROUND).min(length));
    }
    shown.into_iter().collect()
}
