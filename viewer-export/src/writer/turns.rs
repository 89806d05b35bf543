//! Lets several sinks write one file at once. Each sink has a share of the processes, and the sinks take turns; or each
//! has segments of one process, which are written in chronological order.
//!
//! ```text
//! share 0: processes 0, 8, 16 ... --> sink --> buffers --\
//! share 1: processes 1, 9, 17 ... --> sink --> buffers ---> one of each in turn --> the file
//! ```
//!
//! The file is the same for any number and speed of threads, because shares and turns depend only on the timeline. If
//! fewer threads may work than there are shares, a thread that waits for its turn lets another one work. If the system
//! cannot create threads, the file is written without shares: the same timeline, but with other ids.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::writer::buffers::{Writer, new_buffer};

/// Number of buffers of a share that may wait for its turn.
const MAX_WAITING: usize = 2;
/// The same for segments, which are written one after another: 16 MiB, as much as about 500,000 events take.
const MAX_WAITING_OF_SEGMENTS: usize = 64;

/// A file to which shares are written in turns of one buffer each.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Signals that a waiting thread may continue.
    changed: Condvar,
}

struct State {
    /// `None` while a thread is writing, and if the shares cannot be written in parallel.
    writer: Option<Writer>,
    /// The incomplete shares, starting with the one whose turn it is.
    order: VecDeque<u32>,
    shares: Vec<Buffers>,
    /// Each share is written completely before the next.
    is_in_order: bool,
    /// Written buffers, for reuse.
    spare: Vec<Vec<u8>>,
    /// Number of further threads that may work.
    idle: usize,
    /// Whether all threads may begin, once that is known.
    may_begin: Option<bool>,
    /// Nothing more will be written, so waiting is of no use.
    failed: bool,
    /// The first error of `writer`.
    error: Option<io::Error>,
}

#[derive(Clone, Default)]
struct Buffers {
    waiting: VecDeque<Vec<u8>>,
    has_ended: bool,
}

impl Turns {
    /// `workers` of `shares` threads may work at once.
    pub(crate) fn new(writer: Writer, shares: usize, workers: usize) -> Arc<Turns> {
        Turns::with(writer, shares, workers, false)
    }

    /// The same for shares that are written one after another, for [`Turns::take_in_order`].
    pub(crate) fn in_order(writer: Writer, shares: usize, workers: usize) -> Arc<Turns> {
        Turns::with(writer, shares, workers, true)
    }

    fn with(writer: Writer, shares: usize, workers: usize, is_in_order: bool) -> Arc<Turns> {
        Arc::new(Turns {
            state: Mutex::new(State {
                writer: Some(writer),
                order: (0..shares as u32).collect(),
                shares: vec![Buffers::default(); shares],
                is_in_order,
                spare: Vec::new(),
                idle: workers,
                may_begin: None,
                failed: false,
                error: None,
            }),
            changed: Condvar::new(),
        })
    }

