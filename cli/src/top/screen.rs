//! Draws the screen of `top`.

use std::time::Duration;

use omptrace_analysis::answers::{Accounting, Cause, RegionAnswer};
use omptrace_report::{shortened, time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use omptrace_symbols::printable::printable;

use super::text::{self, LETTERS, bar};
use super::watch::Look;

/// The colours of a bar's letters: those of the HTML report, which can be distinguished with all kinds of colour
/// vision.
const COLOURS: [Color; LETTERS.len()] = [
    Color::Rgb(0x00, 0x72, 0xb2),
    Color::Rgb(0xe6, 0x9f, 0x00),
    Color::Rgb(0xd5, 0x5e, 0x00),
    Color::Rgb(0xcc, 0x79, 0xa7),
    Color::Rgb(0xf0, 0xe4, 0x42),
    Color::Rgb(0x56, 0xb4, 0xe9),
    Color::Rgb(0x88, 0x22, 0x55),
    Color::Rgb(0xa6, 0x56, 0x28),
    Color::Rgb(0x00, 0x9e, 0x73),
    Color::Rgb(0x7f, 0x7f, 0x7f),
];
/// Number of lines above the lists.
const HEAD: u16 = 3;
const TREE: u16 = 7;
/// Width of a thread's name, in columns.
const NAME: usize = 18;
/// Width of the text after a thread's bar, in columns.
const BEHIND_BAR: usize = 30;

/// The sort order of regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// By lost time, largest first.
    #[default]
    Lost,
    /// By time, longest first.
    Time,
    /// By number of visits, largest first.
    Visits,
}

impl Sort {
    pub(super) fn next(self) -> Sort {
        match self {
            Sort::Lost => Sort::Time,
            Sort::Time => Sort::Visits,
            Sort::Visits => Sort::Lost,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Sort::Lost => "lost time",
            Sort::Time => "time",
            Sort::Visits => "visits",
        }
    }

    fn key(self, region: &RegionAnswer) -> u64 {
        match self {
            Sort::Lost => region.accounting.lost(),
            Sort::Time => region.duration_ns,
            Sort::Visits => region.visits,
        }
    }
}

/// The user's settings of the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) sort: Sort,
    /// Whether threads are sorted by lost time, largest first; otherwise, they are in their usual order.
    pub(super) sorts_threads: bool,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    /// The index of the selected process, and the number of processes.
    pub(super) selected: usize,
    pub(super) processes: usize,
    /// The first visible thread.
    pub(super) first_thread: usize,
    /// How long a snapshot is valid.
    pub(super) period: Duration,
    /// A message about the effect of a key.
    pub(super) said: Option<String>,
}

/// The keys, and the effect of each.
const KEYS: &[(&str, &str)] = &[
    ("q", "quit omptrace top; the program continues"),
    ("space", "pause or resume the display"),
    ("s", "sort regions by lost time, time or visits"),
    ("t", "sort threads by thread number or by lost time"),
    ("tab", "the next process"),
    ("up, down", "more threads"),
    ("w", "write the last 10 seconds as a trace; the program continues"),
    ("?", "toggle this help"),
];

