//! The answers as text: a headline, where the threads' time went, findings.

use std::collections::BTreeMap;
use std::fmt;

use super::constructs::length_words;
use super::table::{
    Column, Layout, Style, Table, column, column_of, counted, percent, time, with_commas, write_wrapped,
};
use omptrace_analysis::answers::Cause;
use omptrace_analysis::answers::{Answers, Blame, Blocked, Efficiency, Finding, LoopAnswer, tracing_note};
use omptrace_analysis::sum::{Sum, sum};

/// Number of causes that the headline names.
const MAX_IN_HEADLINE: usize = 3;
/// Number of places that are shown per cause.
const MAX_PLACES: usize = 3;
/// Number of places on the critical path that are shown.
const MAX_ON_PATH: usize = 3;
/// Default number of findings that are shown.
const MAX_FINDINGS: usize = 5;
/// Loops that take less than this share of the wall time are not shown.
const MIN_LOOP: f64 = 0.01;
/// Number of mutexes for which the blocking threads are shown.
const MAX_BLOCKING: usize = 3;
/// The columns of the longest bar.
const BAR: u32 = 20;

/// Words after `24 % lost`.
fn lost_how(cause: Cause) -> &'static str {
    match cause {
        Cause::Useful => "in useful work",
        Cause::Serial => "to serial code",
        Cause::IdleInMpi => "to idle threads during MPI calls",
        Cause::NarrowTeam => "to small teams",
        Cause::Fork => "to thread start-up",
        Cause::Join => "at the end of regions",
        Cause::Imbalance => "to load imbalance",
        Cause::Barrier => "in barriers",
        Cause::TaskWait => "to waits for tasks",
        Cause::TaskStarvation => "to a lack of tasks",
        Cause::Lock => "to locks",
        Cause::Critical => "to critical regions",
        Cause::Ordered => "to ordered regions",
        Cause::Atomic => "to atomic regions",
        Cause::Reduction => "in reductions",
        Cause::Target => "to devices",
        Cause::Runtime => "in the runtime",
        Cause::ExternalWait => "in waits outside OpenMP",
        Cause::Mpi => "in MPI communication",
        Cause::MpiWait => "to waits for other MPI ranks",
        Cause::MpiTransfer => "in MPI transfers",
        Cause::MpiOther => "in other MPI calls",
        Cause::Preempted => "to preemption",
        Cause::Tracer => "in the tracer",
        Cause::Unobserved => "while nothing was recorded",
    }
}

/// The shares of `values` in their sum, in units of 1 / `whole`, rounded so that they add up to `whole`.
pub(crate) fn rounded(values: &[u64], whole: u32) -> Vec<u32> {
    let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
    if sum == 0 {
        return vec![0; values.len()];
    }
    let scaled = |value: u64| u128::from(value) * u128::from(whole);
    let mut shares: Vec<u32> = values.iter().map(|value| (scaled(*value) / sum) as u32).collect();
    let mut by_remainder: Vec<usize> = (0..values.len()).collect();
    by_remainder.sort_by_key(|index| std::cmp::Reverse(scaled(values[*index]) % sum));
    let missing = whole - shares.iter().sum::<u32>();
    for index in by_remainder.into_iter().take(missing as usize) {
        shares[index] += 1;
    }
    shares
}

/// Tenths of a percent as percent: `24.1`.
fn tenths(share: u32) -> String {
    format!("{}.{}", share / 10, share % 10)
}

/// A share, 0 to 1, as `24.1 %`.
pub(crate) fn percents(share: f64) -> String {
    format!("{} %", percent(share))
}

/// A sentence on how much of the waits is blamed on functions.
pub(crate) fn due_words(answers: &Answers) -> Option<String> {
    let is_due = |row: &&Blame| !row.functions.is_empty();
    let (mut all, mut unseen) = (0_u64, 0_u64);
    for row in answers.blame.iter().filter(is_due) {
        all = all.saturating_add(row.ns);
        unseen = unseen.saturating_add(row.no_sample_ns.unwrap_or(0));
    }
    (all > 0).then(|| {
        let (seen, unseen) = (all.saturating_sub(unseen), time(unseen));
        format!(
            "other threads waited {} while the awaited thread was in these functions; for {unseen} of additional waiting time, no sample shows where the awaited thread was",
            time(seen)
        )
    })
}

