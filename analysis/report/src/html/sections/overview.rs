//! The sentence that says it all, where the time went as bars, and the picture of all threads over time.

use super::*;
use crate::text;

/// Places that are shown below a cause.
const MAX_PLACES: usize = 4;

/// The sentence that says it all, and the greatest figures.
pub(crate) fn headline(out: &mut String, report: &Report<'_>) {
    let answers = &report.stats.answers;
    let headline = text::overview::headline(answers);
    let headline = headline.as_deref().unwrap_or("Nothing was recorded, so there is no time to analyse.");
    let headline = match report.diff.and_then(text::diff::duration_words) {
        Some(change) => format!("{change} First run after the change: {headline}"),
        None => headline.to_owned(),
    };
    // A number stays with its unit.
    let headline = headline.replace(" %", "\u{a0}%");
    let _ = write!(out, "<p id=headline>{}</p>", Text(&headline));
    *out += "<ul class=tiles id=tiles>";
    let mut tile = |id: &str, label: &str, text: &str, value: f64| {
        let _ = write!(
            out,
            "<li><span class=label>{label}</span> <b id={id} data-value=\"{value}\">{}</b></li>",
            Text(text)
        );
    };
    tile("duration", "wall time", &time(answers.duration_ns), answers.duration_ns as f64);
    tile("threads", "threads", &with_commas(answers.threads.into()), f64::from(answers.threads));
    if let Some(share) = answers.efficiency.parallel {
        tile("parallel", "parallel efficiency", &percent(share), share);
    }
    if let Some(best) = answers.findings.first() {
        tile("gain", "largest saving found", &time(best.gain_ns), best.gain_ns as f64);
    }
    *out += "</ul>";
}

/// The key to the colours.
pub(crate) fn legend(out: &mut String, report: &Report<'_>) {
    let sums = palette::sums(&report.stats.answers.accounting);
    *out += "<ul class=legend aria-label=colours>";
    for (group, ns) in GROUPS.iter().zip(sums) {
        if ns > 0 {
            let _ = write!(
                out,
                "<li title=\"{}\"><i class=c-{}></i>{}</li>",
                Text(group.meaning),
                group.key,
                group.label
            );
        }
    }
    *out += "</ul>";
}

/// Where the threads' time went, as bars within bars.
pub(crate) fn tree(out: &mut String, report: &Report<'_>) {
    let answers = &report.stats.answers;
    let total = answers.accounting.total();
    let lead = format!(
        "Total thread time is {} \u{d7} {}. The times of all causes add up to this total. The times of the locations below a cause add up to the time of this cause.",
        counted(answers.threads.into(), "thread"),
        time(answers.duration_ns)
    );
    section(out, "went", "Where the time went", &lead);
    legend(out, report);
    *out += "<div class=scroll tabindex=0 role=region aria-label=\"thread time by cause\"><table id=tree class=tree><caption class=hidden>The threads\u{2019} time by cause and \
             place</caption><thead><tr><th scope=col>cause</th><th scope=col class=n>thread time</th><th scope=col \
             class=n>share</th><th scope=col class=wide><span class=hidden>bar</span></th></tr></thead><tbody>";
    let mut row = |level: u32, key: &str, name: &str, title: &str, ns: u64, before: u64| {
        let share = |ns: u64| ns as f64 * 100.0 / total.max(1) as f64;
        let _ = write!(
            out,
            "<tr class=l{level} data-key=\"{key}\"><th scope=row title=\"{}\">{}</th><td class=n data-value={ns}>{}</td><td \
             class=n>{}</td><td class=wide><span class=at style=\"margin-left:min({:.3}%,100% - 1px);width:{:.3}%\"><i \
             class=c-{key}></i></span></td></tr>",
            Text(title),
            Text(name),
            Text(&time(ns)),
            percent(share(ns) / 100.0),
            share(before),
            share(ns)
        );
    };
    row(0, "all", "all threads", "The time of all threads together", total, 0);
    let mut causes: Vec<(Cause, u64)> = answers.accounting.iter().filter(|(_, ns)| *ns > 0).collect();
    causes.sort_by_key(|(cause, ns)| (cause.is_loss(), std::cmp::Reverse(*ns)));
    let mut before = 0;
    for (cause, ns) in causes {
        let key = palette::of(cause).key;
        row(1, key, cause.title(), cause.meaning(), ns, before);
        let mut at = before;
        for (name, ns) in places_of(report, cause, ns) {
            row(2, key, &name, "", ns, at);
            at += ns;
        }
        before += ns;
    }
    *out += "</tbody></table></div>";
    efficiencies(out, &answers.efficiency);
    let not_seen = &answers.not_seen;
    if !not_seen.is_empty() {
        *out += "<p>Not visible with this runtime:</p><ul>";
        for row in not_seen {
            let _ = write!(out, "<li>{}: {}</li>", row.cause.title(), Text(&row.reason));
        }
        *out += "</ul>";
    }
    *out += "</section>";
}

