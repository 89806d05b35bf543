//! OpenACC's profiling interface (OpenACC 2.6, chapter 5): `ACC_PROFLIB` names libraries, each of which registers callbacks.
//!
//! Other libraries that the user has set stay in the list, so there is nothing to pass on.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use omptrace_trace_format::field::{AnnotationKind, AnnotationSource, ObjectKind, PayloadType};

use crate::range::{self, Said};
use crate::recorder::hears;
use crate::text::{self, Text};

const SOURCE: AnnotationSource = AnnotationSource::openacc;

/// The begin of `acc_prof_info`, as far as it is read.
#[repr(C)]
pub(crate) struct Information {
    event: c_int,
    valid_bytes: c_int,
    version: c_int,
    device_type: c_int,
    device_number: c_int,
    thread: c_int,
    asynchronous: isize,
    queue: isize,
    file: *const c_char,
    function: *const c_char,
    line: c_int,
}

/// The begin of `acc_event_info`; what follows depends on the kind.
#[repr(C)]
pub(crate) struct Details {
    event: c_int,
    valid_bytes: c_int,
    construct: c_int,
    implicit: c_int,
    tool: *mut c_void,
    /// The variable of data, or the kernel of a launch.
    name: *const c_char,
    bytes: usize,
}

type Callback = unsafe extern "C" fn(*const Information, *const Details, *const c_void);
type Register = unsafe extern "C" fn(c_int, Callback, c_int);

/// The names of `acc_construct_t`, in their order.
const CONSTRUCTS: [&CStr; 17] = [
    c"parallel",
    c"kernels",
    c"loop",
    c"data",
    c"enter data",
    c"exit data",
    c"host_data",
    c"atomic",
    c"declare",
    c"init",
    c"shutdown",
    c"set",
    c"update",
    c"routine",
    c"wait",
    c"runtime API",
    c"serial",
];

/// What an event is: the kind of range, whether it begins it, and a name where the construct gives none.
fn meaning(event: c_int) -> Option<(AnnotationKind, bool, Option<&'static CStr>)> {
    use AnnotationKind as K;
    Some(match event {
        1 => (K::device, true, Some(c"device init")),
        2 => (K::device, false, None),
        3 => (K::device, true, Some(c"device shutdown")),
        4 => (K::device, false, None),
        10 | 12 => (K::data, true, None),
        11 | 13 => (K::data, false, None),
        14 => (K::update, true, None),
        15 => (K::update, false, None),
        16 => (K::compute, true, None),
        17 => (K::compute, false, None),
        18 => (K::launch, true, Some(c"launch")),
        19 => (K::launch, false, None),
        20 => (K::upload, true, Some(c"upload")),
        21 => (K::upload, false, None),
        22 => (K::download, true, Some(c"download")),
        23 => (K::download, false, None),
        24 => (K::wait, true, Some(c"wait")),
        25 => (K::wait, false, None),
        _ => return None,
    })
}

unsafe extern "C" fn called(information: *const Information, details: *const Details, _: *const c_void) {
    // SAFETY: null, or the runtime's structures.
    let (Some(information), Some(details)) = (unsafe { information.as_ref() }, unsafe { details.as_ref() })
    else {
        return;
    };
    let Some((kind, begins, fixed)) = meaning(information.event) else { return };
    if !begins {
        return range::end(kind, SOURCE, None, 0);
    }
    let is_transfer =
        matches!(kind, AnnotationKind::launch | AnnotationKind::upload | AnnotationKind::download);
    // The structures of the kinds differ behind `tool`.
    let bytes = (is_transfer && kind != AnnotationKind::launch).then_some(details.bytes as u64);
    // SAFETY: null, or the runtime's texts.
    let name = unsafe {
        let own = if is_transfer { text::c_bytes(details.name) } else { &[] };
        let construct = usize::try_from(details.construct).ok().and_then(|number| CONSTRUCTS.get(number));
        let fixed = fixed.or(construct.copied()).unwrap_or(c"construct");
        full_name(fixed.to_bytes(), own, text::c_bytes(information.file), information.line)
    };
    let device = (information.device_type as u32) << 16 | information.device_number as u32 & 0xffff;
    let payload = bytes.map_or(range::NONE, |bytes| (PayloadType::uint64, bytes));
    range::begin(kind, 0, &Said { payload, device, ..Said::new(SOURCE, None, name) });
}

/// `parallel @heat.c:41`, `upload a @heat.c:41`.
fn full_name(construct: &[u8], own: &[u8], file: &[u8], line: c_int) -> Option<&'static Text> {
    let mut name = [0; text::LONGEST];
    let mut length = 0;
    let mut add = |bytes: &[u8]| {
        let room = &mut name[length..];
        let fits = bytes.len().min(room.len());
        room[..fits].copy_from_slice(&bytes[..fits]);
        length += fits;
    };
    add(construct);
    if !own.is_empty() {
        add(b" ");
        add(own);
    }
    if !file.is_empty() {
        add(b" @");
        add(file.rsplit(|byte| *byte == b'/').next().unwrap_or(file));
        if line > 0 {
            add(b":");
            let mut digits = [0; 10];
            let mut rest = line;
            let mut from = digits.len();
            while rest > 0 {
                from -= 1;
                digits[from] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            add(&digits[from..]);
        }
    }
    text::intern(ObjectKind::text, &name[..length])
}

/// The OpenACC runtime calls it when it starts. A runtime that finds the function in the program and in `ACC_PROFLIB`, too, calls it twice.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn acc_register_library(register: Register, _: Register, _: *const c_void) {
    const LAST_EVENT: c_int = 25;
    static REGISTERED_BY: AtomicUsize = AtomicUsize::new(0);
    let address = register as usize;
    // Relaxed: the runtime starts once.
    if !hears(SOURCE) || REGISTERED_BY.swap(address, Ordering::Relaxed) == address {
        return;
    }
    for event in 1..=LAST_EVENT {
        if meaning(event).is_some() {
            // SAFETY: the runtime's own function.
            unsafe { register(event, called, 0) };
        }
    }
}
