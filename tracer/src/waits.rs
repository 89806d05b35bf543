//! Waits outside OpenMP: if `libomptrace_waits.so` is preloaded, it reports calls of the program that took long.
//!
//! That library intercepts the functions of the C library that may wait. It asks for the time when a call is about to
//! wait, and reports the call afterwards:
//!
//! ```text
//! pthread_mutex_lock, if the mutex is taken
//!     -> begins()                      the time; 0 if the calling thread is not recorded
//!     -> the C library's function
//!     -> ends(time, kind, object, caller)   an event if it took long, and the caller is the program's code
//! ```
//!
//! A runtime waits with the same functions. Its waits are reported by its callbacks, so calls from its modules are
//! ignored.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ompt_sys::ompt_scope_beginend;
use omptrace_runtimes::Runtime;
use omptrace_trace_format::event::ExternalWait;
use omptrace_trace_format::field::{Address, Ticks, WaitKind};
use omptrace_trace_format::metadata::Metadata;

use crate::os::loader;
use crate::os::threads::alternate_stack;
use crate::os::time::clock::{self, ClockKind};
use crate::recorder::guarded::guarded;
use crate::recorder::recorder::Mode;
use crate::recorder::this_thread;
use crate::session::hooks::SessionHooks;
use crate::session::{Session, cold_path};

/// The type of `begins`.
type Begins = extern "C" fn() -> u64;
/// The type of `ends`.
type Ends = extern "C" fn(u64, u32, u64, *const c_void);

/// Whether the library is loaded.
static IS_CONNECTED: AtomicBool = AtomicBool::new(false);

/// Passes the two functions to the library, if it is in the global scope. Called by the library's constructor, whose
/// thread holds the loader's lock.
pub(crate) fn connect() {
    // SAFETY: a constant of the loader.
    let connect = unsafe { loader::symbol(libc::RTLD_DEFAULT, c"omptrace_waits_connect") };
    // SAFETY: null, or the library's function of this name, which has this type.
    let connect = unsafe { transmute::<*mut c_void, Option<unsafe extern "C" fn(Begins, Ends)>>(connect) };
    if let Some(connect) = connect {
        // SAFETY: this library is never unloaded.
        unsafe { connect(begins, ends) };
        // Relaxed: ordered by the start of a session, which reads it.
        IS_CONNECTED.store(true, Ordering::Relaxed);
    }
}

/// The part of a session for waits outside OpenMP.
#[derive(Debug)]
pub(crate) struct Waits;

pub(crate) static SESSION_HOOKS: Waits = Waits;

impl SessionHooks for Waits {
    fn begin(&self, session: &'static Session) {
        // Relaxed: see `connect`.
        if IS_CONNECTED.load(Ordering::Relaxed) {
            leave_out_runtimes();
            session.write_metadata(&Metadata { external_waits: true, ..Metadata::default() });
        }
    }
}

/// A call may be about to wait: returns the time, or 0 if the calling thread is not recorded. The tracer's own work is
/// not the program's, even on the program's threads, and neither is that of a signal handler that interrupts it.
extern "C" fn begins() -> u64 {
    let recorder = this_thread::recorder();
    let stream = &recorder.stream;
    let is_ours = stream.busy.is_busy() || recorder.is_storing();
    if stream.number.get() == 0 || is_ours || Mode::current() != Mode::Record {
        return 0;
    }
    clock::ticks()
}

/// Minimum duration of a wait, in ticks of the clock (one or two microseconds). Shorter calls have not waited: they
/// took the usual time, or were briefly delayed by each other.
fn least_ticks() -> u64 {
    match clock::kind() {
        ClockKind::Counter if cfg!(target_arch = "x86_64") => 1 << 12,
        ClockKind::Counter => 1 << 6,
        ClockKind::Monotonic => 1 << 11,
    }
}

/// The call that was about to wait at `begin` has returned.
extern "C" fn ends(begin: u64, kind: u32, object: u64, codeptr_ra: *const c_void) {
    let is_short = || clock::ticks().saturating_sub(begin) < least_ticks();
    // A signal handler's alternate stack may be too small for recording.
    if begin == 0 || is_short() || is_runtime(codeptr_ra as usize) || alternate_stack::is_in_use() {
        return;
    }
    guarded(|| {
        cold_path::call(begin, || ExternalWait {
            endpoint: ompt_scope_beginend,
            begin: Ticks(begin),
            kind: WaitKind(kind),
            object: Address(object),
            codeptr_ra: Address(codeptr_ra as usize as u64),
        });
    });
}

/// Maximum number of runtime modules.
const MOST: usize = 16;

/// Start and end address of each module: zero until known.
static RUNTIMES: [[AtomicUsize; 2]; MOST] = [const { [const { AtomicUsize::new(0) }; 2] }; MOST];

fn is_runtime(code: usize) -> bool {
    // Relaxed: only the numbers are shared, and a range never changes once it is set.
    RUNTIMES
        .iter()
        .any(|[begin, end]| code < end.load(Ordering::Relaxed) && begin.load(Ordering::Relaxed) <= code)
}

/// Stores the address ranges of loaded runtimes, and of the tracer and its adapters.
fn leave_out_runtimes() {
    loader::each_module(|info, headers| {
        // SAFETY: the loader's name of a module that it describes.
        let name = (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) });
        if !name.is_some_and(|name| belongs_to_runtime(name.to_bytes())) {
            return false;
        }
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let ranges = loads.map(|header| {
            let begin = info.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
            (begin, begin.wrapping_add(header.p_memsz as usize))
        });
        let whole = ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        whole.is_some_and(|whole| !leave_out(whole))
    });
}

/// Stores a module's range; false if there is no room.
fn leave_out((first, last): (usize, usize)) -> bool {
    for [begin, end] in &RUNTIMES {
        // Relaxed: see `is_runtime`. Each range is stored once; a child or a second session finds it there.
        match begin.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                end.store(last, Ordering::Relaxed);
                return true;
            }
            Err(noted) if noted == first => return true,
            Err(_) => {}
        }
    }
    false
}

/// Whether the library at `path` belongs to a runtime, or to the tracer.
fn belongs_to_runtime(path: &[u8]) -> bool {
    let name = Path::new(OsStr::from_bytes(path)).file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| {
        ["libomptrace", "libomptgomp", "libomptmpi"].iter().any(|own| name.starts_with(own))
            || Runtime::has_code_in(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_their_names() {
        for path in ["/usr/lib/llvm-19/lib/libomp.so.5", "libgomp.so.1", "/a b/libomptrace.so", "libiomp5.so"]
        {
            assert!(belongs_to_runtime(path.as_bytes()), "{path}");
        }
        for path in ["", "/usr/lib/libc.so.6", "/opt/libomp/bin/app", "libstdc++.so.6"] {
            assert!(!belongs_to_runtime(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn code_of_runtimes_is_known_by_its_place() {
        assert!(!is_runtime(0) && !is_runtime(150));
        assert!(leave_out((100, 200)) && leave_out((100, 200)) && leave_out((300, 400)));
        assert!(is_runtime(100) && is_runtime(199) && is_runtime(350));
        assert!(!is_runtime(99) && !is_runtime(200) && !is_runtime(400));
        assert_eq!(RUNTIMES[2][0].load(Ordering::Relaxed), 0);
    }
}
