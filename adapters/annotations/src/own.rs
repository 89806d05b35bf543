//! `omptrace.h`: a table of functions, which the header finds in the library that `OMPTRACE_ANNOTATION_LIBRARY` names.

use core::ffi::c_char;

use omptrace_trace_format::field::{
    AnnotationKind, AnnotationScope, AnnotationSource, ObjectKind, PayloadType, ValueRole,
};

use crate::range::{self, Said};
use crate::recorder::hears;
use crate::text::{self, Text};

const SOURCE: AnnotationSource = AnnotationSource::omptrace;

/// The version of [`Functions`].
const VERSION: u32 = 1;

/// What the header gets: see `include/omptrace.h`, which has the same structure.
#[repr(C)]
pub(crate) struct Functions {
    version: u32,
    begin: unsafe extern "C" fn(*const c_char, *const c_char),
    end: unsafe extern "C" fn(*const c_char),
    frame_begin: unsafe extern "C" fn(*const c_char),
    frame_end: unsafe extern "C" fn(*const c_char),
    mark: unsafe extern "C" fn(*const c_char, *const c_char),
    count: unsafe extern "C" fn(*const c_char, *const c_char, i64),
}

static FUNCTIONS: Functions = Functions { version: VERSION, begin, end, frame_begin, frame_end, mark, count };

/// The functions; null where the header is of another version, or they are not to be heard.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn omptrace_annotations(version: u32) -> *const Functions {
    match version == VERSION && hears(SOURCE) {
        true => &FUNCTIONS,
        false => core::ptr::null(),
    }
}

/// # Safety
/// Null, or C strings of the program's; so below.
unsafe fn named(domain: *const c_char, name: *const c_char) -> Said {
    // SAFETY: by the caller's promise.
    let (domain, name) = unsafe { (domain_of(domain), text::of_c(ObjectKind::text, name)) };
    Said::new(SOURCE, domain, name)
}

unsafe fn domain_of(domain: *const c_char) -> Option<&'static Text> {
    // SAFETY: by the caller's promise.
    unsafe { text::of_c(ObjectKind::domain, domain) }
}

unsafe extern "C" fn begin(domain: *const c_char, name: *const c_char) {
    // SAFETY: the program's own call.
    range::begin(AnnotationKind::range, 0, &unsafe { named(domain, name) });
}

unsafe extern "C" fn end(domain: *const c_char) {
    // SAFETY: the program's own call.
    range::end(AnnotationKind::range, SOURCE, unsafe { domain_of(domain) }, 0);
}

unsafe extern "C" fn frame_begin(domain: *const c_char) {
    // SAFETY: the program's own call.
    let domain = unsafe { domain_of(domain) };
    range::begin(AnnotationKind::frame, 0, &Said::new(SOURCE, domain, domain));
}

unsafe extern "C" fn frame_end(domain: *const c_char) {
    // SAFETY: the program's own call.
    range::end(AnnotationKind::frame, SOURCE, unsafe { domain_of(domain) }, 0);
}

unsafe extern "C" fn mark(domain: *const c_char, name: *const c_char) {
    // SAFETY: the program's own call.
    range::mark(AnnotationScope::thread, &unsafe { named(domain, name) });
}

unsafe extern "C" fn count(domain: *const c_char, name: *const c_char, value: i64) {
    // SAFETY: the program's own call.
    let (domain, name) = unsafe { (domain_of(domain), text::of_c(ObjectKind::key, name)) };
    let value = (PayloadType::int64, value as u64);
    range::value(ValueRole::counter, AnnotationScope::process, (SOURCE, domain, name), value, 0);
}