/// ` at stencil.c:35`, if most of a cause's time is due to one place.
fn mostly_at(answers: &Answers, cause: Cause, ns: u64) -> String {
    let first = answers.blamed_for(cause).max_by_key(|blame| blame.ns);
    let source = first.and_then(|blame| Some((blame.place.source()?, blame.ns)));
    match source {
        Some((source, of_it)) if of_it >= ns - ns / 10 => format!(" at {source}"),
        Some((source, of_it)) if of_it >= ns / 2 => format!(" mostly at {source}"),
        _ => String::new(),
    }
}

/// A sentence on where the threads' time went; `None` for a trace without time.
pub fn headline(answers: &Answers) -> Option<String> {
    if !answers.has_time() {
        return None;
    }
    let losses = answers.losses();
    let mut ns = vec![answers.accounting[Cause::Useful]];
    ns.extend(losses.iter().map(|(_, ns)| *ns));
    let shares = rounded(&ns, 100);
    let named = shares[1..].iter().filter(|share| **share > 0).count();
    let named = named.min(MAX_IN_HEADLINE);
    let mut words = format!(
        "{}, {}: {} % useful",
        counted(answers.threads.into(), "thread"),
        time(answers.duration_ns),
        shares[0]
    );
    for note in answers.damage_note.iter().chain(&answers.mpi_note).chain(&answers.cpu_note) {
        words += &format!(" ({note})");
    }
    for (index, ((cause, ns), share)) in losses.iter().zip(&shares[1..]).enumerate() {
        if index == named {
            break;
        }
        let (separator, lost) = if index == 0 { (";", " lost") } else { (",", "") };
        let (how, place) = (lost_how(*cause), mostly_at(answers, *cause, *ns));
        words += &format!("{separator} {share} %{lost} {how}{place}");
    }
    match shares[1 + named..].iter().sum::<u32>() {
        0 => {}
        rest => words += &format!(", {rest} % to other causes"),
    }
    Some(words)
}

/// A finding on one line: its saving, its place, and what to try.
pub fn finding_line(answers: &Answers, finding: &Finding) -> String {
    format!("{}: {}", finding_title(answers, finding), finding.text)
}

/// `saves up to 2.31 s (18.8 %) at stencil.c:35 [imbalance]`.
fn finding_title(answers: &Answers, finding: &Finding) -> String {
    let share = finding.gain_ns as f64 / answers.duration_ns.max(1) as f64;
    let phase = finding.evidence.get("phase").and_then(|phase| phase.as_str());
    let phase = phase.map_or(String::new(), |phase| format!(" in {phase}"));
    format!(
        "saves up to {} ({}) {}{phase} [{}]",
        time(finding.gain_ns),
        percents(share),
        finding.place.at_short(),
        finding.id
    )
}

/// The headline, where the time went, efficiencies, critical path and findings; empty for a trace without time.
pub(crate) fn head(answers: &Answers, layout: Layout) -> impl fmt::Display {
    Head { answers, layout }
}

fn write_tree(answers: &Answers, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let losses = answers.losses();
    let mut ns = vec![answers.accounting[Cause::Useful]];
    ns.extend(losses.iter().map(|(_, ns)| *ns));
    let (shares, bars) = (rounded(&ns, 1000), rounded(&ns, BAR));
    const COLUMNS: [Column; 3] = [column("time", 0), column("share %", 0), column("", 1)];
    let mut table = Table::new("where the threads' time went", &COLUMNS);
    let mut row = |name: String, ns: u64, share: u32, bar: u32| {
        let bar = "#".repeat(bar as usize);
        let bar = match layout.style {
            Style::Text => format!("{bar:<width$}", width = BAR as usize),
            Style::Markdown => bar,
        };
        table.row(name, [time(ns), tenths(share), bar]);
    };
    row(Cause::Useful.title().to_owned(), ns[0], shares[0], bars[0]);
    let shown = shares[1..].iter().take_while(|share| **share > 0).count();
    for (index, (cause, ns)) in losses.iter().take(shown).enumerate() {
        let (share, bar) = (shares[index + 1], bars[index + 1]);
        row(cause.title().to_owned(), *ns, share, bar);
        for (place, ns, share, bar) in places_of(answers, *cause, *ns, share, bar) {
            row(format!("  {place}"), ns, share, bar);
        }
    }
    match &losses[shown..] {
        [] => {}
        [(cause, ns)] => row(cause.title().to_owned(), *ns, 0, 0),
        rest => {
            let sum = sum(rest.iter().map(|(_, ns)| *ns));
            row(format!("{} other causes", rest.len()), sum, 0, 0);
        }
    }
    let layout = Layout { top: None, ..*layout };
    table.write(f, &layout)
}