/// Draws a snapshot.
pub(super) fn draw(frame: &mut Frame<'_>, look: &Look, view: &View) {
    let area = frame.area();
    let [head, tree, threads, regions, waits, foot] = Layout::vertical([
        Constraint::Length(HEAD),
        Constraint::Length(TREE),
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Fill(2),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_head(frame, head, look, view);
    let [left, right] = Layout::horizontal([Constraint::Length(42), Constraint::Fill(1)]).areas(tree);
    let lines: Vec<Line<'_>> = text::tree(&look.efficiency).into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(titled("efficiency")), left);
    draw_causes(frame, right, &look.accounting);
    draw_threads(frame, threads, look, view);
    draw_regions(frame, regions, look, view);
    draw_waits(frame, waits, look);
    draw_foot(frame, foot, view);
    if view.shows_help {
        draw_help(frame, area);
    }
}

/// A line of text that may contain names, which cannot control the terminal.
fn shown(text: &str) -> Line<'static> {
    Line::from(printable(text).into_owned())
}

fn titled(title: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).title(format!(" {title} "))
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, look: &Look, view: &View) {
    let mut lines: Vec<Line<'_>> = text::head(look).iter().map(|line| shown(line)).collect();
    if let Some(first) = lines.first_mut() {
        first.style = Style::new().add_modifier(Modifier::BOLD);
        if view.processes > 1 {
            first.push_span(format!("  ({} of {} processes)", view.selected + 1, view.processes));
        }
    }
    let note = look.notes.first().cloned();
    let note = note.or_else(|| look.headline.clone()).unwrap_or_default();
    lines.push(shown(&note));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The time of all threads by cause, which also serves as the legend of the bars.
fn draw_causes(frame: &mut Frame<'_>, area: Rect, accounting: &Accounting) {
    let whole = accounting.total().max(1) as f64;
    let mut lines = Vec::new();
    for ((letter, causes, words), colour) in LETTERS.iter().zip(COLOURS) {
        let ns: u64 = causes.iter().map(|cause| accounting[*cause]).sum();
        if ns > 0 || lines.len() < 4 {
            lines.push(Line::from(vec![
                Span::styled(format!("{letter} "), Style::new().fg(colour)),
                Span::raw(format!("{words:<20}{:>5.1} %", ns as f64 * 100.0 / whole)),
            ]));
        }
    }
    let idle = [Cause::Serial, Cause::IdleInMpi, Cause::NarrowTeam]
        .map(|cause| accounting[cause])
        .iter()
        .sum::<u64>();
    lines.push(Line::from(format!("  {:<20}{:>5.1} %", "nothing to do", idle as f64 * 100.0 / whole)));
    frame.render_widget(Paragraph::new(lines).block(titled("all threads")), area);
}

fn draw_threads(frame: &mut Frame<'_>, area: Rect, look: &Look, view: &View) {
    let letters = (area.width as usize).saturating_sub(NAME + BEHIND_BAR).max(8);
    let mut threads: Vec<_> = look.threads_by_cause.iter().collect();
    if view.sorts_threads {
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.accounting.lost()));
    }
    let line = |thread: &&omptrace_analysis::answers::LiveThread| {
        let mut spans = vec![Span::raw(format!("{:<NAME$}", text::cut(&thread.thread, NAME - 1)))];
        let parts = bar(&thread.accounting, thread.rest_ns, letters);
        for ((letter, count), colour) in parts.iter().zip(COLOURS) {
            spans.push(Span::styled(letter.to_string().repeat(*count), Style::new().fg(colour)));
        }
        let rest = parts.last().map_or(0, |(_, count)| *count);
        spans.push(Span::raw(" ".repeat(rest)));
        spans.push(Span::raw(text::behind_bar(thread)));
        Line::from(spans)
    };
    let lines: Vec<Line<'_>> = threads.iter().skip(view.first_thread).map(line).collect();
    let title = format!(
        "{} threads, by {}",
        look.threads_by_cause.len(),
        if view.sorts_threads { "lost time" } else { "number" }
    );
    frame.render_widget(Paragraph::new(lines).block(titled(&title)), area);
}

fn draw_regions(frame: &mut Frame<'_>, area: Rect, look: &Look, view: &View) {
    let mut regions: Vec<&RegionAnswer> = look.regions.iter().collect();
    regions.sort_by_key(|region| std::cmp::Reverse(view.sort.key(region)));
    let lines: Vec<Line<'_>> = regions.into_iter().map(|region| shown(&text::region(region))).collect();
    let title = format!("regions by {} (columns: time, visits, share of useful time)", view.sort.name());
    frame.render_widget(Paragraph::new(lines).block(titled(&title)), area);
}

