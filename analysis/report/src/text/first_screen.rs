//! The first screen of `stats`, also printed by `record` when its program has ended: the efficiency, the losses with
//! their places, and what to do about them.
//!
//! ```text
//! doubts       ! reasons why the numbers are unreliable
//! efficiency     one bar, then a bar for each cause with its worst place
//! findings       title, place and saving; then the evidence and one change to try
//! ```

use std::collections::BTreeMap;

use super::job::{job_gain_line, job_path_lines};
use super::overview::{percents, rounded};
use super::rank_waits::rank_wait_lines;
use super::ranks::rank_lines;
use super::stats::analysed_words;
use super::styled::{Line, Lines, Look, Tint, shortened, shortened_place};
use super::table::{counted, letters, time};
use omptrace_analysis::answers::Cause;
use omptrace_analysis::answers::Place;
use omptrace_analysis::answers::{Answers, Finding};
use omptrace_analysis::answers::{Rule, at, tracing_note};
use omptrace_analysis::sum::{Sum, sum};
use omptrace_analysis::{ProcessStats, Stats};

/// The width of the longest bar, in columns.
const BAR: u32 = 20;
/// Number of causes of loss that `record` shows; the others are summed up.
const MAX_CAUSES: usize = 5;
/// Number of waits of ranks that are shown.
const MAX_WAITS: usize = 3;
/// Number of places per cause.
const MAX_PLACES: usize = 2;
/// The column at which `record` prints places.
const PLACES: usize = 51;
/// Narrower terminals wrap lines.
const MIN_WIDTH: usize = 60;

/// A share in whole percent, and its bar.
struct Share {
    cause: Cause,
    ns: u64,
    percent: u32,
    cells: u32,
}

/// Useful work, followed by the losses, largest first.
fn shares(answers: &Answers) -> Vec<Share> {
    let losses = answers.losses();
    let rows: Vec<(Cause, u64)> =
        std::iter::once((Cause::Useful, answers.accounting[Cause::Useful])).chain(losses).collect();
    let ns: Vec<u64> = rows.iter().map(|(_, ns)| *ns).collect();
    let parts = rounded(&ns, 100).into_iter().zip(rounded(&ns, BAR));
    let shares = rows.into_iter().zip(parts);
    shares.map(|((cause, ns), (percent, cells))| Share { cause, ns, percent, cells }).collect()
}

/// The reasons why the numbers are unreliable.
pub fn doubts(answers: &Answers, look: Look) -> Lines {
    let mut lines = Lines::default();
    let notes = [&answers.damage_note, &answers.cpu_note, &answers.mpi_note, &answers.waits_note];
    let notes = notes.into_iter().flatten().map(String::as_str);
    for note in notes.chain(tracing_note(answers)) {
        lines.words(Line::of(Tint::Warning, "  ! "), note, Tint::Plain, look);
    }
    lines
}

/// The useful share of the threads' time, rounded as for the bars: together with the losses, it is 100 %.
pub fn useful_percent(answers: &Answers) -> Option<u32> {
    shares(answers).first().filter(|_| answers.has_time()).map(|useful| useful.percent)
}