/// The places to which a cause's time is due, with shares and bars that add up to those of the cause.
fn places_of(answers: &Answers, cause: Cause, ns: u64, share: u32, bar: u32) -> Vec<(String, u64, u32, u32)> {
    let mut blamed: Vec<&Blame> = answers.blamed_for(cause).collect();
    blamed.sort_by_key(|blame| std::cmp::Reverse(blame.ns));
    let mut rows: Vec<(String, u64)> =
        blamed.iter().take(MAX_PLACES).map(|blame| (blame.place.in_words(), blame.ns)).collect();
    let named = sum(rows.iter().map(|(_, ns)| *ns));
    if rows.is_empty() || named > ns {
        return Vec::new();
    }
    if named < ns {
        rows.push(("elsewhere".to_owned(), ns - named));
    }
    let ns: Vec<u64> = rows.iter().map(|(_, ns)| *ns).collect();
    let parts = rounded(&ns, share).into_iter().zip(rounded(&ns, bar));
    let rows = rows.into_iter().zip(parts);
    // Rows that round to 0 are left out.
    rows.filter(|(_, (share, _))| *share > 0)
        .map(|((place, ns), (share, bar))| (place, ns, share, bar))
        .collect()
}

fn write_path(answers: &Answers, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let path = &answers.critical_path;
    if path.useful_ns == 0 {
        return Ok(());
    }
    let mut words =
        format!("critical path: {} of {} are useful work", time(path.useful_ns), time(path.length_ns));
    let rows = &path.rows[..path.rows.len().min(MAX_ON_PATH)];
    for (index, row) in rows.iter().enumerate() {
        let share = percents(row.ns as f64 / path.useful_ns as f64);
        let separator = if index == 0 { ";" } else { "," };
        // A construct that combines several consists of several places on one line.
        let short = row.place.short();
        let is_clear = rows.iter().filter(|other| other.place.short() == short).count() == 1;
        let place = if is_clear { row.place.at_short() } else { format!("at {}", row.place.long()) };
        words += &format!("{separator} {share} {place}");
    }
    write_wrapped(f, &words, 0, layout)
}

/// Writes which thread blocked which, for the mutexes with the longest waits: rows are holders, columns are
/// waiters.
pub(crate) fn write_blocked(answers: &Answers, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let mut locks: BTreeMap<_, (u64, Vec<&Blocked>)> = BTreeMap::new();
    for row in &answers.blocked {
        let (ns, rows) = locks.entry((&row.process, row.cause, &row.lock)).or_default();
        ns.grow_by(row.ns);
        rows.push(row);
    }
    let mut locks: Vec<_> = locks.into_iter().collect();
    locks.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    for ((_, cause, lock), (ns, rows)) in locks.iter().take(MAX_BLOCKING) {
        writeln!(f)?;
        let name = lock.as_deref().unwrap_or(cause.name());
        let title = format!(
            "waits for {name} ({} in total). Rows: the thread that held the mutex. Columns: the threads that waited.",
            time(*ns)
        );
        write_wrapped(f, &title, 0, layout)?;
        matrix(rows).write(f, layout)?;
    }
    match locks.len().saturating_sub(MAX_BLOCKING) as u64 {
        0 => Ok(()),
        1 => writeln!(f, "and 1 more mutex"),
        more => writeln!(f, "and {} more mutexes", with_commas(more)),
    }
}