fn draw_waits(frame: &mut Frame<'_>, area: Rect, look: &Look) {
    // Locks need no room if no thread waits for one.
    let of_locks = if look.blocked.is_empty() { Constraint::Length(0) } else { Constraint::Fill(1) };
    let [left, right] = Layout::horizontal([Constraint::Fill(1), of_locks]).areas(area);
    let causes = look.blame.iter().map(|row| row.cause.title().len()).max().unwrap_or(0);
    // What remains beside the frame, the time and the cause. The start and the end of a long name distinguish it.
    let room = usize::from(left.width).saturating_sub(2 + 10 + causes + 1);
    let rows = look.blame.iter().map(|row| {
        let place = shortened(&row.place.short(), room);
        shown(&format!("{:>9} {:<causes$} {place}", time(row.ns), row.cause.title()))
    });
    let blame: Vec<Line<'_>> = rows.collect();
    frame.render_widget(Paragraph::new(blame).block(titled("waits, by cause")), left);
    let locks: Vec<Line<'_>> = look.blocked.iter().map(|row| shown(&text::lock(row))).collect();
    frame.render_widget(Paragraph::new(locks).block(titled("locks: waiting time, lock, location")), right);
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let period = view.period.as_secs_f64();
    let text = match &view.said {
        Some(said) => printable(said).into_owned(),
        None if view.is_paused => "paused: space resumes    ? help   q quit".to_owned(),
        None => {
            format!("? help  q quit  space pause  s sort  tab process  w save  updated every {period:.1} s")
        }
    };
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(text).style(style), area);
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let mut lines: Vec<Line<'_>> =
        KEYS.iter().map(|(key, words)| Line::from(format!(" {key:<10}{words}"))).collect();
    lines.push(Line::from(""));
    lines.push(Line::from(" All values cover the last time window (--interval)."));
    lines.push(Line::from(" Each efficiency is the product of the efficiencies indented below it."));
    lines.push(Line::from(" A bar shows a thread's time by cause; the empty part of a bar is idle time."));
    let height = (lines.len() as u16 + 2).min(area.height);
    let width = 84.min(area.width);
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" keys ");
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::{Blame, Efficiency, LiveThread, Place};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::watch::State;
    use super::*;

    fn look() -> Look {
        let mut accounting = Accounting::default();
        accounting.add(Cause::Useful, 600);
        accounting.add(Cause::Imbalance, 400);
        let region = |line, lost, visits| {
            let mut of_region = Accounting::default();
            of_region.add(Cause::Useful, 10);
            of_region.add(Cause::Barrier, lost);
            RegionAnswer {
                place: Place::at("!$omp parallel", Some("a.c"), Some(line), None),
                visits,
                duration_ns: 7_000_000,
                accounting: of_region,
                ..RegionAnswer::default()
            }
        };
        Look {
            threads_by_cause: vec![LiveThread {
                thread: "main".to_owned(),
                accounting,
                ..LiveThread::default()
            }],
            regions: vec![region(1, 5, 9), region(2, 50, 1)],
            accounting,
            efficiency: Efficiency { parallel: Some(0.6), ..Efficiency::default() },
            window_begin_ns: Some(0),
            ..Look::empty("a (1)".to_owned(), State::Running)
        }
    }

    fn drawn(view: &View, size: (u16, u16)) -> String {
        screen_of(&look(), view, size)
    }

    fn screen_of(look: &Look, view: &View, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
        terminal.draw(|frame| draw(frame, look, view)).expect("it is drawn");
        let buffer = terminal.backend().buffer();
        let lines = buffer.content.chunks(width as usize);
        lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn the_screen_has_what_the_look_has() {
        let screen = drawn(&View::default(), (100, 30));
        for words in [
            "a (1): running",
            "parallel efficiency            60.0 %",
            "main",
            "useful               60.0 %",
            "imbalance            40.0 %",
            "parallel @a.c:2",
            "? help",
        ] {
            assert!(screen.contains(words), "no {words:?} in\n{screen}");
        }
        let place = |words| screen.find(words).expect("a region");
        assert!(place("a.c:2") < place("a.c:1"), "{screen}");
    }

    #[test]
    fn names_do_not_drive_the_terminal() {
        let place = Place::at("!$omp parallel", Some("\u{202e}a\x1b[2J.c"), Some(1), Some("f\u{202e}"));
        let blame = Blame {
            cause: Cause::Barrier,
            place: place.clone(),
            ns: 1,
            functions: Vec::new(),
            no_sample_ns: None,
        };
        for note in ["n\u{202e}", ""] {
            let look = Look {
                blame: vec![blame.clone()],
                regions: vec![RegionAnswer { place: place.clone(), ..RegionAnswer::default() }],
                threads_by_cause: vec![LiveThread {
                    thread: "t\u{202e}".to_owned(),
                    ..LiveThread::default()
                }],
                notes: Some(note.to_owned()).filter(|note| !note.is_empty()).into_iter().collect(),
                headline: Some("h\u{202e}".to_owned()),
                ..Look::empty("a\u{202e}".to_owned(), State::Running)
            };
            let screen = screen_of(&look, &View::default(), (100, 30));
            assert!(!screen.contains(['\u{202e}', '\x1b']), "{screen}");
            assert!(screen.matches("\\u{202e}").count() >= 5, "{screen}");
        }
    }

    #[test]
    fn keys_change_the_order_and_show_help() {
        let by_visits = View { sort: Sort::Lost.next().next(), ..View::default() };
        let screen = drawn(&by_visits, (100, 30));
        let place = |words| screen.find(words).expect("a region");
        assert!(place("a.c:1") < place("a.c:2"), "{screen}");
        let help = View { shows_help: true, ..View::default() };
        assert!(drawn(&help, (100, 30)).contains("quit omptrace top; the program continues"));
    }

    #[test]
    fn any_size_can_be_drawn() {
        for size in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            let view = View { shows_help: true, ..View::default() };
            drawn(&view, size);
        }
    }
}
