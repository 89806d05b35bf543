//! The parallel regions, and charts of the first ones.

use super::*;

/// The parallel regions, and charts of the first ones.
pub(crate) fn regions(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let answers = &report.stats.answers;
    if answers.regions.is_empty() {
        return;
    }
    section(
        out,
        "regions",
        "Parallel regions",
        "Sorted by lost time. Select a heading to sort by another column.",
    );
    // Durations are summed over processes, but each process has a critical path of its own.
    let path = if report.stats.processes.len() > 1 { 0 } else { answers.critical_path.useful_ns };
    let rows = answers.regions.iter().map(|region| {
        let of = &region.efficiency;
        let on_path = of.transfer.map(|share| share * region.duration_ns as f64 / path.max(1) as f64);
        vec![
            Cell::Name(place(&region.place)),
            Cell::count(region.visits),
            Cell::time(region.duration_ns),
            Cell::time(region.accounting.lost()),
            Cell::Bar(region.accounting),
            Cell::share(of.parallel),
            Cell::share(of.load_balance),
            Cell::share(of.communication),
            Cell::share(on_path.filter(|_| path > 0)),
        ]
    });
    let headings = [
        "region",
        "visits",
        "time",
        "lost thread time",
        "threads\u{2019} time",
        "parallel efficiency",
        "load balance",
        "communication",
        "share of the critical path",
    ];
    let more = format!("{} --by region --all", report.stats_command);
    table(
        out,
        "regions-table",
        "Outermost parallel regions",
        &headings,
        rows.collect(),
        (limits.rows, &more),
    );
    let shapes: BTreeMap<&Place, &RegionShape> =
        report.overview.regions.iter().map(|shape| (&shape.place, shape)).collect();
    for region in answers.regions.iter().take(limits.charts) {
        if let Some(shape) = shapes.get(&region.place) {
            region_charts(out, report, region, shape, limits);
        }
    }
    *out += "</section>";
}

fn region_charts(
    out: &mut String,
    report: &Report<'_>,
    region: &RegionAnswer,
    shape: &RegionShape,
    limits: &Limits,
) {
    let _ = write!(
        out,
        "<details class=region><summary><code>{}</code> <span>threads, durations, visits</span></summary><div class=charts>",
        Text(&place(&region.place))
    );
    if !shape.useful.is_empty() {
        let most = shape.useful.iter().map(|row| row.2).max().unwrap_or(1).max(1);
        *out += "<figure><figcaption>Useful time by thread: the longest is waited for</figcaption><table \
                 class=bars><tbody>";
        for (process, thread, ns) in shape.useful.iter().take(limits.threads) {
            let name = thread_name(report, process, thread);
            chart_row(out, &short(&name), &time(*ns), *ns, most);
        }
        *out += "</tbody></table>";
        if shape.useful.len() > limits.threads {
            let rest = counted((shape.useful.len() - limits.threads) as u64, "more thread");
            let _ = write!(out, "<p class=more>and {rest}</p>");
        }
        *out += "</figure>";
    }
    let visits: u64 = shape.durations.iter().sum();
    if visits > 1 {
        by_duration(out, "Visits by duration", &shape.durations);
        visits_over_time(out, report, shape);
    }
    *out += "</div></details>";
}

/// Counts of durations by their power of two, as bars.
pub(super) fn by_duration(out: &mut String, caption: &str, counts: &[u64]) {
    let is_any = |count: &u64| *count > 0;
    let first = counts.iter().position(is_any).unwrap_or(0);
    let last = counts.iter().rposition(is_any).unwrap_or(0);
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let _ = write!(out, "<figure><figcaption>{}</figcaption><table class=bars><tbody>", Text(caption));
    for (class, count) in counts.iter().enumerate().take(last + 1).skip(first) {
        let name = format!("from {}", time(1_u64 << class));
        chart_row(out, &name, &with_commas(*count), *count, most);
    }
    *out += "</tbody></table></figure>";
}

fn chart_row(out: &mut String, name: &str, text: &str, value: u64, most: u64) {
    let _ = write!(
        out,
        "<tr><th scope=row>{}</th><td class=n data-value={value}>{}</td><td class=wide><span class=at \
         style=\"width:{:.2}%\"><i class=c-useful></i></span></td></tr>",
        Text(name),
        Text(text),
        value as f64 * 100.0 / most as f64
    );
}

/// Visits over time, as columns.
fn visits_over_time(out: &mut String, report: &Report<'_>, shape: &RegionShape) {
    let (begin, end) = (report.overview.begin_ns as f64, report.overview.end_ns as f64);
    let whole = (end - begin).max(1.0);
    let visits = &shape.visits;
    let most = visits.counts().max().unwrap_or(1).max(1);
    let width = visits.width_ns() as f64;
    let _ = write!(
        out,
        "<figure><figcaption>Visits over the program\u{2019}s time, at most {} in {}</figcaption><svg viewBox=\"0 0 1000 \
         100\" preserveAspectRatio=none role=img aria-label=\"visits over time\"><path d=\"",
        with_commas(most),
        Text(&time(visits.width_ns()))
    );
    for (index, count) in visits.counts().enumerate().filter(|(_, count)| *count > 0) {
        let at = visits.begin_ns() as f64 + index as f64 * width;
        let x = (at - begin) * 1000.0 / whole;
        let height = count as f64 * 100.0 / most as f64;
        let _ = write!(out, "M{x:.1} 100v-{height:.1}h{:.1}V100z", (width * 1000.0 / whole).max(1.0));
    }
    *out += "\"/></svg></figure>";
}