/// Writes the predicted times on other numbers of threads, the work and span of tasks, and the times of loops with
/// other schedules.
fn write_scalability(answers: &Answers, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let half = answers.threads.div_ceil(2);
    let asked = [half, answers.threads.saturating_mul(2)];
    let rows = answers.other_threads.iter();
    let rows = rows.filter(|row| row.threads != answers.threads && asked.contains(&row.threads));
    let words: Vec<String> = rows
        .map(|row| format!("{} on {}", time(row.duration_ns), counted(row.threads.into(), "thread")))
        .collect();
    if !words.is_empty() {
        let assumption = answers.other_threads.iter().find_map(|row| row.assumption.as_ref());
        let assumption = assumption.map_or(String::new(), |what| format!(", if {what}"));
        write_wrapped(f, &format!("predicted: {}{assumption}", words.join(", ")), 0, layout)?;
    }
    for region in answers.task_regions.iter().take(MAX_PLACES) {
        let tasks = counted(region.tasks, "task");
        let head = format!("{tasks} {}: work {}", region.place.at_short(), time(region.work_ns));
        let words = match (region.span_ns, region.parallelism, &region.span_reason) {
            (Some(span), parallelism, _) => {
                format!("{head} = span {} x parallelism {:.1}", time(span), parallelism.unwrap_or(1.0))
            }
            (None, _, Some(reason)) => format!("{head}, span unknown: {reason}"),
            (None, _, None) => head,
        };
        write_wrapped(f, &words, 0, layout)?;
    }
    let is_shown = |row: &&LoopAnswer| row.recorded_ns as f64 >= MIN_LOOP * answers.duration_ns as f64;
    for row in answers.loops.iter().filter(is_shown).take(MAX_PLACES) {
        if let Some(words) = loop_words(row) {
            write_wrapped(f, &words, 0, layout)?;
        }
    }
    Ok(())
}

fn write_findings(answers: &Answers, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    if answers.findings.is_empty() {
        return Ok(());
    }
    writeln!(f)?;
    let title = "findings (with estimated savings of wall time; the savings can overlap)";
    write_wrapped(f, title, 0, layout)?;
    if let Some(note) = tracing_note(answers) {
        write_wrapped(f, note, 3, layout)?;
    }
    let top = layout.top.unwrap_or(MAX_FINDINGS);
    for (index, finding) in answers.findings.iter().take(top).enumerate() {
        let title = format!("{}. {}", index + 1, finding_title(answers, finding));
        write_wrapped(f, &title, 0, layout)?;
        write_wrapped(f, &finding.text, 3, layout)?;
    }
    match answers.findings.len().saturating_sub(top) as u64 {
        0 => Ok(()),
        more => writeln!(f, "and {}", counted(more, "more finding")),
    }
}

/// A loop's time, its best clause, and the durations of its chunks.
fn loop_words(row: &LoopAnswer) -> Option<String> {
    let best = row.best();
    let lengths = length_words(&row.lengths);
    if best.is_none() && lengths.is_none() {
        return None;
    }
    let mut words = format!(
        "{} {}: {}",
        counted(row.executions, "execution"),
        row.place.at_short(),
        time(row.recorded_ns)
    );
    if let Some((best, _)) = best {
        words += &format!(", with {} {}", best.clause, time(best.duration_ns));
    }
    if let Some(lengths) = lengths {
        words += &format!("; chunks: {lengths}");
    }
    Some(words)
}

/// The factors of the parallel efficiency, as far as they are known.
fn efficiency_words(efficiency: &Efficiency) -> Vec<String> {
    let factors = |whole: (&str, Option<f64>), parts: [(&str, Option<f64>); 2]| {
        let mut words = format!("{} {}", whole.0, percents(whole.1?));
        if let [(one, Some(first)), (other, Some(second))] = parts {
            let (first, second) = (percents(first), percents(second));
            words += &format!(" = {one} {first} x {other} {second}");
        }
        Some(words)
    };
    let parallel = ("parallel efficiency", efficiency.parallel);
    let communication = ("communication", efficiency.communication);
    let of_parallel = [("load balance", efficiency.load_balance), communication];
    let of_communication = [("serialisation", efficiency.serialisation), ("transfer", efficiency.transfer)];
    let mut lines = Vec::new();
    lines.extend(factors(parallel, of_parallel));
    if of_communication.iter().all(|(_, factor)| factor.is_some()) {
        lines.extend(factors(communication, of_communication));
    }
    lines
}

