//! Watches one trace: repeatedly analyses what its process did in the last moments.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZero;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use omptrace_analysis::answers::{
    Accounting, Blame, Blocked, Efficiency, LiveSnapshot, LiveThread, NotSeen, RegionAnswer,
};
use omptrace_symbols::{self as symbols, Table};
use omptrace_timeline::model::Ns;
use omptrace_timeline::process_name;
use omptrace_trace_format::follow::{self, Bounds, Polled};
use omptrace_trace_format::{Ending, Follower, InDoubt, Reader};
use serde::Serialize;
use serde_json::json;

use crate::output::failure::{Failure, Result};
use crate::output::message;
use crate::record::child_process::{Now, raw_ns};
use crate::seal::sealing::{self, Job};

/// Maximum number of words that are read from the spool at a time; further words are skipped.
const MAX_WORDS: u64 = 1 << 20;
/// Number of events that are kept per stream.
const MAX_EVENTS: usize = 1 << 16;
/// Maximum size of the events of a finished trace that is interpreted completely, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The options of snapshots.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Where symbol names are looked up.
    pub(super) symbols: symbols::Options,
    /// The time that a snapshot covers.
    pub(super) interval: Duration,
    /// N, if the user gave it.
    pub(super) threads: Option<NonZero<u32>>,
}

/// The state of a traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It is running, and its events are read as they are recorded.
    Running,
    /// It is running, but its newest events are not visible.
    RunningUnseen,
    /// It has ended.
    Ended,
    /// It is unknown whether it is running.
    Unknown,
}

/// A snapshot of a process.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Look {
    pub(super) trace: PathBuf,
    pub(super) process: String,
    pub(super) pid: u32,
    pub(super) state: State,
    /// The window that the numbers cover, in nanoseconds since the session's start; `null` if nothing is known.
    pub(super) window_begin_ns: Option<Ns>,
    pub(super) window_end_ns: Option<Ns>,
    /// The window's share of the requested interval. It is below 1 if there were more events than are interpreted.
    pub(super) window_share: Option<f64>,
    /// Events per second since the previous snapshot; `null` if the process is not running.
    pub(super) events_per_second: Option<f64>,
    /// Whether some of these events were counted by the memory that they took.
    pub(super) is_estimate: bool,
    pub(super) event_bytes_per_second: Option<f64>,
    pub(super) trace_bytes: u64,
    pub(super) spool_bytes: u64,
    /// Number of lost events, as far as known.
    pub(super) lost_events: u64,
    /// N.
    pub(super) threads: u32,
    pub(super) accounting: Accounting,
    pub(super) efficiency: Efficiency,
    pub(super) threads_by_cause: Vec<LiveThread>,
    pub(super) regions: Vec<RegionAnswer>,
    pub(super) blame: Vec<Blame>,
    pub(super) blocked: Vec<Blocked>,
    pub(super) not_seen: Vec<NotSeen>,
    /// Notes about these numbers.
    pub(super) notes: Vec<String>,
    #[serde(skip)]
    pub(super) headline: Option<String>,
}

/// A trace, and the events read from it.
#[derive(Debug)]
pub(super) struct Watched {
    follower: Follower,
    names: Table,
    known_codes: usize,
    /// How far the program's clock is ahead of ours, in nanoseconds.
    ahead_ns: i64,
    /// The time of the last read from the spool.
    polled: Option<Instant>,
    /// Number of words per event, on average over the events read.
    words: u64,
    events: u64,
    /// The snapshot of a trace that is no longer being written.
    ended: Option<Look>,
}

impl Watched {
    /// # Errors
    /// The file is not a trace, or cannot be read.
    pub(super) fn open(trace: &Path) -> Result<Watched> {
        let follower = Follower::open(trace)
            .map_err(|error| Failure::because(format!("cannot read {}", trace.display()), &error))?;
        let now = Now::read();
        Ok(Watched {
            ahead_ns: follower.clock_ahead((now.raw_ns, now.realtime_ns)),
            follower,
            names: Table::default(),
            known_codes: 0,
            polled: None,
            words: 0,
            events: 0,
            ended: None,
        })
    }

    pub(super) fn trace(&self) -> &Path {
        self.follower.reader().path()
    }

