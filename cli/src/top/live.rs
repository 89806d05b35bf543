//! The screen of `record --live`: it appears with the program's first trace, and disappears when the program ends.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use omptrace_symbols as symbols;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::interact::{Asked, Session};
use super::watch::{Choice, Watched};
use crate::output::failure::{Failure, Result};
use crate::output::streams;
use crate::record::child_process;
use crate::record::recorded_traces;

/// Time between checks for the first trace.
const PAUSE: Duration = Duration::from_millis(50);
/// The time that a snapshot covers.
const INTERVAL: Duration = Duration::from_secs(1);

/// The screen, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Live {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl Live {
    /// Starts to look for traces that are noted in the directory `registry`.
    ///
    /// # Errors
    /// The program would use the terminal, too, or there is none.
    pub(crate) fn start(registry: PathBuf) -> Result<Live> {
        let uses_terminal =
            io::stdin().is_terminal() || streams::stdout().is_terminal() || streams::stderr().is_terminal();
        if uses_terminal {
            return Err(Failure::new(
                "with --live, omptrace takes over the terminal, so the program's input and output must be redirected",
            )
            .hint(
                "for example: omptrace record --live ./app < /dev/null > app.out 2>&1; or watch the program from a second terminal with: omptrace top",
            ));
        }
        let tty = || File::options().read(true).write(true).open("/dev/tty");
        let tty = tty().map_err(|error| Failure::because("there is no terminal to draw on", &error))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_over);
        let watch = move || watch(tty, &registry, &of_thread);
        let thread = thread::Builder::new().spawn(watch);
        let thread = thread.map_err(|error| {
            Failure::because("cannot start the thread that draws on the terminal", &error)
        })?;
        Ok(Live { thread, is_over })
    }

    /// Called when the program has ended: restores the terminal.
    pub(crate) fn finish(self) {
        // Relaxed: no other data is passed.
        self.is_over.store(true, Ordering::Relaxed);
        // The thread only draws, and a failed screen harms no trace.
        let _ = self.thread.join();
    }
}

fn watch(tty: File, registry: &Path, is_over: &AtomicBool) {
    let is_over = || is_over.load(Ordering::Relaxed);
    let mut known = Vec::new();
    let mut news = move || {
        let mut new = recorded_traces::traces_in(registry);
        new.retain(|trace| !known.contains(trace));
        known.extend(new.iter().cloned());
        let opened = new.iter().filter_map(|trace| Watched::open(trace).ok());
        opened.collect::<Vec<Watched>>()
    };
    let mut watched = news();
    while watched.is_empty() {
        if is_over() {
            return;
        }
        thread::sleep(PAUSE);
        watched = news();
    }
    let choice = Choice { symbols: symbols::Options::default(), interval: INTERVAL, threads: None };
    // A drawing error is not reported, because stderr belongs to the program.
    let _ = draw(tty, &choice, &mut watched, &mut news, &is_over);
}

fn draw(
    tty: File,
    choice: &Choice,
    watched: &mut Vec<Watched>,
    news: &mut dyn FnMut() -> Vec<Watched>,
    is_over: &dyn Fn() -> bool,
) -> Result<()> {
    let cannot = |error: io::Error| Failure::because("cannot draw on this terminal", &error);
    let mut on = tty.try_clone().map_err(cannot)?;
    let keyboard = tty.try_clone().map_err(cannot)?;
    enable_raw_mode().map_err(cannot)?;
    let result = execute!(on, EnterAlternateScreen)
        .and_then(|()| Terminal::new(CrosstermBackend::new(tty)))
        .map_err(cannot)
        .and_then(|mut terminal| {
            let mut session = Session::new(choice, watched, keyboard.as_fd());
            let result = loop {
                match session.look_once(&mut terminal, is_over) {
                    Ok(Some(Asked::Interrupt)) => child_process::interrupt_group(),
                    Ok(Some(Asked::Quit)) => break Ok(()),
                    Ok(None) if is_over() => break Ok(()),
                    Ok(None) => session.add(news()),
                    Err(failure) => break Err(failure),
                }
            };
            if result.is_err() {
                // Its destructor would report on stderr that it cannot restore the cursor.
                std::mem::forget(terminal);
            }
            result
        });
    let _ = disable_raw_mode();
    let _ = execute!(on, LeaveAlternateScreen);
    result
}
