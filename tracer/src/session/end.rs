//! Ends a session: writes the remaining events to the file, and removes the spool.

use std::sync::atomic::Ordering;
use std::time::Duration;

use omptrace_settings::value::Keep;
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::metadata::{End, Metadata};

use crate::os::log::{info, warning};
use crate::os::time::clock::Stopwatch;
use crate::os::{sanitizer, system};
use crate::recorder::recorder::{self, Mode};
use crate::session::current::{self, PATIENCE, Session, of_this_process};
use crate::session::hooks;

/// Time for which chunks are packed at the end of a session; the rest is written unpacked.
const PACK_AT_END: Duration = Duration::from_millis(20);

/// The program ends, but this process's session does not yet: writes an end with `how`, in case nothing follows.
pub(crate) fn note_end(how: &str) {
    if let Some(session) = of_this_process() {
        hooks::note_end(session);
        session.write_end(how, None);
    }
}

/// Ends the session of this process, if it has one; `how` is stored in the trace.
pub(crate) fn finish(how: &str) {
    let Some(session) = of_this_process() else {
        return;
    };
    if current::remove(session) {
        session.end(how);
    }
}

impl Session {
    /// Ends the session. A thread may be on the cold path for longer than [`PATIENCE`], for example in a slow write. It
    /// keeps its chunk, its recorder and the spool. What it still records remains there, and the reader finds it, as
    /// after a kill.
    fn end(&'static self, how: &str) {
        let start = Stopwatch::start();
        let began_raw_ns = system::clock_ns(libc::CLOCK_MONOTONIC_RAW);
        // While streams may still grow.
        hooks::end(self);
        Mode::Off.set();
        let is_quiet = recorder::wait_until_quiet(PATIENCE);
        if is_quiet {
            for recorder in recorder::all().filter(|recorder| self.owns(recorder)) {
                self.report_last_lost(recorder);
            }
        }
        // The thread that is not quiet may be this one: a signal handler that calls `exit` may have interrupted it
        // while it passed a chunk to the writer, or took a retained one. The helper threads then wait for this thread.
        let most = if is_quiet { None } else { Some(PATIENCE) };
        let listener = self.listener.lock().take();
        let listener_is_quiet = listener.is_none_or(|listener| listener.stop(most));
        let mut packer = self.writer.as_ref().and_then(|writer| writer.stop(most));
        // Data that a killed thread has started to write are still in the spool.
        let writer_is_quiet = self.writer.as_ref().is_none_or(|writer| writer.thread.has_ended());
        let is_quiet = is_quiet && listener_is_quiet && writer_is_quiet;
        if is_quiet {
            self.drain(&mut packer);
        }
        if is_quiet {
            // Needed for a process with one thread, whose writer never started.
            self.report_cost();
        }
        self.output.give_slots_back(PATIENCE);
        let stays_in_spool = !is_quiet && self.spool.path().is_some();
        if !stays_in_spool {
            self.write_rest(start, packer, is_quiet);
        }
        self.write_end(how, Some(began_raw_ns));
        if !is_quiet {
            // The thread may continue to write until the process ends.
            return;
        }
        if self.failure().is_some() {
            self.output.unlock();
            return;
        }
        self.output.give_space_back();
        sanitizer::plant_fault();
        self.spool.remove();
        if !self.output.can_be_found() {
            warning!(
                "{} was removed or replaced while the program ran, so its trace is lost",
                self.output.path().display()
            );
        }
        // A program that repeatedly loads its runtime has a session each time.
        self.output.close();
        self.spool.close();
        info!("wrote {}", self.output.path().display());
    }

    /// Writes how the session ended, and when the tracer began to end it. A later call overrides an earlier one.
    fn write_end(&'static self, how: &str, began_raw_ns: Option<u64>) {
        hooks::write_news(self);
        // Relaxed: if the threads are quiet, everything was counted before.
        let (streams, lost) = (self.streams.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed));
        let raw_ns = system::clock_ns(libc::CLOCK_MONOTONIC_RAW);
        let end = End { how: how.to_owned(), streams, lost, raw_ns: Some(raw_ns), began_raw_ns };
        self.write_metadata(&Metadata {
            end: Some(end),
            failure: self.failure().map(|failure| failure.to_string()),
            ..Metadata::default()
        });
    }

    /// Writes the published words of the chunks that threads have not handed over. If not all threads are quiet, any
    /// chunk may still be in use, so chunks are not reused.
    fn write_rest(&self, start: Stopwatch, mut packer: Option<Packer>, is_quiet: bool) {
        for (index, chunk) in self.spool.all() {
            // Not waited for: a signal handler that calls `exit` may have interrupted the thread that holds the lock.
            let nobody_takes_it = self.keeping.try_lock();
            // Retained, or handed over and not written.
            let is_left = self.config.mode == Keep::Newest || !is_quiet;
            let is_full = is_left && nobody_takes_it.is_some() && chunk.header().is_full();
            if is_full || chunk.header().take_over() {
                if start.elapsed() > PACK_AT_END {
                    packer = None;
                }
                match self.output.write_chunk(chunk, packer.as_mut()) {
                    Ok(_) if is_quiet => self.release(index),
                    Ok(_) => {}
                    Err(error) => self.fail("write", &error),
                }
            }
        }
    }
}
