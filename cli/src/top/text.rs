//! A snapshot as plain text.

use std::fmt::Write;

use omptrace_analysis::answers::{Accounting, Blame, Blocked, Cause, Efficiency, LiveThread, RegionAnswer};
use omptrace_report::{counted, time};
use omptrace_symbols::printable::printable;

use super::watch::{Look, State, per_second};
use crate::output::message;

/// Default number of rows per list.
pub(super) const USUAL_ROWS: usize = 8;
/// Default width of a line, in columns.
const USUAL_WIDTH: usize = 80;
/// Width of a bar, in columns.
const BAR: usize = 24;

/// The letters of bars, the causes that each letter stands for, and their description.
pub(super) const LETTERS: [(char, &[Cause], &str); 10] = [
    ('#', &[Cause::Useful], "useful"),
    ('i', &[Cause::Imbalance], "imbalance"),
    ('l', &[Cause::Lock, Cause::Critical, Cause::Ordered, Cause::Atomic], "locks"),
    ('t', &[Cause::TaskWait, Cause::TaskStarvation], "tasks"),
    ('b', &[Cause::Fork, Cause::Join, Cause::Barrier], "start-up, barriers"),
    (
        'r',
        &[Cause::Reduction, Cause::Target, Cause::Runtime, Cause::ExternalWait],
        "runtime, devices, other waits",
    ),
    ('m', &[Cause::Mpi, Cause::MpiWait, Cause::MpiTransfer, Cause::MpiOther], "MPI"),
    ('p', &[Cause::Preempted], "preempted"),
    ('w', &[Cause::Tracer], "tracer"),
    ('?', &[Cause::Unobserved], "not recorded"),
];

/// The text, in lines of `width` columns, with this number of rows per list.
pub(super) fn of(look: &Look, width: Option<usize>, rows: usize) -> String {
    let width = width.unwrap_or(USUAL_WIDTH);
    let mut lines = head(look);
    lines.extend(look.headline.clone());
    lines.extend(look.notes.iter().map(|note| format!("note: {note}")));
    let lines = lines.iter().map(|line| message::folded(&printable(line), Some(width), Some(2)));
    let mut text: String = lines.map(|line| line + "\n").collect();
    if look.window_begin_ns.is_none() {
        return text + "no values for this time window, because it contains no events\n";
    }
    text += "\n";
    for line in tree(&look.efficiency) {
        text += &(line + "\n");
    }
    text += &threads(look, rows, width);
    let regions_title = "regions, sorted by lost time (columns: time, visits, share of useful time)";
    text += &list(regions_title, &look.regions, region, rows, width);
    let waits_title = "waits, by cause (columns: time of all threads, cause, location)";
    text += &list(waits_title, &look.blame, wait, rows, width);
    let locks_title =
        "locks (columns: waiting time, lock, waiting thread and its location, location of the holder)";
    text += &list(locks_title, &look.blocked, lock, rows, width);
    text
}

/// What is watched, and the rate of events.
pub(super) fn head(look: &Look) -> Vec<String> {
    let state = match look.state {
        State::Running => "running",
        State::RunningUnseen => "running, but the newest events are not visible",
        State::Ended => "ended",
        State::Unknown => "unknown whether running or ended",
    };
    let mut sizes = vec![format!("trace {}", message::bytes(look.trace_bytes))];
    if look.spool_bytes > 0 {
        sizes.push(format!("spool {}", message::bytes(look.spool_bytes)));
    }
    if let (Some(events), Some(bytes)) = (look.events_per_second, look.event_bytes_per_second) {
        let about = if look.is_estimate { "about " } else { "" };
        sizes.push(format!("{about}{}, {}/s", per_second(events, "event"), message::bytes(bytes as u64)));
    }
    sizes.push(match look.lost_events {
        0 => "nothing lost".to_owned(),
        lost => format!("{} lost", counted(lost, "event")),
    });
    vec![format!("{}: {state}, {}", look.process, message::near(&look.trace).display()), sizes.join("; ")]
}

/// The efficiencies, each below the one of which it is a factor.
pub(super) fn tree(efficiency: &Efficiency) -> Vec<String> {
    let rows = [
        (0, "parallel efficiency", efficiency.parallel),
        (1, "load balance", efficiency.load_balance),
        (1, "communication efficiency", efficiency.communication),
        (2, "serialisation", efficiency.serialisation),
        (2, "transfer", efficiency.transfer),
    ];
    let row = |(depth, name, value): (usize, &str, Option<f64>)| {
        let name = format!("{}{name}", "  ".repeat(depth));
        match value {
            Some(value) => format!("{name:<30}{:>5.1} %", value * 100.0),
            None => format!("{name:<30}    - "),
        }
    };
    rows.map(row).to_vec()
}