/// Rows are holders of a mutex with their places, columns are waiting threads; with sums.
fn matrix(rows: &[&Blocked]) -> Table {
    let mut waiters: BTreeMap<&str, u64> = BTreeMap::new();
    let mut holders: BTreeMap<String, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
    for row in rows {
        waiters.entry(&row.waiter_thread).or_default().grow_by(row.ns);
        let thread = row.holder_thread.as_deref().unwrap_or("nobody else");
        let holder = match &row.holder {
            Some(place) => format!("{thread} @{}", place.short()),
            None => thread.to_owned(),
        };
        let (sum, cells) = holders.entry(holder).or_default();
        sum.grow_by(row.ns);
        cells.entry(&row.waiter_thread).or_default().grow_by(row.ns);
    }
    let mut waiters: Vec<(&str, u64)> = waiters.into_iter().collect();
    waiters.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let mut columns = vec![column("all", 0)];
    let ranks = 1..=u8::MAX;
    let of_waiters = waiters.iter().zip(ranks);
    columns.extend(of_waiters.map(|((name, _), rank)| column_of((*name).to_owned(), rank)));
    waiters.truncate(columns.len() - 1);
    let mut table = Table::new("held by", &columns);
    let mut holders: Vec<_> = holders.into_iter().collect();
    holders.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    for (holder, (sum, cells)) in holders {
        let cells = waiters.iter().map(|(name, _)| match cells.get(name) {
            Some(ns) => time(*ns),
            None => String::new(),
        });
        table.row(holder, std::iter::once(time(sum)).chain(cells));
    }
    table
}