/// The places that a cause's time is due to, and the rest.
fn places_of(report: &Report<'_>, cause: Cause, ns: u64) -> Vec<(String, u64)> {
    let useful = report.overview.useful.iter().map(|(at, ns)| (place(at), *ns));
    let blame = report.stats.answers.blame.iter();
    let blame = blame.filter(|row| row.cause == cause).map(|row| (place(&row.place), row.ns));
    let mut rows: Vec<(String, u64)> = match cause {
        Cause::Useful => useful.collect(),
        _ => blame.collect(),
    };
    rows.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    rows.truncate(MAX_PLACES);
    // Below a thousandth of the whole nothing is to be seen.
    let least = report.stats.answers.accounting.total() / 1000;
    rows.retain(|(_, ns)| *ns > least);
    let named: u64 = rows.iter().map(|(_, ns)| *ns).sum();
    if rows.is_empty() || named > ns {
        return Vec::new();
    }
    if ns - named > least {
        rows.push(("elsewhere".to_owned(), ns - named));
    }
    rows
}

fn efficiencies(out: &mut String, of: &Efficiency) {
    let rows = [
        ("parallel", 0, "parallel efficiency", of.parallel, "useful time \u{f7} total thread time"),
        (
            "load_balance",
            1,
            "\u{d7} load balance",
            of.load_balance,
            "mean useful time \u{f7} busiest thread\u{2019}s useful time",
        ),
        (
            "communication",
            1,
            "\u{d7} communication",
            of.communication,
            "busiest thread\u{2019}s useful time \u{f7} wall time",
        ),
        (
            "serialisation",
            2,
            "\u{d7} serialisation",
            of.serialisation,
            "busiest thread\u{2019}s useful time \u{f7} useful time on the critical path",
        ),
        ("transfer", 2, "\u{d7} transfer", of.transfer, "useful time on the critical path \u{f7} wall time"),
    ];
    if rows.iter().all(|row| row.3.is_none()) {
        return;
    }
    *out += "<table class=eff id=eff><caption>Efficiencies, as POP defines them: each is the product of those below \
             it</caption><tbody>";
    for (id, level, name, share, meaning) in rows {
        let Some(share) = share else { continue };
        let _ = write!(
            out,
            "<tr class=l{level} id=eff-{id} data-value=\"{share}\"><th scope=row>{name}</th><td class=n>{}</td><td \
             class=wide><span class=at style=\"width:{:.2}%\"><i class=c-useful></i></span></td><td \
             class=note>{meaning}</td></tr>",
            percent(share),
            (share * 100.0).clamp(0.0, 100.0)
        );
    }
    *out += "</tbody></table>";
}

/// The picture of all threads over time, which the page's script draws.
pub(crate) fn timeline(out: &mut String, report: &Report<'_>) {
    let lead = match report.overview.levels.is_empty() {
        true => {
            "The activity of each thread from the program\u{2019}s start to its end. Drag across an interval to enlarge it."
        }
        false => {
            "The activity of each thread from the program\u{2019}s start to its end. Devices and counters are shown below the threads, each scaled to its own maximum. Drag across an interval to enlarge it."
        }
    };
    section(out, "time", "Timeline", lead);
    legend(out, report);
    *out += "<div id=controls class=controls role=group aria-label=\"part of the time\" hidden><button type=button \
             data-do=in>zoom in</button><button type=button data-do=out>zoom out</button><button type=button \
             data-do=left>earlier</button><button type=button data-do=right>later</button><button type=button \
             data-do=all>all</button></div><div id=load aria-hidden=true></div><div id=lanes tabindex=0 role=application \
             aria-roledescription=timeline aria-label=\"Timeline of all threads. Left and right arrows move in time, up and \
             down between threads; plus and minus zoom; 0 shows all.\" aria-describedby=moment hidden></div><p id=moment \
             aria-live=polite></p><p id=window class=commands hidden>Open this part in a viewer: <code class=copy \
             id=window-command></code></p><noscript><p>The timeline is drawn by a script, which is not allowed here. All \
             else is below.</p></noscript></section>";
}