    /// Calls `work` for each share, each in a thread of its own, one of which is the calling thread. Returns the
    /// results by share. If the threads cannot be created, does nothing and returns the writer.
    pub(crate) fn take<R: Send>(&self, work: &(dyn Fn(u32) -> R + Sync)) -> Result<Vec<R>, Writer> {
        let in_turns = |share| {
            let _guard = FailsOnPanic(self);
            self.begin()?;
            let result = work(share);
            self.end(share);
            Some(result)
        };
        let shares = self.state.lock().shares.len() as u32;
        let results = thread::scope(|scope| {
            let spawned = (1..shares).map(|share| {
                let thread = thread::Builder::new().name("omptrace-share".into());
                thread.spawn_scoped(scope, move || in_turns(share))
            });
            let others: io::Result<Vec<_>> = spawned.collect();
            self.state.lock().may_begin = Some(others.is_ok());
            self.changed.notify_all();
            let mut results = vec![in_turns(0)];
            for other in others.into_iter().flatten() {
                match other.join() {
                    Ok(result) => results.push(result),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            results.into_iter().collect::<Option<Vec<R>>>()
        });
        // No thread has begun.
        let writer = match results {
            Some(results) => return Ok(results),
            None => self.state.lock().writer.take(),
        };
        Err(writer.expect("there until now"))
    }

    /// Calls `work` for each share, in at most `workers` threads including the calling one. Each thread takes one of
    /// the first shares, and then repeatedly the next free one. Returns the results by share.
    pub(crate) fn take_in_order<R: Send>(&self, workers: usize, work: &(dyn Fn(u32) -> R + Sync)) -> Vec<R> {
        let shares = self.state.lock().shares.len() as u32;
        let workers = (workers as u32).clamp(1, shares.max(1));
        let next = AtomicU32::new(workers);
        let in_turns = |first: Vec<u32>| {
            // Relaxed: each number is used once, and all other shared data is protected by the lock.
            let further = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let all = first.into_iter().chain(further);
            let in_turn = |share| {
                let _guard = FailsOnPanic(self);
                let result = work(share);
                self.end(share);
                (share, result)
            };
            all.take_while(|share| *share < shares).map(in_turn).collect::<Vec<_>>()
        };
        let mut results = thread::scope(|scope| {
            let in_turns = &in_turns;
            let (mut others, mut own) = (Vec::new(), vec![0]);
            for first in 1..workers {
                let thread = thread::Builder::new().name("omptrace-segment".into());
                match thread.spawn_scoped(scope, move || in_turns(vec![first])) {
                    Ok(thread) => others.push(thread),
                    // With fewer threads, it takes longer.
                    Err(_) => own.push(first),
                }
            }
            let mut results = in_turns(own);
            for other in others {
                match other.join() {
                    Ok(more) => results.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            results
        });
        results.sort_unstable_by_key(|(share, _)| *share);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Waits until the calling thread may work; `None` where it may not.
    fn begin(&self) -> Option<()> {
        let mut state = self.state.lock();
        let must_wait = |state: &mut State| match state.may_begin {
            Some(true) => state.idle == 0 && !state.failed,
            Some(false) => false,
            None => true,
        };
        self.changed.wait_while(&mut state, must_wait);
        state.idle = state.idle.saturating_sub(1);
        state.may_begin?.then_some(())
    }

    /// `share` has no more buffers.
    fn end(&self, share: u32) {
        let mut state = self.state.lock();
        state.shares[share as usize].has_ended = true;
        self.write(&mut state);
        state.idle += 1;
        self.changed.notify_all();
    }

    /// Takes the contents of `buffer` and replaces it by an empty one. Waits if `share` is too far ahead of the others.
    ///
    /// # Errors
    /// The file cannot be written any more; [`Turns::finish`] returns the reason.
    pub(crate) fn hand_over(&self, share: u32, buffer: &mut Vec<u8>) -> io::Result<()> {
        let is_full = |state: &State| {
            let most = match state.is_in_order {
                true => MAX_WAITING_OF_SEGMENTS,
                false => MAX_WAITING,
            };
            state.shares[share as usize].waiting.len() >= most
        };
        let mut state = self.state.lock();
        if is_full(&state) && !state.failed {
            state.idle += 1;
            self.changed.notify_all();
            let must_wait = |state: &mut State| {
                !state.failed && (is_full(state) || !state.is_in_order && state.idle == 0)
            };
            self.changed.wait_while(&mut state, must_wait);
            state.idle = state.idle.saturating_sub(1);
        }
        let next = state.spare.pop().unwrap_or_else(new_buffer);
        let full = std::mem::replace(buffer, next);
        state.shares[share as usize].waiting.push_back(full);
        self.write(&mut state);
        match state.failed {
            true => Err(io::Error::other("the file can no longer be written")),
            false => Ok(()),
        }
    }

    /// Writes the buffers whose turn has come, unless another thread is writing: that thread will also write buffers
    /// that arrive in the meantime.
    fn write(&self, state: &mut MutexGuard<'_, State>) {
        let Some(mut writer) = state.writer.take() else {
            return;
        };
        while let Some(share) = state.order.front().copied()
            && !state.failed
        {
            let share = &mut state.shares[share as usize];
            match share.waiting.pop_front() {
                Some(mut buffer) => {
                    if !state.is_in_order {
                        state.order.rotate_left(1);
                    }
                    self.changed.notify_all();
                    let written = MutexGuard::unlocked(state, || writer.write_all(&buffer));
                    if let Err(error) = written {
                        state.error = Some(error);
                        state.failed = true;
                    }
                    buffer.clear();
                    state.spare.push(buffer);
                }
                None if share.has_ended => drop(state.order.pop_front()),
                None => break,
            }
        }
        state.writer = Some(writer);
        self.changed.notify_all();
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// The first write error.
    pub(crate) fn finish(&self, end: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        match (state.error.take(), &mut state.writer) {
            (None, Some(writer)) => {
                writer.write_all(end)?;
                writer.flush()
            }
            (error, _) => Err(error.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())),
        }
    }
}

/// Other threads must not wait for a thread that has panicked.
struct FailsOnPanic<'t>(&'t Turns);

impl Drop for FailsOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.lock().failed = true;
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Keeps the bytes that were written; fails beyond `limit` bytes.
    #[derive(Clone)]
    struct Disk {
        written: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.written.lock();
            if written.len() + bytes.len() > self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn disk(room: usize) -> Disk {
        Disk { written: Arc::default(), room }
    }

    /// Each share passes its letter on this many times.
    fn written(disk: &Disk, workers: usize, times: &[usize]) -> io::Result<String> {
        let turns = Turns::new(Box::new(disk.clone()), times.len(), workers);
        let at_work = AtomicUsize::new(0);
        let work = |share| {
            (0..times[share as usize]).try_for_each(|_| {
                // Relaxed: the count orders nothing.
                let others = at_work.fetch_add(1, Ordering::Relaxed);
                assert!(others < workers, "{others} beside one of {workers}");
                at_work.fetch_sub(1, Ordering::Relaxed);
                turns.hand_over(share, &mut vec![b'a' + share as u8])
            })
        };
        let results = turns.take(&work).map_err(drop).expect("threads");
        assert_eq!(results.len(), times.len());
        turns.finish(b".")?;
        Ok(String::from_utf8(disk.written.lock().clone()).expect("letters"))
    }

    #[test]
    fn shares_take_turns() {
        for workers in [1, 2, 3, 9] {
            for _ in 0..20 {
                let disk = disk(usize::MAX);
                let written = written(&disk, workers, &[3, 1, 0, 9, 4]);
                assert_eq!(written.expect("no error"), "abdeadeadededdddd.", "{workers}");
            }
        }
    }

    #[test]
    fn segments_are_written_one_after_the_other() {
        let times = [3, MAX_WAITING_OF_SEGMENTS + 9, 0, 2 * MAX_WAITING_OF_SEGMENTS, 1];
        let expected: String =
            (b'a'..).zip(times).map(|(letter, times)| char::from(letter).to_string().repeat(times)).collect();
        for workers in [1, 2, 3, 9] {
            for _ in 0..20 {
                let disk = disk(usize::MAX);
                let turns = Turns::in_order(Box::new(disk.clone()), times.len(), workers);
                let results = turns.take_in_order(workers, &|share| {
                    (0..times[share as usize])
                        .try_for_each(|_| turns.hand_over(share, &mut vec![b'a' + share as u8]))
                        .map(|()| share)
                });
                let results: io::Result<Vec<u32>> = results.into_iter().collect();
                assert_eq!(results.expect("no error"), [0, 1, 2, 3, 4]);
                turns.finish(b"").expect("no error");
                let written = String::from_utf8(disk.written.lock().clone()).expect("letters");
                assert_eq!(written, expected, "{workers}");
            }
        }
    }

    #[test]
    fn an_error_ends_all_segments() {
        for workers in 1..4 {
            let turns = Turns::in_order(Box::new(disk(7)), 4, workers);
            let results = turns.take_in_order(workers, &|share| {
                (0..9).try_for_each(|_| turns.hand_over(share, &mut vec![b'a']))
            });
            assert!(results.iter().any(Result::is_err), "{workers}");
            let error = turns.finish(b".").expect_err("a full disk");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn first_error_is_reported_and_ends_all() {
        for workers in 1..4 {
            let error = written(&disk(7), workers, &[4; 3]).expect_err("a full disk");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn nobody_waits_for_one_that_panicked() {
        let (done, ended) = channel();
        thread::spawn(move || {
            let turns = Turns::new(Box::new(disk(usize::MAX)), 4, 2);
            let work = |share| {
                assert_ne!(share, 1, "the panic that is wanted");
                (0..9).try_for_each(|_| turns.hand_over(share, &mut vec![b'a']))
            };
            let panicked =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| turns.take(&work).is_ok()));
            done.send(panicked.is_err())
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