    /// Its rank in an MPI job, if MPI calls are recorded.
    pub(super) fn rank_in_mpi(&self) -> Option<u32> {
        self.follower.reader().metadata().mpi.as_ref()?.rank
    }

    /// The program's `CLOCK_MONOTONIC_RAW`.
    fn now(&self) -> u64 {
        raw_ns().saturating_add_signed(self.ahead_ns)
    }

    pub(super) fn is_running(&self) -> bool {
        self.follower.is_followable()
    }

    /// Reads new events, so that a snapshot an interval later has something to cover.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub(super) fn begin(&mut self, choice: &Choice) -> Result<()> {
        if self.is_running() {
            self.poll(choice)?;
        }
        Ok(())
    }

    /// Takes a snapshot of the last interval. At most `most_events` events are interpreted.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub(super) fn look(&mut self, choice: &Choice, most_events: usize) -> Result<Look> {
        self.notice_end()?;
        if self.is_running() {
            self.look_at_spool(choice, most_events)
        } else {
            self.look_at_file(choice, most_events)
        }
    }

    /// Detects the end: a tracer that has ended has removed its spool, and a killed process no longer exists.
    fn notice_end(&mut self) -> Result<()> {
        if self.is_running() && !self.follower.is_still_written() {
            let path = self.follower.reader().path().to_owned();
            self.follower
                .renew()
                .map_err(|error| Failure::because(format!("cannot read {}", path.display()), &error))?;
        }
        Ok(())
    }

    fn poll(&mut self, choice: &Choice) -> Result<(Polled, Duration)> {
        let interval = ns(choice.interval);
        let begin = self.follower.ticks_at(self.now().saturating_sub(interval.cast_unsigned()));
        let bounds = Bounds { keep_from: begin, most_words: MAX_WORDS, most_events: MAX_EVENTS };
        let path = self.follower.reader().path().to_owned();
        let polled = self.follower.poll(bounds).map_err(|error| {
            Failure::because(format!("cannot read the spool of {}", path.display()), &error)
        })?;
        self.words += polled.words_read;
        self.events += polled.events_read;
        let now = Instant::now();
        let since = self.polled.replace(now);
        Ok((polled, since.map_or(Duration::ZERO, |since| now - since)))
    }

    fn look_at_spool(&mut self, choice: &Choice, most_events: usize) -> Result<Look> {
        let (polled, passed) = self.poll(choice)?;
        let interval = ns(choice.interval);
        let now = self.now();
        let until = self.follower.ticks_at(now).max(self.follower.newest());
        let begin = self.follower.ticks_at(now.saturating_sub(interval.cast_unsigned()));
        let covered = begin.max(self.follower.covered_from());
        let from = self.follower.begin_of_last(most_events, covered);
        let mut look = self.empty_look(State::Running);
        look.lost_events = polled.unreported;
        if !passed.is_zero() {
            let per_word = self.events as f64 / self.words.max(1) as f64;
            let words = polled.words as f64 / passed.as_secs_f64();
            let skipped = polled.words.saturating_sub(polled.words_read) as f64;
            let events = polled.events_read as f64 + skipped * per_word;
            look.events_per_second = Some(events / passed.as_secs_f64());
            look.event_bytes_per_second = Some(words * 8.0);
            look.is_estimate = polled.words != polled.words_read;
        }
        if until > from {
            self.interpret(choice, (from, until), &mut look)?;
        }
        if let Some(share) = look.window_share.filter(|share| *share < 0.99) {
            let rate = look.events_per_second.unwrap_or(0.0);
            look.notes.push(format!(
                "only the last {:.1} % of the time window is analysed, because too many events are recorded ({})",
                share * 100.0,
                per_second(rate, "event")
            ));
        }
        Ok(look)
    }

    /// Writes a small trace of the window, and interprets it.
    fn interpret(&mut self, choice: &Choice, window: (u64, u64), look: &mut Look) -> Result<()> {
        let cannot = |error: &(dyn std::error::Error + 'static)| {
            Failure::because("cannot read the newest events", error)
        };
        let bytes = self.follower.excerpt(window.0, window.1);
        // In memory if possible, and without a name, so that no file is left behind.
        let file = tempfile::tempfile_in("/dev/shm").or_else(|_| tempfile::tempfile());
        let mut file = file.map_err(|error| cannot(&error))?;
        file.write_all(&bytes).map_err(|error| cannot(&error))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let excerpt = Reader::open(&path).map_err(|error| cannot(&error))?;
        let codes = self.follower.code_addresses();
        if codes != self.known_codes {
            self.names.update(symbols::resolve(&excerpt, &choice.symbols));
            self.known_codes = codes;
        }
        let clock = excerpt.clock();
        let window = (clock.ns(window.0).max(0), clock.ns(window.1).max(0));
        if let Some((glance, report)) = LiveSnapshot::of(&excerpt, &self.names, window, choice.threads) {
            look.lost_events += report.processes.iter().map(|process| process.lost).sum::<u64>();
            look.take(glance, window, ns(choice.interval));
        }
        Ok(())
    }

    /// A snapshot of the end of a trace that is no longer being written.
    fn look_at_file(&mut self, choice: &Choice, most_events: usize) -> Result<Look> {
        if let Some(ended) = &self.ended {
            return Ok(ended.clone());
        }
        let reader = self.follower.reader();
        let state = match reader.ending() {
            Ending::Running => State::RunningUnseen,
            Ending::Unknown(_) => State::Unknown,
            Ending::Ended | Ending::Killed(_) | Ending::DidNotFinish => State::Ended,
        };
        let mut look = self.empty_look(state);
        let reader = self.follower.reader();
        match reader.ending() {
            Ending::Running => look.notes.push(
                "the newest events are not shown, because the spool file could not be created and these events are only in the program's own memory"
                    .to_owned(),
            ),
            Ending::Unknown(doubt) => look
                .notes
                .push(format!("it is not known whether the process is still running, because {doubt}")),
            _ => {}
        }
        let clock = reader.clock();
        let last = reader.last_ticks();
        let end = clock.ns(last);
        let interval = ns(choice.interval).min(end);
        if reader.summary().event_bytes > MAX_FILE_BYTES {
            look.notes.push(
                "the trace is large, so only the events at its end are read, and constructs that started earlier are not known; `omptrace stats --window` also reads the earlier events"
                    .to_owned(),
            );
            self.take_end(choice, most_events, &mut look)?;
        } else {
            self.names = Table::of(reader, &choice.symbols);
            let window = (end - interval, end);
            if let Some((glance, report)) = LiveSnapshot::of(reader, &self.names, window, choice.threads) {
                look.lost_events = report.processes.iter().map(|process| process.lost).sum();
                look.take(glance, window, interval);
            }
        }
        self.ended = Some(look.clone());
        Ok(look)
    }

    /// A snapshot of the end of a trace that is not interpreted completely.
    fn take_end(&mut self, choice: &Choice, most_events: usize, look: &mut Look) -> Result<()> {
        let reader = self.follower.reader();
        let last = reader.last_ticks();
        let end = reader.clock().ns(last);
        let begin_ns = (end - ns(choice.interval)).max(0);
        let bounds = Bounds {
            keep_from: reader.clock().ticks_at(begin_ns),
            most_words: u64::MAX,
            most_events: MAX_EVENTS,
        };
        self.follower.take_end(bounds);
        let covered = bounds.keep_from.max(self.follower.covered_from());
        let from = self.follower.begin_of_last(most_events, covered);
        if from < last {
            self.interpret(choice, (from, last), look)?;
        }
        Ok(())
    }

    fn empty_look(&self, state: State) -> Look {
        let reader = self.follower.reader();
        let (trace_bytes, spool_bytes) = self.follower.bytes();
        Look {
            trace: reader.path().to_owned(),
            pid: reader.header().pid,
            trace_bytes,
            spool_bytes,
            ..Look::empty(process_name(reader), state)
        }
    }

    /// Saves what happened during the last time as a trace in the current directory; returns a message about it.
    ///
    /// # Errors
    /// There is not enough space, or the trace cannot be read.
    pub(super) fn save(&mut self, last: Duration, choice: &Choice) -> Result<String> {
        self.follower.renew().map_err(|error| {
            let path = self.follower.reader().path().display();
            Failure::because(format!("cannot read {path}"), &error)
        })?;
        let reader = self.follower.reader();
        let now = self.now().saturating_sub(ns(last).cast_unsigned());
        let from = match self.is_running() {
            true => self.follower.ticks_at(now),
            false => 0,
        };
        let path = free_name(reader)?;
        let cannot =
            |error: &std::io::Error| Failure::because(format!("cannot write {}", path.display()), error);
        let file = File::create_new(&path).map_err(|error| cannot(&error))?;
        let mut out = BufWriter::new(file);
        let written = follow::save(reader, from, &mut out).and_then(|_| out.flush());
        if let Err(error) = written {
            let _ = std::fs::remove_file(&path);
            return Err(cannot(&error));
        }
        let job = Job {
            trace: path.clone(),
            additions: json!({}),
            symbols: Some(choice.symbols.clone()),
            in_doubt: InDoubt::Refuse,
        };
        let seconds = last.as_secs();
        let path = message::near(&path);
        sealing::seal_quietly(job).map_err(|why| Failure::new(format!("{}: {why}", path.display())))?;
        Ok(format!("wrote the last {seconds} s to {}", path.display()))
    }
}

