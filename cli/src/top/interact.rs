//! The screen's loop: snapshots, keys, and how much CPU time both may take.

use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::job::Standstill;
use super::screen::{self, View};
use super::watch::{Choice, Look, Watched};
use crate::output::failure::{Failure, Result};
use crate::output::streams;
use crate::record::child_process::processor_ns;

/// The shortest time between two snapshots: ten per second.
const MIN_PERIOD: Duration = Duration::from_millis(100);
const MAX_PERIOD: Duration = Duration::from_secs(5);
/// The share of a CPU that snapshots may take.
const SHARE: f64 = 0.01;
/// Maximum number of events per snapshot.
const MAX_EVENTS: usize = 5000;
/// The length of the past that is saved.
const SAVED: Duration = Duration::from_secs(10);

/// Shows the screen until the user quits.
///
/// # Errors
/// There is no terminal, or the traces cannot be read.
pub(super) fn run(choice: &Choice, watched: &mut Vec<Watched>) -> Result<()> {
    if !streams::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::new("there is no terminal to draw on")
            .hint("to print one snapshot as text, run: omptrace top --once"));
    }
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::because("cannot draw on this terminal", &error))?;
    let stdin = std::io::stdin();
    let mut session = Session::new(choice, watched, stdin.as_fd());
    let result = loop {
        match session.look_once(&mut terminal, &|| false) {
            Ok(None) => {}
            Ok(Some(_)) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    ratatui::restore();
    result
}

/// The watched traces, and the user's view of them.
pub(super) struct Session<'s> {
    choice: &'s Choice,
    watched: &'s mut Vec<Watched>,
    look: Option<Look>,
    view: View,
    has_begun: bool,
    standstill: Standstill,
    /// The terminal that keys come from.
    keyboard: BorrowedFd<'s>,
}

/// What the user requests other than another view.
pub(super) enum Asked {
    Quit,
    /// Ctrl-C.
    Interrupt,
}

/// What a key means for the loop.
enum Next {
    Asked(Asked),
    /// The screen has changed.
    Redraw,
    Nothing,
}

impl<'s> Session<'s> {
    /// A session for one or more traces, with keys from a terminal.
    pub(super) fn new(
        choice: &'s Choice,
        watched: &'s mut Vec<Watched>,
        keyboard: BorrowedFd<'s>,
    ) -> Session<'s> {
        let view = View { processes: watched.len(), period: MIN_PERIOD, ..View::default() };
        let standstill = Standstill::default();
        Session { choice, watched, look: None, view, has_begun: false, standstill, keyboard }
    }

    /// Adds processes.
    pub(super) fn add(&mut self, more: Vec<Watched>) {
        self.watched.extend(more);
        self.view.processes = self.watched.len();
    }

    /// Takes a snapshot and draws it, then handles keys until the next snapshot is due, or until `is_over`.
    ///
    /// # Errors
    /// The traces cannot be read, or the terminal cannot be written to.
    pub(super) fn look_once<W: Write>(
        &mut self,
        terminal: &mut Terminal<CrosstermBackend<W>>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Asked>> {
        let begun = processor_ns();
        let watched = &mut self.watched[self.view.selected];
        if !std::mem::replace(&mut self.has_begun, true) {
            watched.begin(self.choice)?;
        }
        if !self.view.is_paused {
            let mut look = watched.look(self.choice, MAX_EVENTS)?;
            let rank = watched.rank_in_mpi();
            self.standstill.note(&mut look, rank, self.watched);
            self.look = Some(look);
        }
        self.draw(terminal)?;
        // A snapshot is followed by a pause a hundred times as long as the CPU time that it took.
        let cost = processor_ns().saturating_sub(begun);
        let period = Duration::from_nanos((cost as f64 / SHARE) as u64);
        self.view.period = period.clamp(MIN_PERIOD, MAX_PERIOD);
        let until = Instant::now() + self.view.period;
        while Instant::now() < until && !is_over() {
            match self.next_key(until.min(Instant::now() + MIN_PERIOD))? {
                Some(Next::Asked(asked)) => return Ok(Some(asked)),
                Some(Next::Redraw) => self.draw(terminal)?,
                Some(Next::Nothing) | None => {}
            }
        }
        Ok(None)
    }

    fn draw<W: Write>(&self, terminal: &mut Terminal<CrosstermBackend<W>>) -> Result<()> {
        let drawn = terminal.draw(|frame| {
            if let Some(look) = &self.look {
                screen::draw(frame, look, &self.view);
            }
        });
        drawn.map(drop).map_err(|error| Failure::because("cannot draw on this terminal", &error))
    }

    /// The meaning of the next key; `None` if no key was pressed before `until`.
    fn next_key(&mut self, until: Instant) -> Result<Option<Next>> {
        let cannot = |error: std::io::Error| Failure::because("cannot read keys", &error);
        let left = until.saturating_duration_since(Instant::now());
        let has_key_within = |left| match is_closed_within(self.keyboard, left) {
            true => Err(Failure::new("the terminal was closed")),
            false => event::poll(Duration::ZERO).map_err(cannot),
        };
        // Keys that were already read do not wake the second wait.
        if !has_key_within(Duration::ZERO)? && !has_key_within(left)? {
            return Ok(None);
        }
        Ok(Some(match event::read().map_err(cannot)? {
            Event::Key(key) if key.kind == KeyEventKind::Press => self.key(key)?,
            Event::Resize(..) => Next::Redraw,
            _ => Next::Nothing,
        }))
    }

    fn key(&mut self, key: KeyEvent) -> Result<Next> {
        let view = &mut self.view;
        view.said = None;
        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_interrupt => return Ok(Next::Asked(Asked::Interrupt)),
            KeyCode::Char('q') => return Ok(Next::Asked(Asked::Quit)),
            KeyCode::Esc if !view.shows_help => return Ok(Next::Asked(Asked::Quit)),
            KeyCode::Esc => view.shows_help = false,
            KeyCode::Char('?' | 'h') => view.shows_help = !view.shows_help,
            KeyCode::Char(' ' | 'p') => view.is_paused = !view.is_paused,
            KeyCode::Char('s') => view.sort = view.sort.next(),
            KeyCode::Char('t') => view.sorts_threads = !view.sorts_threads,
            KeyCode::Tab => {
                view.selected = (view.selected + 1) % view.processes;
                view.first_thread = 0;
                self.standstill = Standstill::default();
                let watched = &mut self.watched[view.selected];
                watched.begin(self.choice)?;
                self.look = Some(watched.look(self.choice, MAX_EVENTS)?);
            }
            KeyCode::Down => {
                let threads = self.look.as_ref().map_or(0, |look| look.threads_by_cause.len());
                view.first_thread = (view.first_thread + 1).min(threads.saturating_sub(1));
            }
            KeyCode::Up => view.first_thread = view.first_thread.saturating_sub(1),
            KeyCode::Char('w') => {
                let saved = self.watched[view.selected].save(SAVED, self.choice);
                view.said = Some(saved.unwrap_or_else(|failure| failure.to_string()));
            }
            _ => return Ok(Next::Nothing),
        }
        Ok(Next::Redraw)
    }
}

/// Waits until the terminal has input, is closed, or `left` is over; returns whether it is closed. crossterm would read
/// the end of a closed terminal's input for ever.
fn is_closed_within(terminal: BorrowedFd<'_>, left: Duration) -> bool {
    let mut entry = libc::pollfd { fd: terminal.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one entry, valid for writing.
    let found = unsafe { libc::poll(&raw mut entry, 1, milliseconds) };
    found > 0 && entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}
