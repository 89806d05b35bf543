//! AMD's rocTX: the functions of `libroctx64.so`, which a preloaded library takes the place of. Calls go on in that library.

use core::ffi::c_char;
use core::sync::atomic::{AtomicU64, Ordering};

use omptrace_trace_format::field::{AnnotationKind, AnnotationScope, AnnotationSource, ObjectKind};

use crate::range::{self, Said};
use crate::recorder::{hears, recorder};
use crate::text;

const SOURCE: AnnotationSource = AnnotationSource::roctx;

/// What NVTX, whose semantics these functions have, returns where nobody counts levels.
const NO_LEVEL: i32 = -2;

/// The library's own function of this name and type.
macro_rules! library {
    ($name:ident: $type:ty) => {{
        static FOUND: std::sync::OnceLock<Option<$type>> = std::sync::OnceLock::new();
        // SAFETY: the type that rocTX gives to the function.
        *FOUND.get_or_init(|| unsafe { interpose::next::<$type>(interpose::c_name!($name)) })
    }};
}

/// # Safety
/// Null, or a C string.
unsafe fn said(message: *const c_char) -> Said {
    // SAFETY: by the caller's promise.
    Said::new(SOURCE, None, unsafe { text::of_c(ObjectKind::text, message) })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    if hears(SOURCE) {
        // SAFETY: the program's own text.
        range::mark(AnnotationScope::thread, &unsafe { said(message) });
    }
    if let Some(library) = library!(roctxMarkA: unsafe extern "C" fn(*const c_char)) {
        // SAFETY: the program's own call.
        unsafe { library(message) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> i32 {
    if hears(SOURCE) {
        // SAFETY: the program's own text.
        range::begin(AnnotationKind::range, 0, &unsafe { said(message) });
    }
    match library!(roctxRangePushA: unsafe extern "C" fn(*const c_char) -> i32) {
        // SAFETY: the program's own call.
        Some(library) => unsafe { library(message) },
        None => NO_LEVEL,
    }
}

#[unsafe(no_mangle)]
extern "C" fn roctxRangePop() -> i32 {
    if hears(SOURCE) {
        range::end(AnnotationKind::range, SOURCE, None, 0);
    }
    match library!(roctxRangePop: extern "C" fn() -> i32) {
        Some(library) => library(),
        None => NO_LEVEL,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangeStartA(message: *const c_char) -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(0);
    let id = match library!(roctxRangeStartA: unsafe extern "C" fn(*const c_char) -> u64) {
        // SAFETY: the program's own call.
        Some(library) => unsafe { library(message) },
        None => IDS.fetch_add(1, Ordering::Relaxed) + 1,
    };
    if hears(SOURCE) {
        // SAFETY: the program's own text.
        range::begin(AnnotationKind::process, id, &unsafe { said(message) });
    }
    id
}

#[unsafe(no_mangle)]
extern "C" fn roctxRangeStop(id: u64) {
    if hears(SOURCE) {
        range::end(AnnotationKind::process, SOURCE, None, id);
    }
    if let Some(library) = library!(roctxRangeStop: extern "C" fn(u64)) {
        library(id);
    }
}

/// Thread 0 is all of them.
fn pause(thread: u64, pauses: bool) {
    if hears(SOURCE)
        && thread == 0
        && let Some(recorder) = recorder()
    {
        recorder.pause(SOURCE, pauses);
    }
}

#[unsafe(no_mangle)]
extern "C" fn roctxProfilerPause(thread: u64) -> i32 {
    pause(thread, true);
    library!(roctxProfilerPause: extern "C" fn(u64) -> i32).map_or(0, |library| library(thread))
}

#[unsafe(no_mangle)]
extern "C" fn roctxProfilerResume(thread: u64) -> i32 {
    pause(thread, false);
    library!(roctxProfilerResume: extern "C" fn(u64) -> i32).map_or(0, |library| library(thread))
}