/// An unused name in the current directory: `app.4711.top-1.omptrace`.
fn free_name(reader: &Reader) -> Result<PathBuf> {
    let stem = reader.path().file_stem().unwrap_or_default();
    let stem = stem.to_string_lossy();
    // The name must have room for what is appended.
    let stem = &stem[..stem.floor_char_boundary(220)];
    (1..1000)
        .map(|number| PathBuf::from(format!("{stem}.top-{number}.omptrace")))
        .find(|path| !path.exists())
        .ok_or_else(|| {
            Failure::new("the current directory already contains a thousand saved traces of this process")
        })
}

impl Look {
    /// A snapshot of a process about which nothing is known yet.
    pub(super) fn empty(process: String, state: State) -> Look {
        Look {
            trace: PathBuf::new(),
            process,
            pid: 0,
            state,
            window_begin_ns: None,
            window_end_ns: None,
            window_share: None,
            events_per_second: None,
            is_estimate: false,
            event_bytes_per_second: None,
            trace_bytes: 0,
            spool_bytes: 0,
            lost_events: 0,
            threads: 0,
            accounting: Accounting::default(),
            efficiency: Efficiency::default(),
            threads_by_cause: Vec::new(),
            regions: Vec::new(),
            blame: Vec::new(),
            blocked: Vec::new(),
            not_seen: Vec::new(),
            notes: Vec::new(),
            headline: None,
        }
    }