/// The efficiency with a bar, and each cause of loss with its share and the place with most of it.
pub fn efficiency_bars(answers: &Answers, look: Look) -> Lines {
    let mut lines = Lines::default();
    let shares = shares(answers);
    let Some((useful, losses)) = shares.split_first().filter(|_| answers.has_time()) else {
        return lines;
    };
    let share = |indent: usize, title: &str, percent: u32, tint: Tint| {
        let column = 21 - indent;
        let title = Line::of(Tint::Plain, " ".repeat(indent)).and(tint, format!("{title:<column$}"));
        title.and(tint, format!("{percent:>4} %")).up_to(29)
    };
    let first = share(2, "Parallel efficiency", useful.percent, Tint::Bold);
    lines.push(first.bar(Cause::Useful, useful.cells, BAR, look));
    let losses: Vec<&Share> = losses.iter().filter(|loss| loss.percent > 0).collect();
    if losses.is_empty() {
        return lines;
    }
    lines.push(Line::of(Tint::Plain, "  Time lost to").up_to(PLACES).and(Tint::Dim, "mostly at"));
    let room = look.width.max(MIN_WIDTH) - PLACES;
    for loss in losses.iter().take(MAX_CAUSES) {
        let line = share(4, loss.cause.title(), loss.percent, Tint::Plain);
        let line = line.bar(loss.cause, loss.cells, loss.cells, look).up_to(PLACES);
        let place = worst_place(answers, loss.cause).map(|place| shortened_place(&place, room));
        lines.push(line.and(Tint::Place, place.unwrap_or_default()));
    }
    match losses.iter().skip(MAX_CAUSES).map(|loss| loss.percent).sum::<u32>() {
        0 => {}
        rest => lines.push(share(4, "other", rest, Tint::Plain)),
    }
    lines
}

/// The place to which most of a cause's time is due.
fn worst_place(answers: &Answers, cause: Cause) -> Option<String> {
    let worst = answers.blamed_for(cause).max_by_key(|blame| blame.ns)?;
    let words = match worst.place.is_call() {
        // The cause says that it is a wait.
        true => label(&worst.place).replacen(" wait ", " ", 1),
        false => worst.place.short(),
    };
    (!is_nowhere(&worst.place)).then_some(words)
}

/// The first `top` findings. The caller prints the number of further ones, because it knows the command that shows
/// them.
pub fn finding_cards(answers: &Answers, top: usize, look: Look) -> Lines {
    let mut lines = Lines::default();
    if answers.findings.is_empty() {
        lines.words(Line::of(Tint::Plain, "  "), answers.no_finding(), Tint::Plain, look);
    }
    for (index, finding) in answers.findings.iter().take(top).enumerate() {
        write_card(answers, &mut lines, index + 1, finding, look);
    }
    lines
}

/// The command that explains the first `top` findings; `None` if there are none.
pub fn help_command(answers: &Answers, top: usize) -> Option<String> {
    let mut ids: Vec<&str> = Vec::new();
    for finding in answers.findings.iter().take(top) {
        if Rule::by_id(&finding.id).is_some() && !ids.contains(&&*finding.id) {
            ids.push(&finding.id);
        }
    }
    (!ids.is_empty()).then(|| format!("omptrace help {}", ids.join(" ")))
}

/// The command that explains what usually leads to the largest losses, for a part of a run, of which no findings are
/// known. `None` if no loss is large.
pub fn help_for_causes(answers: &Answers) -> Option<String> {
    const MIN_PERCENT: u32 = 10;
    const MOST: usize = 2;
    let large = shares(answers).into_iter().filter(|share| share.percent >= MIN_PERCENT);
    let ids: Vec<&str> = large.filter_map(|share| usual_finding(share.cause)).take(MOST).collect();
    (!ids.is_empty()).then(|| format!("omptrace help {}", ids.join(" ")))
}

/// The id of the finding that usually explains time lost to this cause.
fn usual_finding(cause: Cause) -> Option<&'static str> {
    Some(match cause {
        Cause::Serial => "serial_part",
        Cause::Fork | Cause::Join => "region_too_small",
        Cause::Imbalance => "load_imbalance",
        Cause::Barrier => "needless_barrier",
        Cause::TaskWait => "taskwait_chain",
        Cause::TaskStarvation => "too_few_tasks",
        Cause::Lock => "lock_contention",
        Cause::Critical => "critical_contention",
        Cause::Ordered => "ordered_serialises",
        Cause::Atomic => "atomic_contention",
        Cause::Reduction => "reduction_cost",
        Cause::Target => "target_wait",
        Cause::Runtime => "tasks_too_fine",
        Cause::ExternalWait => "external_wait",
        Cause::MpiWait => "rank_imbalance",
        Cause::IdleInMpi => "idle_during_mpi",
        Cause::Preempted => "preempted",
        _ => return None,
    })
}

