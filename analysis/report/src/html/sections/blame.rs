//! Whom waits were due to, what changes would gain, the critical path, and who blocked whom.

use super::*;

/// Whom waits were due to, what changes would gain, the critical path.
pub(crate) fn blame(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let answers = &report.stats.answers;
    let more = |list: &str| format!("{} --select {list} --all", report.stats_command);
    if !answers.blame.is_empty() {
        let lead = "All lost time is attributed to the source locations that caused the loss.";
        section(out, "blame", "Causes of waiting", lead);
        let total = answers.accounting.total();
        let rows = answers.blame.iter().map(|row| {
            let Blame { cause, place, ns, .. } = row;
            vec![
                Cell::Name(self::place(place)),
                Cell::Name(cause.title().to_owned()),
                Cell::time(*ns),
                Cell::share(Some(*ns as f64 / total.max(1) as f64)),
            ]
        });
        let headings = ["place", "cause", "lost thread time", "share"];
        table(
            out,
            "blame-table",
            "Losses and their causes",
            &headings,
            rows.collect(),
            (limits.rows / 2, &more("blame")),
        );
        *out += "</section>";
    }
    blocked(out, report, limits);
    let path = &answers.critical_path;
    if !path.rows.is_empty() {
        let lead = format!(
            "The longest chain of dependent work across all threads. {} of the chain's {} are useful work. The run gets shorter only if this chain gets shorter.",
            time(path.useful_ns),
            time(path.length_ns)
        );
        section(out, "path", "Critical path", &lead);
        let rows = path.rows.iter().map(|row| {
            let share = row.ns as f64 / path.useful_ns.max(1) as f64;
            vec![Cell::Name(place(&row.place)), Cell::time(row.ns), Cell::share(Some(share))]
        });
        table(
            out,
            "path-table",
            "Work on the critical path",
            &["place", "time", "share"],
            rows.collect(),
            (limits.rows / 4, &more("critical_path.rows")),
        );
        *out += "</section>";
    }
    if !answers.what_if.is_empty() {
        let note = answers.what_if_note.as_ref().map_or_else(String::new, |note| format!(" Note: {note}."));
        let lead = format!(
            "The wall time that each change to the program would save, as predicted by a replay of the recorded dependences.{note}"
        );
        section(out, "what-if", "What if", &lead);
        let rows = answers.what_if.iter().map(|row| {
            vec![
                Cell::Name(row.change.clone()),
                Cell::Name(place(&row.place)),
                Cell::time(row.gain_ns),
                Cell::share(Some(row.gain_percent / 100.0)),
            ]
        });
        let headings = ["change", "place", "wall time saved", "share"];
        table(
            out,
            "what-if-table",
            "Changes and their savings",
            &headings,
            rows.collect(),
            (limits.rows / 4, &more("what_if")),
        );
        let small: Vec<String> = answers
            .findings
            .iter()
            .filter(|finding| finding.id == "tasks_too_fine")
            .map(|finding| Text(&place(&finding.place)).to_string())
            .collect();
        if !small.is_empty() {
            let _ = write!(
                out,
                "<p class=note>A replay cannot predict the savings in regions whose tasks are too small ({}).</p>",
                small.join(", ")
            );
        }
        if let ([], Some(unknown)) = (&answers.other_threads[..], answers.not_predicted.first()) {
            // A reason that concerns the whole run has no place.
            let at = match &*place(&unknown.place) {
                "" => String::new(),
                name => format!(" ({name})"),
            };
            let _ = write!(
                out,
                "<p class=note>The wall time on other numbers of threads is not predicted: {}{}.</p>",
                Text(&unknown.reason),
                Text(&at)
            );
        }
        *out += "</section>";
    }
}

/// Writes who waited for a mutex that another thread had. A row is a thread that had one, a column one that waited.
fn blocked(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let answers = &report.stats.answers;
    let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
    let name = |process: &str, thread: &str| short(&thread_name(report, process, thread));
    for row in &answers.blocked {
        let holder = row.holder_thread.as_deref().unwrap_or("not seen");
        let key = (name(&row.process, holder), name(&row.process, &row.waiter_thread));
        *sums.entry(key).or_default() += row.ns;
    }
    if sums.is_empty() {
        return;
    }
    let lead = "Rows: the thread that held the lock or executed the critical region. Columns: the thread that waited.";
    section(out, "blocked", "Who blocked whom", lead);
    let most = (limits.rows / 6).max(1);
    let total = |side: fn(&(String, String)) -> &String| {
        let mut totals: BTreeMap<&String, u64> = BTreeMap::new();
        for (key, ns) in &sums {
            *totals.entry(side(key)).or_default() += ns;
        }
        let mut names: Vec<_> = totals.into_iter().collect();
        names.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        names.truncate(most);
        let mut names: Vec<&String> = names.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    };
    let (holders, waiters) = (total(|key| &key.0), total(|key| &key.1));
    let longest = sums.values().copied().max().unwrap_or(1).max(1);
    *out += "<div class=scroll tabindex=0 role=region aria-label=\"who blocked whom\"><table class=matrix \
             id=blocked-table><thead><tr><th scope=col>holder / waiting</th>";
    for waiter in &waiters {
        let _ = write!(out, "<th scope=col class=n>{}</th>", Text(waiter));
    }
    *out += "</tr></thead><tbody>";
    for holder in holders {
        let _ = write!(out, "<tr><th scope=row>{}</th>", Text(holder));
        for waiter in &waiters {
            let ns = sums.get(&(holder.clone(), (*waiter).clone())).copied();
            let ns = ns.unwrap_or(0);
            let strength = ns as f64 * 60.0 / longest as f64;
            let text = if ns == 0 { String::new() } else { time(ns) };
            let _ = write!(
                out,
                "<td class=n><span class=heat style=\"--s:{strength:.0}%\" data-value={ns}>{}</span></td>",
                Text(&text)
            );
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div></section>";
}