struct Head<'a> {
    answers: &'a Answers,
    layout: Layout,
}

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Head { answers, layout } = self;
        let Some(headline) = headline(answers) else {
            return Ok(());
        };
        write_wrapped(f, &headline, 0, layout)?;
        writeln!(f)?;
        write_tree(answers, f, layout)?;
        let mut lines = efficiency_words(&answers.efficiency);
        lines.extend(answers.waits_note.clone());
        lines.extend(answers.what_if_note.clone());
        // Causes that are recorded only on request are not reported as missing.
        let not_seen = answers.not_seen.iter();
        let not_seen = not_seen.filter(|of| of.cause != Cause::Preempted);
        let not_seen = not_seen.map(|of| format!("not visible: {}: {}", of.cause.title(), of.reason));
        lines.extend(not_seen);
        if !lines.is_empty() {
            writeln!(f)?;
        }
        for line in lines {
            write_wrapped(f, &line, 0, layout)?;
        }
        write_path(answers, f, layout)?;
        write_scalability(answers, f, layout)?;
        write_findings(answers, f, layout)?;
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::Place;

    use super::*;
    use omptrace_analysis::answers::{CriticalPath, NotSeen, PathRow};

    fn place(construct: &str, line: u32) -> Place {
        Place::at(construct, Some("/src/stencil.c"), Some(line), Some("main"))
    }

    /// Answers of four threads over 10 seconds.
    fn answers() -> Answers {
        let mut answers = Answers { threads: 4, duration_ns: 10_000_000_000, ..Answers::default() };
        for (cause, ms) in [
            (Cause::Useful, 24_399),
            (Cause::Imbalance, 9_601),
            (Cause::Serial, 3_600),
            (Cause::Lock, 2_390),
            (Cause::Fork, 6),
            (Cause::Join, 4),
        ] {
            answers.accounting.add(cause, ms * 1_000_000);
        }
        for (cause, construct, line, ms) in [
            (Cause::Imbalance, "!$omp for", 35, 9_000),
            (Cause::Imbalance, "!$omp single", 50, 601),
            (Cause::Lock, "!$omp lock", 61, 1_300),
            (Cause::Lock, "!$omp lock", 62, 500),
            (Cause::Lock, "!$omp lock", 63, 300),
            (Cause::Lock, "!$omp lock", 64, 290),
        ] {
            answers.blame.push(Blame {
                cause,
                place: place(construct, line),
                ns: ms * 1_000_000,
                functions: Vec::new(),
                no_sample_ns: None,
            });
        }
        answers
    }

    fn shown(answers: &Answers) -> String {
        let layout = Layout { width: Some(80), ..Layout::default() };
        head(answers, layout).to_string()
    }

    #[test]
    fn the_headline_names_the_greatest_losses_and_adds_up() {
        assert_eq!(
            headline(&answers()).as_deref(),
            Some(
                "4 threads, 10.0 s: 61 % useful; 24 % lost to load imbalance at stencil.c:35, 9 % to serial code, 6 % to locks \
                 mostly at stencil.c:61"
            )
        );
        assert_eq!(headline(&Answers::default()), None);
        let mut clean = Answers { threads: 1, duration_ns: 1_000, ..Answers::default() };
        clean.accounting.add(Cause::Useful, 1_000);
        let headline = headline(&clean);
        assert_eq!(headline.as_deref(), Some("1 thread, 1.00 us: 100 % useful"));
    }

    #[test]
    fn many_small_losses_are_summed_up() {
        let mut answers = Answers { threads: 2, duration_ns: 50, ..Answers::default() };
        answers.accounting.add(Cause::Useful, 60);
        for cause in &Cause::ALL[1..9] {
            answers.accounting.add(*cause, 5);
        }
        assert_eq!(
            headline(&answers).as_deref(),
            Some(
                "2 threads, 50 ns: 60 % useful; 5 % lost to serial code, 5 % to idle threads during MPI calls, 5 % to small teams, 25 % to other causes"
            )
        );
    }

    #[test]
    fn the_tree_adds_up() {
        assert_eq!(
            shown(&answers()),
            "\
4 threads, 10.0 s: 61 % useful; 24 % lost to load imbalance at stencil.c:35, 9 %
to serial code, 6 % to locks mostly at stencil.c:61

where the threads' time went     time  share %
useful work                    24.4 s     61.0  ############
load imbalance                 9.60 s     24.0  #####
  for @stencil.c:35            9.00 s     22.5  #####
  single @stencil.c:50         601 ms      1.5
serial code                    3.60 s      9.0  ##
locks                          2.39 s      6.0  #
  lock @stencil.c:61           1.30 s      3.3  #
  lock @stencil.c:62           500 ms      1.3
  lock @stencil.c:63           300 ms      0.7
  elsewhere                    290 ms      0.7
2 other causes                10.0 ms      0.0

"
        );
    }

    #[test]
    fn efficiencies_paths_and_findings_follow() {
        let mut answers = Answers {
            threads: 2,
            duration_ns: 1_000_000,
            efficiency: Efficiency {
                parallel: Some(0.61),
                load_balance: Some(0.8),
                communication: Some(0.763),
                serialisation: Some(0.953125),
                transfer: Some(0.8),
            },
            critical_path: CriticalPath {
                length_ns: 1_000_000,
                useful_ns: 800_000,
                rows: vec![PathRow { place: place("!$omp for", 35), ns: 600_000 }],
                ..CriticalPath::default()
            },
            not_seen: vec![NotSeen {
                cause: Cause::Lock,
                reason: "the runtime does not report waits for locks, so these waits count as useful time"
                    .to_owned(),
            }],
            ..Answers::default()
        };
        answers.accounting.add(Cause::Useful, 2_000_000);
        for line in 0..7 {
            answers.findings.push(Finding {
                id: "imbalance".to_owned(),
                place: place("!$omp for", 35 + line),
                gain_ns: 200_000,
                text: "One thread works twice as long as the others. Try schedule(dynamic, 16), or spread the work by hand."
                    .to_owned(),
                evidence: serde_json::Map::new(),
                instances: Vec::new(),
            });
        }
        let text = shown(&answers);
        let tail = text.split_once("parallel eff").expect("efficiencies").1;
        let (middle, findings) = tail.split_once("\n2. ").expect("findings");
        assert_eq!(
            middle,
            "iciency 61.0 % = load balance 80.0 % x communication 76.3 %
communication 76.3 % = serialisation 95.3 % x transfer 80.0 %
not visible: locks: the runtime does not report waits for locks, so these waits
count as useful time
critical path: 800 us of 1.00 ms are useful work; 75.0 % at stencil.c:35

findings (with estimated savings of wall time; the savings can overlap)
1. saves up to 200 us (20.0 %) at stencil.c:35 [imbalance]
   One thread works twice as long as the others. Try schedule(dynamic, 16), or
   spread the work by hand."
        );
        assert!(findings.ends_with("\nand 2 more findings\n\n"), "{findings}");
    }

    #[test]
    fn places_of_one_line_have_their_constructs() {
        let row = |construct, ns| PathRow { place: place(construct, 35), ns };
        let mut answers = answers();
        answers.critical_path = CriticalPath {
            length_ns: 1_000_000,
            useful_ns: 1_000_000,
            rows: vec![row("!$omp for", 600_000), row("!$omp parallel", 400_000)],
            ..CriticalPath::default()
        };
        let text = shown(&answers).replace('\n', " ");
        let rows = "; 60.0 % at for @stencil.c:35, 40.0 % at parallel @stencil.c:35";
        assert!(text.contains(rows), "{text}");
    }
}
