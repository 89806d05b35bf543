//! Forks: the parent's trace stays exact, and a child that uses OpenMP gets its own trace.
//!
//! The spool is shared memory, so a child must never write where its parent writes. Each recorder is in memory that a
//! fork wipes, so the child's first event finds it full and takes the cold path, which checks the process id. This also
//! works after a raw clone.
//!
//! A child is *asleep* until it uses OpenMP. Runtimes announce its thread and its initial task inside fork() itself,
//! even in a child that only calls exec. Those events are held back; the first other one wakes the child up and starts
//! its session. The handlers below are registered in `ompt_start_tool`, before the runtime registers its own, so that
//! the child's handler runs before the runtime's.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use ompt_sys::ompt_task_initial;
use omptrace_trace_format::event::Event;

use crate::config::CHUNK_BYTES;
use crate::os::forks::{self, PATIENCE};
use crate::os::system;
use crate::os::threads::containment::contained;
use crate::os::threads::stack;
use crate::recorder::held_events;
use crate::recorder::recorder::{self, Mode, Recorder};
use crate::recorder::this_thread;
use crate::session;
use crate::session::{flush_signal, hooks};

/// Whether the parent had paused or ended recording when this child was forked; this then applies to the child, too.
static WAS_PAUSED: AtomicBool = AtomicBool::new(false);

/// Threads that fork in a signal handler that interrupted the hot path. In the child, the handler returns to the hot
/// path.
static INTERRUPTED: Interrupted = Interrupted([const { Place::free() }; 16]);