    fn take(&mut self, glance: LiveSnapshot, window: (Ns, Ns), interval: Ns) {
        let LiveSnapshot { answers, threads } = glance;
        self.window_begin_ns = Some(window.0);
        self.window_end_ns = Some(window.1);
        self.window_share = Some((window.1 - window.0) as f64 / interval.max(1) as f64);
        self.headline = omptrace_report::headline(&answers);
        self.threads = answers.threads;
        self.accounting = answers.accounting;
        self.efficiency = answers.efficiency;
        self.regions = answers.regions;
        self.blame = answers.blame;
        self.blocked = answers.blocked;
        self.not_seen = answers.not_seen;
        self.threads_by_cause = threads;
    }
}

fn ns(duration: Duration) -> Ns {
    Ns::try_from(duration.as_nanos()).unwrap_or(Ns::MAX)
}

/// `1.2 million events per second`, with two or three digits.
pub(super) fn per_second(rate: f64, thing: &str) -> String {
    let (scaled, word) = match rate {
        1e9.. => (rate / 1e9, " billion"),
        1e6.. => (rate / 1e6, " million"),
        10e3.. => (rate / 1e3, " thousand"),
        _ => (rate, ""),
    };
    let digits = usize::from(scaled < 100.0 && !word.is_empty());
    format!("{scaled:.digits$}{word} {thing}s per second")
}

#[cfg(test)]
mod tests {
    use super::per_second;

    #[test]
    fn rates_have_two_to_three_digits() {
        let text = |rate| per_second(rate, "event");
        assert_eq!(text(0.0), "0 events per second");
        assert_eq!(text(9_999.0), "9999 events per second");
        assert_eq!(text(12_340.0), "12.3 thousand events per second");
        assert_eq!(text(1_230_000.0), "1.2 million events per second");
        assert_eq!(text(123_400_000.0), "123 million events per second");
    }
}