fn write_card(answers: &Answers, lines: &mut Lines, number: usize, finding: &Finding, look: Look) {
    let share = finding.gain_ns as f64 / answers.duration_ns.max(1) as f64;
    let saving = format!("saves up to {} ({:.0} %)", time(finding.gain_ns), share * 100.0);
    let head = Line::of(Tint::Bold, format!("  {number}. "));
    let head = match Rule::by_id(&finding.id) {
        Some(rule) => head.and_link(Tint::Bold, rule.title, &Finding::page_address(rule.id)),
        None => head.and(Tint::Bold, &finding.id),
    };
    let head = match is_nowhere(&finding.place) {
        true => head,
        false => {
            let place = finding.place.at_short();
            let (preposition, place) = place.split_once(' ').unwrap_or(("at", &place));
            let preposition = format!(" {preposition} ");
            let taken = head.columns() + letters(&preposition) + 2 + letters(&saving);
            let room = look.width.max(MIN_WIDTH).saturating_sub(taken).max(12);
            head.and(Tint::Plain, preposition).and(Tint::Place, shortened(place, room))
        }
    };
    let column = PLACES.min(look.width.saturating_sub(letters(&saving)));
    let column = column.max(head.columns() + 2);
    lines.push(head.up_to(column).and(Tint::Bold, saving));
    // The title already contains the place.
    let at = format!(" {}", at(&finding.place));
    let is_list = finding.text.contains(&format!("{at} and "));
    let mut text = if is_list { finding.text.clone() } else { finding.text.replace(&at, "") };
    if let Some(phase) = finding.evidence.get("phase").and_then(|phase| phase.as_str()) {
        text = format!("in {phase}: {text}");
    }
    lines.words(Line::of(Tint::Plain, "     "), &sentence(&text), Tint::Plain, look);
}

/// How the processes ended that did not end by themselves; of ranks, it is said elsewhere.
fn died(processes: &[ProcessStats]) -> Option<String> {
    let died = processes.iter().filter(|process| process.has_died() && process.rank.is_none()).count();
    match processes {
        [process] if died == 1 && process.ending.starts_with("killed") => {
            Some(format!("the program was {}", process.ending))
        }
        [_] if died == 1 => Some("the program did not finish".to_owned()),
        _ => (died > 0)
            .then(|| format!("{died} of {} processes were killed or did not finish", processes.len())),
    }
}

/// Where the threads' time went, by cause and place; efficiencies and findings. `heading`: the run in a few words.
/// `rows`: the number of places and findings that are shown.
pub fn first_screen(stats: &Stats, heading: Line, rows: Option<usize>, look: Look) -> Lines {
    let answers = &stats.answers;
    let mut lines = Lines::default();
    lines.push(heading);
    if let Some(analysed) = &stats.analysed {
        lines.words(
            Line::of(Tint::Plain, "  "),
            &format!("only {}", analysed_words(analysed)),
            Tint::Plain,
            look,
        );
    }
    if let Some(words) = died(&stats.processes) {
        lines.words(Line::of(Tint::Warning, "  ! "), &words, Tint::Plain, look);
    }
    lines.extend(doubts(answers, look));
    for words in stats.ranks.iter().flat_map(rank_lines) {
        lines.words(Line::of(Tint::Plain, "  "), &words, Tint::Plain, look);
    }
    lines.gap();
    write_causes(stats, &mut lines, rows.unwrap_or(MAX_PLACES), look);
    let waits = stats.rank_waits.as_ref().map(|waits| rank_wait_lines(waits, rows.unwrap_or(MAX_WAITS)));
    write_headed(&mut lines, &waits.unwrap_or_default(), look);
    write_job(stats, &mut lines, rows.unwrap_or(MAX_WAITS), look);
    lines.gap();
    write_efficiencies(stats, &mut lines, look);
    let top = rows.unwrap_or(3);
    if stats.looks_for_findings() {
        lines.gap();
        if !answers.findings.is_empty() {
            let title = Line::of(Tint::Bold, "Findings");
            lines.push(title.and(Tint::Dim, " (estimated savings of wall time; the savings can overlap)"));
        }
        lines.extend(finding_cards(answers, top, look));
        if let Some(help) = help_command(answers, top) {
            lines.push(Line::of(Tint::Dim, format!("  What this means: {help}")));
        }
    }
    lines.gap();
    for not_seen in answers.not_seen.iter().filter(|row| row.cause != Cause::Preempted) {
        let words = format!("Not visible: {}: {}", not_seen.cause.title(), not_seen.reason);
        lines.words(Line::default(), &words, Tint::Dim, look);
    }
    let hidden = answers.findings.len().saturating_sub(top);
    let hidden = (hidden > 0).then(|| format!("{}, ", counted(hidden as u64, "more finding")));
    let words = format!(
        "More: --full ({}constructs, critical path, threads), --by {}, --json",
        hidden.unwrap_or_default(),
        tables_with_rows(stats).join("|")
    );
    lines.words(Line::default(), &words, Tint::Dim, look);
    lines
}