/// Registers the handlers; once per process.
pub(crate) fn watch() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    extern "C" fn before() {
        // Before the fork is announced, because records that a device delivers now may need the loader.
        let _ = contained(|| hooks::before_fork(PATIENCE));
        forks::begins();
        INTERRUPTED.note(this_thread::recorder().storing_in());
        forks::wait_for_loader();
    }
    extern "C" fn in_parent() {
        forks::ended_in_parent();
        let _ = contained(|| hooks::after_fork(PATIENCE));
        INTERRUPTED.take();
    }
    extern "C" fn in_child() {
        forks::ended_in_child();
        if let Some(parent) = session::current() {
            parent.let_go();
        }
        let interrupted = INTERRUPTED.take();
        INTERRUPTED.forget_others();
        if !interrupted.is_null() {
            // What the child stores there is never read.
            system::detach_memory(interrupted, CHUNK_BYTES);
        }
        this_thread::recorder().outlive_fork();
        if Mode::current() == Mode::Off {
            session::disown();
        } else {
            this_thread::set_recorder(None);
            recorder::forget_all();
            become_child();
        }
    }
    // Relaxed: only one thread loads the tool.
    if DONE.swap(1, Ordering::Relaxed) == 0 {
        // SAFETY: the handlers are functions of this library; the C library unregisters them when the library is
        // unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

/// Threads, each with the chunk in which its hot path is storing an event. A recorder cannot store that, because a fork
/// wipes it.
struct Interrupted([Place; 16]);

struct Place {
    /// The C library's handle of the thread, the same in parent and child; 0 if the place is free.
    thread: AtomicUsize,
    chunk: AtomicPtr<u8>,
}

impl Place {
    const fn free() -> Place {
        Place { thread: AtomicUsize::new(0), chunk: AtomicPtr::new(null_mut()) }
    }
}

impl Interrupted {
    /// The calling thread is about to fork while its hot path stores an event in `chunk`, unless that is null. If more
    /// threads do that at the same time than there are places, a child's event goes into the parent's chunk.
    fn note(&self, chunk: *mut u8) {
        let is_taken = |place: &Place| {
            // Relaxed: only this thread reads what it stores, even in the child.
            let (ours, theirs) = (Ordering::Relaxed, Ordering::Relaxed);
            place.thread.compare_exchange(0, system::thread_handle(), ours, theirs).is_ok()
        };
        if !chunk.is_null()
            && let Some(place) = self.0.iter().find(|place| is_taken(place))
        {
            place.chunk.store(chunk, Ordering::Relaxed);
        }
    }

    /// Removes and returns the chunk noted by the calling thread; null if there is none. A handler that interrupts a
    /// fork, and forks itself, notes the same chunk once more.
    fn take(&self) -> *mut u8 {
        let this = system::thread_handle();
        // Relaxed: as in `note`.
        let mut places = self.0.iter();
        let own = places.find(|place| place.thread.load(Ordering::Relaxed) == this);
        own.map_or(null_mut(), |place| {
            let chunk = place.chunk.swap(null_mut(), Ordering::Relaxed);
            place.thread.store(0, Ordering::Relaxed);
            chunk
        })
    }

    /// In a child: removes the other threads that were forking.
    fn forget_others(&self) {
        // Relaxed: the child has one thread.
        self.0.iter().for_each(|place| place.thread.store(0, Ordering::Relaxed));
    }
}

fn become_child() {
    // Relaxed: the child has one thread.
    WAS_PAUSED.store(Mode::current() == Mode::Pause, Ordering::Relaxed);
    flush_signal::give_back();
    hooks::in_child();
    session::forget_streams();
    held_events::forget();
    Mode::Child.set();
}

/// Checks whether this process is a child of the session's process.
pub(crate) fn notice() {
    let stranger = session::current().is_some_and(|session| session.pid != system::process_id());
    if stranger && Mode::current() != Mode::Child {
        // The fork handlers did not run.
        forks::lose_loader();
        become_child();
    }
}

/// In a child: returns true and holds back `event` if runtimes deliver it to every child. Any other event wakes the
/// child up.
pub(crate) fn still_asleep(recorder: &Recorder, event: impl Fn() -> Event<'static>) -> bool {
    let announcement = match event() {
        Event::ThreadBegin(_) | Event::ThreadEnd(_) => true,
        // The initial task in the drafts of OpenMP 5.0.
        Event::TaskCreate(row) => row.flags.0 & ompt_task_initial.0 != 0,
        Event::ImplicitTaskBegin(row) => row.flags.0 & ompt_task_initial.0 != 0,
        Event::ImplicitTaskEnd(row) => row.flags.0 & ompt_task_initial.0 != 0,
        // Only a state read at one of these events: any other event with a state has already woken the child.
        Event::ThreadState(_) => true,
        // The next event decides.
        Event::Counters(_) => true,
        _ => false,
    };
    if announcement {
        recorder.stream.held.push(event());
        // The event's id is assigned, so the predictors must be updated.
        recorder.put_nowhere(|state, ticks, out| event().encode(state, ticks, out));
    } else {
        wake_up();
    }
    announcement
}

/// Starts the child's own session.
pub(crate) fn wake_up() {
    static STARTED_FOR: AtomicU32 = AtomicU32::new(0);
    let pid = system::process_id();
    // AcqRel; only one of several threads of a child wakes it up.
    if STARTED_FOR.swap(pid, Ordering::AcqRel) != pid {
        // Relaxed: stored when the child had one thread.
        let is_paused = WAS_PAUSED.load(Ordering::Relaxed);
        stack::with_much(|| session::start_in_child(is_paused));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_forks_keeps_what_another_one_interrupted() {
        static NOTED: Interrupted = Interrupted([const { Place::free() }; 16]);
        let one = std::ptr::without_provenance_mut(1);
        NOTED.note(one);
        let forks = std::thread::spawn(|| {
            let other = std::ptr::without_provenance_mut(2);
            NOTED.note(null_mut());
            assert!(NOTED.take().is_null());
            NOTED.note(other);
            assert_eq!(NOTED.take(), other);
        });
        forks.join().unwrap();
        // A handler that forks interrupts a fork.
        NOTED.note(one);
        assert_eq!(NOTED.take(), one);
        assert_eq!(NOTED.take(), one);
        assert!(NOTED.take().is_null());
    }
}
