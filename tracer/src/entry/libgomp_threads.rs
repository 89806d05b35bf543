//! GCC's libgomp in a process in which another runtime replaces it.
//!
//! `omptrace record` preloads LLVM's runtime, followed by this library, into programs that need libgomp, so libgomp is
//! loaded as well. Its constructor binds the initial thread to its place if the environment requests that
//! (`OMP_PROC_BIND`, `OMP_PLACES`, `GOMP_CPU_AFFINITY`). LLVM's runtime starts later, and would take that place for all
//! available CPUs. So the previous CPU mask is restored when LLVM's runtime starts, which then binds the thread itself.
//!
//! libgomp's view of CPUs, places and threads is what the program would see without the tracer.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use omptrace_runtimes::Vendor;
use omptrace_trace_format::metadata::OfLibgomp;

use crate::os::loader;
use crate::os::system;
use crate::os::threads::lock::Mutex;
use crate::runtime::replaced_libgomp::{Library, is_adapter, loaded, set_replaced};

type SetAffinity = unsafe extern "C" fn(libc::pthread_t, libc::size_t, *const libc::cpu_set_t) -> c_int;

/// A thread's CPU masks before and after libgomp bound it.
#[derive(Clone, Copy)]
struct Binding {
    before: libc::cpu_set_t,
    bound: libc::cpu_set_t,
}

/// The last binding that was not undone.
static BINDING: Mutex<Option<Binding>> = Mutex::new(None);

/// Replaces the C library's `pthread_setaffinity_np` if this library is preloaded, and continues there.
///
/// # Safety
/// Like the C library's.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn pthread_setaffinity_np(
    thread: libc::pthread_t,
    size: libc::size_t,
    set: *const libc::cpu_set_t,
) -> c_int {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "mov rdi, [rsp + 24]",
        "call {choose}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        choose = sym choose,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-48]!",
        "stp x0, x1, [sp, #16]",
        "str x2, [sp, #32]",
        "mov x0, x30",
        "bl {choose}",
        "mov x16, x0",
        "ldr x2, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #48",
        "br x16",
        choose = sym choose,
    );
}

/// The function in which a call from `caller` continues.
unsafe extern "C" fn choose(caller: *const c_void) -> SetAffinity {
    if is_replaced(caller) { bind_and_note } else { of_c_library() }
}

/// Binds a thread for libgomp, and stores the thread's CPU mask from before.
unsafe extern "C" fn bind_and_note(
    thread: libc::pthread_t,
    size: libc::size_t,
    set: *const libc::cpu_set_t,
) -> c_int {
    let before = system::affinity();
    // SAFETY: libgomp's own call.
    let result = unsafe { of_c_library()(thread, size, set) };
    // SAFETY: no arguments.
    let is_own = unsafe { libc::pthread_self() } == thread;
    if let (0, true, Some(before), Some(bound)) = (result, is_own, before, system::affinity()) {
        let mut binding = BINDING.lock();
        // Each Python wheel may have its own libgomp; the second one finds the thread already bound.
        let first = binding.filter(|first| are_equal(&first.bound, &before));
        *binding = Some(Binding { before: first.map_or(before, |first| first.before), bound });
    }
    result
}

fn are_equal(one: &libc::cpu_set_t, other: &libc::cpu_set_t) -> bool {
    // SAFETY: it only compares two sets.
    unsafe { libc::CPU_EQUAL(one, other) }
}

/// A runtime starts, which may have replaced libgomp.
pub(crate) fn before_runtime(version: &str) {
    if version.starts_with("libgomp") {
        // libgomp itself is not replaced. The code below takes the loader's lock, and must not run here: the program's
        // first call may come from a thread that a constructor has created.
        return;
    }
    unbind();
    // Query libgomp before the runtime binds the thread, too.
    set_replaced(ask_replaced());
}

/// Restores the calling thread's CPU mask from before libgomp bound it, unless it was changed since.
fn unbind() {
    let Some(binding) = BINDING.lock().take() else {
        return;
    };
    if system::affinity().is_some_and(|now| are_equal(&now, &binding.bound)) {
        system::spread_over(&Some(binding.before));
    }
}

/// The C library's `pthread_setaffinity_np`.
fn of_c_library() -> SetAffinity {
    unsafe extern "C" fn none(_: libc::pthread_t, _: libc::size_t, _: *const libc::cpu_set_t) -> c_int {
        libc::ENOSYS
    }
    // Relaxed: a function of the C library does not depend on our data.
    if OF_C_LIBRARY.load(Ordering::Relaxed).is_null() {
        // Called by a constructor that runs before ours.
        prepare();
    }
    let function = OF_C_LIBRARY.load(Ordering::Relaxed);
    // SAFETY: null, or the function of that name, which has this type.
    unsafe { std::mem::transmute::<*mut c_void, Option<SetAffinity>>(function) }.unwrap_or(none)
}

/// The next function with that name after this library.
static OF_C_LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Looks up what needs the loader's lock, so that a thread of the program need not wait for the lock later.
pub(crate) fn prepare() {
    // SAFETY: a constant of the loader.
    let next = unsafe { loader::symbol(libc::RTLD_NEXT, c"pthread_setaffinity_np") };
    // Relaxed: as above.
    OF_C_LIBRARY.store(next, Ordering::Relaxed);
}

/// Whether `address` is in libgomp's code, while the program's calls go to another runtime.
fn is_replaced(address: *const c_void) -> bool {
    let is_libgomp =
        |address| loader::library_of(address).is_some_and(|path| Vendor::Gnu.makes(path.as_bytes()));
    // Checked first, because the code below takes the loader's lock, and most calls come from the program itself.
    if !is_libgomp(address) {
        return false;
    }
    // SAFETY: a handle of the loader.
    let called = unsafe { loader::symbol(loader::global_scope(), c"GOMP_parallel") };
    let stays = |address| is_libgomp(address) || is_adapter(address);
    !called.is_null() && !stays(called)
}

fn ask_replaced() -> Option<OfLibgomp> {
    let (path, library) = loaded().into_iter().find_map(|path| {
        let library = Library::open(&path)?;
        // LLVM's runtime may have libgomp's name, too. It must not be queried here: it may be starting, and would wait
        // for this thread.
        let is_of_llvm = library.function(c"__kmpc_fork_call").is_some();
        (!is_of_llvm && is_replaced(library.function(c"GOMP_parallel")?)).then_some((path, library))
    })?;
    let ask = |name| library.ask(name).unwrap_or_default();
    Some(OfLibgomp {
        path,
        num_procs: ask(c"omp_get_num_procs"),
        num_places: ask(c"omp_get_num_places"),
        max_threads: ask(c"omp_get_max_threads"),
    })
}