/// The tables of `--by` that contain more than the first screen.
fn tables_with_rows(stats: &Stats) -> Vec<&'static str> {
    let tables = [
        ("region", !stats.answers.regions.is_empty()),
        ("construct", !stats.constructs.is_empty()),
        ("thread", !stats.threads.is_empty()),
        ("function", !stats.functions.is_empty()),
        ("counter", !stats.counters.is_empty()),
        ("lock", !stats.locks.is_empty()),
        ("device", !stats.device_use.is_empty()),
        ("process", stats.processes.len() > 1),
        ("phase", !stats.phases.is_empty() || !stats.ranges.is_empty()),
    ];
    tables.into_iter().filter_map(|(name, has_rows)| has_rows.then_some(name)).collect()
}

fn write_causes(stats: &Stats, lines: &mut Lines, places: usize, look: Look) {
    let answers = &stats.answers;
    let whole = answers.accounting.total();
    let of = format!("  ({} x {})", counted(answers.threads.into(), "thread"), time(answers.duration_ns));
    let head = Line::of(Tint::Bold, "Where the thread time went").up_to(40);
    lines.push(head.and(Tint::Plain, "time      %").and(Tint::Dim, of));
    let percent = |ns: u64| format!("{:.1}", ns as f64 / whole.max(1) as f64 * 100.0);
    let cells = |ns: u64| (ns as f64 / whole.max(1) as f64 * f64::from(BAR)).round() as u32;
    let room = |indent: usize| 34 - indent;
    let mut rest = 0_u64;
    for share in shares(answers) {
        let is_useful = share.cause == Cause::Useful;
        if !is_useful && share.ns.saturating_mul(1000) < whole {
            rest.grow_by(share.ns);
            continue;
        }
        let line = Line::of(Tint::Plain, format!("  {:<32}", share.cause.title()));
        let numbers = format!("{:>10}  ", time(share.ns));
        let line = line.and(Tint::Plain, numbers).and(Tint::Bold, format!("{:>5}", percent(share.ns)));
        lines.push(line.up_to(53).bar(share.cause, cells(share.ns), 0, look));
        for (place, ns) in places_of(stats, share.cause, share.ns, places) {
            let name = shortened_place(&place, room(4));
            let line = Line::of(Tint::Plain, "    ").and(Tint::Place, format!("{name:<30}"));
            let line = line.and(Tint::Plain, format!("{:>10}  {:>5}", time(ns), percent(ns)));
            lines.push(line.up_to(53).bar(share.cause, cells(ns), 0, look));
        }
    }
    if rest > 0 {
        let line = format!("  {:<32}{:>10}  {:>5}", "other", time(rest), percent(rest));
        lines.push(Line::of(Tint::Plain, line));
    }
}

