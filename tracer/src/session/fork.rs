//! Fork: the parent's trace stays exact, a child that uses OpenMP gets a trace of its own.
//!
//! The spool is shared memory, so a child must never write where its parent writes. Each recorder lies in memory that a fork
//! wipes. The child's first event finds it full and takes the cold path, where the process id is asked. That holds after a
//! raw clone too.
//!
//! A child is *asleep* until it uses OpenMP. Runtimes announce its thread and its initial task inside fork() itself, also in
//! a child that only calls exec. Those events are held back; the first other one wakes the child up, which starts its
//! session. The handlers below are registered in `ompt_start_tool`, before the runtime registers its own, so that the
//! child's runs before the runtime's.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

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
use crate::session::{flush_signal, part};

/// The parent had paused recording, or ended it, when this child was forked: that goes for the child, too.
static WAS_PAUSED: AtomicBool = AtomicBool::new(false);

/// The chunk that the hot path of the thread that forks stores an event in, where a signal handler forks that interrupted it;
/// null otherwise. In the child, the handler returns to the hot path.
static INTERRUPTED: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Registers the handlers; once per process.
pub(crate) fn watch() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    extern "C" fn before() {
        // Before the fork is announced: what a device delivers now may need the loader.
        let _ = contained(|| part::before_fork(PATIENCE));
        forks::begins();
        let storing_in = this_thread::recorder().storing_in();
        if !storing_in.is_null() {
            // Relaxed: read by this thread, in the child.
            INTERRUPTED.store(storing_in, Ordering::Relaxed);
        }
        forks::wait_for_loader();
    }
    extern "C" fn in_parent() {
        forks::ended_in_parent();
        let _ = contained(|| part::after_fork(PATIENCE));
        // Relaxed: as above.
        INTERRUPTED.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
    extern "C" fn in_child() {
        forks::ended_in_child();
        if let Some(parent) = session::current() {
            parent.let_go();
        }
        let interrupted = INTERRUPTED.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if !interrupted.is_null() {
            // Nothing reads what the child stores there.
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
    // Relaxed: one thread loads the tool.
    if DONE.swap(1, Ordering::Relaxed) == 0 {
        // SAFETY: the handlers are functions of this library, and the C library forgets them when the library goes.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

fn become_child() {
    // Relaxed: the child has one thread.
    WAS_PAUSED.store(Mode::current() == Mode::Pause, Ordering::Relaxed);
    flush_signal::give_back();
    part::in_child();
    session::forget_streams();
    held_events::forget();
    Mode::Child.set();
}

/// Finds out whether this process is the child of one that the session belongs to.
pub(crate) fn notice() {
    let stranger = session::current().is_some_and(|session| session.pid != system::process_id());
    if stranger && Mode::current() != Mode::Child {
        // The handlers did not run.
        forks::lose_loader();
        become_child();
    }
}

/// In a child: true where `event` is one that runtimes deliver to every child; it is held back. Any other one wakes
/// the child up.
pub(crate) fn still_asleep(recorder: &Recorder, event: impl Fn() -> Event<'static>) -> bool {
    let announcement = match event() {
        Event::ThreadBegin(_) | Event::ThreadEnd(_) => true,
        // The drafts of OpenMP 5.0 report the initial task so.
        Event::TaskCreate(row) => row.flags.0 & ompt_task_initial.0 != 0,
        Event::ImplicitTaskBegin(row) => row.flags.0 & ompt_task_initial.0 != 0,
        Event::ImplicitTaskEnd(row) => row.flags.0 & ompt_task_initial.0 != 0,
        // Only the state at one of these: any other event that has one beside it has woken the child up.
        Event::ThreadState(_) => true,
        // What follows decides.
        Event::Counters(_) => true,
        _ => false,
    };
    if announcement {
        recorder.stream.held.push(event());
        // Its id is given: the predictors must know.
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
    // AcqRel; several threads of a child may wake it up: one does.
    if STARTED_FOR.swap(pid, Ordering::AcqRel) != pid {
        // Relaxed: stored when the child had one thread.
        let is_paused = WAS_PAUSED.load(Ordering::Relaxed);
        stack::with_much(|| session::start_in_child(is_paused));
    }
}