/// Number of letters per cause in a bar, rounded down, so that no cause gets more than its share.
pub(super) fn bar(accounting: &Accounting, rest: u64, letters: usize) -> Vec<(char, usize)> {
    let whole = accounting.total().saturating_add(rest).max(1);
    let mut bar = Vec::new();
    let (mut until, mut drawn) = (0_u64, 0);
    for (letter, causes, _) in LETTERS {
        until += causes.iter().map(|cause| accounting[*cause]).sum::<u64>();
        let end = (until as f64 / whole as f64 * letters as f64).round() as usize;
        bar.push((letter, end.saturating_sub(drawn)));
        drawn = drawn.max(end);
    }
    bar.push((' ', letters.saturating_sub(drawn)));
    bar
}

/// The text after a thread's bar: the share of useful time, and the cause with the largest loss.
pub(super) fn behind_bar(thread: &LiveThread) -> String {
    let accounting = &thread.accounting;
    let whole = accounting.total().saturating_add(thread.rest_ns).max(1);
    let percent = |ns: u64| ns as f64 * 100.0 / whole as f64;
    let losses = accounting.iter().filter(|(cause, _)| cause.is_loss());
    let worst = losses.max_by_key(|(_, ns)| *ns);
    let worst = worst
        .filter(|(_, ns)| *ns > 0)
        .map(|(cause, ns)| format!("  {} {:.0} %", cause.title(), percent(ns)));
    let useful = percent(accounting[Cause::Useful]);
    format!(" {useful:>5.1} %{}", worst.unwrap_or_default())
}

/// A region: its time, visits, share of useful time, and place.
pub(super) fn region(region: &RegionAnswer) -> String {
    let useful = region.accounting.share(Cause::Useful);
    let useful = useful.map_or("     -".to_owned(), |share| format!("{:>4.0} %", share * 100.0));
    format!(
        "{:>9} {:>9} {useful}  {}",
        time(region.duration_ns),
        message::number(region.visits),
        region.place.long()
    )
}

/// A wait: how long all threads waited, the cause, and the place that others waited for.
pub(super) fn wait(row: &Blame) -> String {
    format!("{:>9} {:<20} {}", time(row.ns), row.cause.title(), row.place.long())
}

/// A thread's waits for a lock: their duration, the lock, the place, and the place where another thread held the lock.
pub(super) fn lock(row: &Blocked) -> String {
    let holder = row.holder.as_ref();
    let holder = holder.map(|holder| format!(", held {}", holder.at_short()));
    format!(
        "{:>9} {} {} {}{}",
        time(row.ns),
        row.lock.as_deref().unwrap_or(row.cause.name()),
        row.waiter_thread,
        row.waiter.at_short(),
        holder.unwrap_or_default()
    )
}

fn threads(look: &Look, rows: usize, width: usize) -> String {
    let letters = LETTERS.iter().map(|(letter, _, words)| format!("{letter} {words}"));
    let letters: Vec<String> = letters.collect();
    let title = format!("threads ({})", letters.join(", "));
    let mut text = format!("\n{}\n", message::folded(&title, Some(width), Some(2)));
    for thread in look.threads_by_cause.iter().take(rows) {
        let bar = bar(&thread.accounting, thread.rest_ns, BAR).into_iter();
        let bar: String = bar.flat_map(|(letter, count)| std::iter::repeat_n(letter, count)).collect();
        let line = format!("  {:<18}|{bar}|{}", cut(&thread.thread, 17), behind_bar(thread));
        text += &(cut(&line, width) + "\n");
    }
    more(&mut text, look.threads_by_cause.len(), rows);
    text
}

/// A list with a heading; empty if it has no rows.
fn list<T>(heading: &str, all: &[T], row: fn(&T) -> String, rows: usize, width: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{heading}\n");
    for one in all.iter().take(rows) {
        text += &(cut(&format!("  {}", row(one)), width) + "\n");
    }
    more(&mut text, all.len(), rows);
    text
}

fn more(text: &mut String, all: usize, rows: usize) {
    if all > rows {
        let _ = writeln!(text, "  ... {} more: --limit N", all - rows);
    }
}

/// The line, with unprintable characters as escapes, cut to the width.
pub(super) fn cut(line: &str, width: usize) -> String {
    let line = &*printable(line);
    match line.char_indices().nth(width) {
        Some((end, _)) => line[..end].to_owned(),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_it_is_wide() {
        let mut accounting = Accounting::default();
        accounting.add(Cause::Useful, 50);
        accounting.add(Cause::Lock, 25);
        let letters = |rest| {
            let bar = bar(&accounting, rest, 8);
            let letters = bar.into_iter();
            letters.flat_map(|(letter, count)| std::iter::repeat_n(letter, count)).collect::<String>()
        };
        assert_eq!(letters(25), "####ll  ");
        assert_eq!(letters(0), "#####lll");
        assert_eq!(bar(&Accounting::default(), 0, 4).last(), Some(&(' ', 4)));
    }

    #[test]
    fn each_cause_has_a_letter_unless_there_is_nothing_to_do() {
        for cause in Cause::ALL {
            let letters = LETTERS.iter().filter(|(_, causes, _)| causes.contains(cause));
            let expected =
                usize::from(!matches!(cause, Cause::Serial | Cause::IdleInMpi | Cause::NarrowTeam));
            assert_eq!(letters.count(), expected, "{}", cause.name());
        }
    }
}