/// The places to which at least 1 % of a cause's time is due, largest first.
fn places_of(stats: &Stats, cause: Cause, of_cause: u64, top: usize) -> Vec<(String, u64)> {
    let answers = &stats.answers;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = |place: &Place, ns: u64| {
        if !is_nowhere(place) {
            sums.entry(label(place)).or_default().grow_by(ns);
        }
    };
    match cause {
        Cause::Useful => answers.useful.iter().for_each(|row| count(&row.place, row.ns)),
        _ => answers.blamed_for(cause).for_each(|row| count(&row.place, row.ns)),
    }
    // If the places add up to more than the cause's time, they include other threads' time.
    if sum(sums.values().copied()) > of_cause {
        return Vec::new();
    }
    let least = answers.accounting.total() / 100;
    let mut rows: Vec<(String, u64)> = sums.into_iter().filter(|(_, ns)| *ns >= least).collect();
    rows.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    rows.truncate(top);
    rows
}

/// A sentence as a heading, and rows below it.
fn write_headed(lines: &mut Lines, words: &[String], look: Look) {
    let Some((heading, rows)) = words.split_first() else { return };
    lines.gap();
    lines.words(Line::default(), &sentence(heading), Tint::Bold, look);
    for row in rows {
        lines.words(Line::of(Tint::Plain, "  "), row, Tint::Plain, look);
    }
}

/// The critical path of an MPI job, and what the job would gain.
fn write_job(stats: &Stats, lines: &mut Lines, rows: usize, look: Look) {
    let path = stats.job_path.as_ref().map(|path| job_path_lines(path, rows));
    write_headed(lines, &path.unwrap_or_default(), look);
    if let Some(gains) = stats.job_gains.as_ref().and_then(|gains| job_gain_line(gains, rows)) {
        lines.words(Line::of(Tint::Plain, "  "), &sentence(&gains), Tint::Plain, look);
    }
}

fn write_efficiencies(stats: &Stats, lines: &mut Lines, look: Look) {
    let efficiency = &stats.answers.efficiency;
    let Some(parallel) = efficiency.parallel else {
        return;
    };
    let product = |parts: [(&str, Option<f64>); 2]| match parts {
        [(one, Some(first)), (other, Some(second))] => {
            format!(" = {one} {} x {other} {}", percents(first), percents(second))
        }
        _ => String::new(),
    };
    let parts = [("load balance", efficiency.load_balance), ("communication", efficiency.communication)];
    let words = format!("parallel {}{}", percents(parallel), product(parts));
    let title = Line::of(Tint::Bold, "Efficiency").and(Tint::Plain, " (POP)  ");
    lines.words(title, &words, Tint::Plain, look);
    let parts = [("serialisation", efficiency.serialisation), ("transfer", efficiency.transfer)];
    let of_communication = product(parts);
    if !of_communication.is_empty() {
        lines.push(Line::of(Tint::Plain, format!("  communication{of_communication}")));
    }
    if let Some(mpi) = &stats.mpi_efficiency {
        let of_parallel = product([("MPI", Some(mpi.parallel)), ("OpenMP", mpi.openmp)]);
        if !of_parallel.is_empty() {
            lines.push(Line::of(Tint::Plain, format!("  parallel{of_parallel}")));
        }
        let parts = [("load balance", Some(mpi.load_balance)), ("communication", Some(mpi.communication))];
        lines.push(Line::of(Tint::Plain, format!("  MPI{}", product(parts))));
        let of_communication = product([("serialisation", mpi.serialisation), ("transfer", mpi.transfer)]);
        if !of_communication.is_empty() {
            lines.push(Line::of(Tint::Plain, format!("  MPI communication{of_communication}")));
        }
    }
}

/// A place as a row: function and line, otherwise the construct.
fn label(place: &Place) -> String {
    match (place.is_serial(), place.source(), place.function.as_ref().filter(|_| !place.is_call())) {
        (false, Some(source), Some(function)) => format!("{function} {source}"),
        (false, Some(source), None) => format!("{} {source}", place.construct_name()),
        (false, None, _) | (true, ..) => place.in_words(),
    }
}

/// Whether a place has neither line nor function, because it is not a construct of the program.
fn is_nowhere(place: &Place) -> bool {
    place.file.is_none() && place.function.is_none() && !place.is_directive && !place.construct.contains('@')
}

/// `words` as a sentence: with a capital letter at the start, and a full stop at the end.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if words.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use omptrace_analysis::Analysed;
    use omptrace_analysis::answers::{Blame, Efficiency, NotSeen};

    fn at(function: &str, line: u32) -> Place {
        Place::at("!$omp parallel", Some("/src/stencil.c"), Some(line), Some(function))
    }

    /// Statistics of two threads over 2.17 s.
    fn stats() -> Stats {
        let mut answers = Answers { threads: 2, duration_ns: 2_170_000_000, ..Answers::default() };
        for (cause, ms) in [
            (Cause::Useful, 2940),
            (Cause::Imbalance, 744),
            (Cause::Fork, 438),
            (Cause::Join, 178),
            (Cause::Serial, 40),
        ] {
            answers.accounting.add(cause, ms * 1_000_000);
        }
        for (cause, place, ms) in [
            (Cause::Imbalance, at("step_static", 35), 650),
            (Cause::Imbalance, at("step_dynamic", 42), 74),
            (Cause::Fork, at("step_static", 35), 252),
            (Cause::Join, at("step_dynamic", 41), 178),
        ] {
            let blame = Blame { cause, place, ns: ms * 1_000_000, functions: Vec::new(), no_sample_ns: None };
            answers.blame.push(blame);
        }
        answers.efficiency = Efficiency {
            parallel: Some(0.678),
            load_balance: Some(0.828),
            communication: Some(0.819),
            serialisation: Some(0.94),
            transfer: Some(0.872),
        };
        answers.not_seen.push(NotSeen { cause: Cause::Reduction, reason: "GCC inlines them".to_owned() });
        for (id, line, ms) in [("load_imbalance", 35, 325), ("late_wake_up", 41, 79)] {
            answers.findings.push(Finding {
                id: id.to_owned(),
                place: at("step_static", line),
                gain_ns: ms * 1_000_000,
                text: "threads finish this region at different times; if the loop is schedule(static), try \
                       schedule(dynamic)"
                    .to_owned(),
                evidence: serde_json::Map::new(),
                instances: Vec::new(),
            });
        }
        Stats { answers, ..Stats::default() }
    }

    #[test]
    fn each_cause_has_a_bar_and_its_worst_place() {
        let text = efficiency_bars(&stats().answers, Look::PLAIN).text(Look::PLAIN);
        assert_eq!(
            text,
            "  Parallel efficiency  68 %  ##############......
  Time lost to                                     mostly at
    load imbalance     17 %  ###                   stencil.c:35
    thread start-up    10 %  ##                    stencil.c:35
    end of region       4 %  #                     stencil.c:41
    serial code         1 %
"
        );
    }

    #[test]
    fn findings_have_their_saving_and_one_change() {
        let answers = stats().answers;
        let text = finding_cards(&answers, 1, Look::PLAIN).text(Look::PLAIN);
        assert_eq!(
            text,
            "  1. Load imbalance at stencil.c:35                saves up to 325 ms (15 %)
     Threads finish this region at different times; if the loop is
     schedule(static), try schedule(dynamic).
"
        );
    }

    #[test]
    fn the_first_screen_says_what_else_there_is() {
        let text =
            first_screen(&stats(), Line::of(Tint::Bold, "./stencil"), None, Look::PLAIN).text(Look::PLAIN);
        assert_eq!(
            text,
            "./stencil

Where the thread time went              time      %  (2 threads x 2.17 s)
  useful work                         2.94 s   67.7  ##############
  load imbalance                      744 ms   17.1  ###
    step_static stencil.c:35          650 ms   15.0  ###
    step_dynamic stencil.c:42        74.0 ms    1.7
  thread start-up                     438 ms   10.1  ##
    step_static stencil.c:35          252 ms    5.8  #
  end of region                       178 ms    4.1  #
    step_dynamic stencil.c:41         178 ms    4.1  #
  serial code                        40.0 ms    0.9

Efficiency (POP)  parallel 67.8 % = load balance 82.8 % x communication 81.9 %
  communication = serialisation 94.0 % x transfer 87.2 %

Findings (estimated savings of wall time; the savings can overlap)
  1. Load imbalance at stencil.c:35                saves up to 325 ms (15 %)
     Threads finish this region at different times; if the loop is
     schedule(static), try schedule(dynamic).
  2. Late thread start-up at stencil.c:41          saves up to 79.0 ms (4 %)
     Threads finish this region at different times; if the loop is
     schedule(static), try schedule(dynamic).
  What this means: omptrace help load_imbalance late_wake_up

Not visible: reductions: GCC inlines them
More: --full (constructs, critical path, threads), --by , --json
"
        );
    }

    #[test]
    fn savings_have_a_warning_if_tracing_takes_much_of_the_time() {
        let mut stats = stats();
        let has_note = |stats: &Stats| {
            let text = first_screen(stats, Line::default(), None, Look::PLAIN).text(Look::PLAIN);
            text.contains("  ! the savings are estimated for the run with tracing")
        };
        let mut of_tracer = stats.answers.findings[0].clone();
        of_tracer.id = "tracer_disturbs".to_owned();
        for (share, is_said) in [(0.09, false), (0.11, true)] {
            of_tracer.gain_ns = (stats.answers.duration_ns as f64 * share) as u64;
            stats.answers.findings.push(of_tracer.clone());
            assert_eq!(has_note(&stats), is_said, "{share}");
        }
        // Tracing is the only finding.
        stats.answers.findings.retain(|finding| finding.id == "tracer_disturbs");
        assert!(!has_note(&stats));
    }

    #[test]
    fn that_nothing_was_found_is_said_only_where_it_was_looked_for() {
        let mut stats = stats();
        stats.answers.findings.clear();
        let text = |stats: &Stats| first_screen(stats, Line::default(), None, Look::PLAIN).text(Look::PLAIN);
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(text(&stats)).contains(stats.answers.no_finding()));
        stats.analysed = Some(Analysed { threads: vec!["thread 1".to_owned()], ..Analysed::default() });
        assert!(!words(text(&stats)).contains(stats.answers.no_finding()));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut stats = stats();
        for finding in &mut stats.answers.findings {
            finding.place.file = Some(format!("/src/{}.c", "long".repeat(30)));
        }
        stats.answers.blame[0].place.file = Some(format!("/src/{}.c", "long".repeat(30)));
        stats.answers.cpu_note =
            Some("threads had a CPU for a part of the time in which they could have used one".to_owned());
        for width in [80, 100, 60] {
            let look = Look { width, ..Look::PLAIN };
            let heading = Line::of(Tint::Bold, "./stencil");
            let text = first_screen(&stats, heading, None, look).text(look)
                + &efficiency_bars(&stats.answers, look).text(look);
            let long: Vec<&str> = text.lines().filter(|line| letters(line) > width.max(75)).collect();
            assert!(long.is_empty(), "{width}: {long:#?}");
        }
    }

    #[test]
    fn the_largest_losses_of_a_part_lead_to_pages_that_exist() {
        let stats = stats();
        assert_eq!(
            help_for_causes(&stats.answers).as_deref(),
            Some("omptrace help load_imbalance region_too_small")
        );
        let pages = Cause::ALL.iter().filter_map(|cause| usual_finding(*cause));
        assert!(pages.map(Rule::by_id).all(|rule| rule.is_some()));
        assert_eq!(help_for_causes(&Answers::default()), None);
    }
}
