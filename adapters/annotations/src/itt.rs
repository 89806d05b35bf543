//! Intel's ITT: the static part in each program and library loads the one that `INTEL_LIBITTNOTIFY64` names, and has it fill a list of functions.
//!
//! The static part gives domains and strings of its own only until the list is filled. After that they come from the tool, so all functions
//! that make objects are given. Objects have the layout of the header, as macros in programs read them: a domain whose flags are 0 costs a program one
//! test. LLVM's and Intel's OpenMP runtimes speak of themselves: their domains are off ([`domain`](crate::domain)), and functions for
//! locks and barriers are left as they are.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute_copy;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout};

use interpose::memory::KernelMemory;
use omptrace_trace_format::field::{
    AnnotationKind, AnnotationScope, AnnotationSource, ObjectKind, PayloadType, ValueRole,
};

use crate::next_tool::NextTool;
use crate::range::{self, NONE, Payload, Said};
use crate::recorder::{hears, recorder};
use crate::text::{self, Text};

const SOURCE: AnnotationSource = AnnotationSource::itt;

static NEXT: NextTool = NextTool::of(c"OMPTRACE_CHAIN_ITT");

/// In objects of ours: their last pointer but one is a text.
const OURS: c_int = 0x6f6d_7074;

/// `__itt_domain`.
#[repr(C)]
pub(crate) struct Domain {
    flags: AtomicI32,
    name: *const c_char,
    wide: *const c_void,
    extra: c_int,
    text: *const Text,
    next: *mut Domain,
}

/// `__itt_string_handle`.
#[repr(C)]
pub(crate) struct StringHandle {
    name: *const c_char,
    wide: *const c_void,
    extra: c_int,
    text: *const Text,
    next: *mut StringHandle,
}

/// `__itt_counter_info_t`.
#[repr(C)]
pub(crate) struct Counter {
    name: *const c_char,
    wide: *const c_void,
    domain: *const c_char,
    wide_domain: *const c_void,
    kind: c_int,
    index: i64,
    extra: c_int,
    text: *const Text,
    next: *mut Counter,
}

/// `__itt_id`, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Id(u64, u64, u64);

impl Id {
    /// One number of it; 0 where it is null.
    fn number(self) -> u64 {
        self.0 ^ self.1.rotate_left(21) ^ self.2.rotate_left(42)
    }
}

/// # Safety
/// Null, or a domain.
unsafe fn domain_of(domain: *const Domain) -> Option<&'static Text> {
    // SAFETY: by the caller's promise.
    let domain = unsafe { domain.as_ref()? };
    match domain.extra == OURS {
        // SAFETY: ours, which stays.
        true => unsafe { domain.text.as_ref() },
        // SAFETY: the static part's or the next tool's.
        false => text::intern(ObjectKind::domain, unsafe { text::c_bytes(domain.name) }),
    }
}

/// # Safety
/// Null, or a string.
unsafe fn name_of(handle: *const StringHandle) -> Option<&'static Text> {
    // SAFETY: by the caller's promise.
    let handle = unsafe { handle.as_ref()? };
    match handle.extra == OURS {
        // SAFETY: ours, which stays.
        true => unsafe { handle.text.as_ref() },
        // SAFETY: the static part's or the next tool's.
        false => unsafe { text::of_c(ObjectKind::text, handle.name) },
    }
}

/// New memory for an object that stays; null where there is none.
fn new<T>(object: T) -> *mut T {
    // SAFETY: the size is not 0.
    let memory = unsafe { KernelMemory.alloc(Layout::new::<T>()) }.cast::<T>();
    if !memory.is_null() {
        // SAFETY: new memory of that size.
        unsafe { memory.write(object) };
    }
    memory
}

/// A copy of a text that ends with zero.
fn c_copy(bytes: &[u8]) -> *const c_char {
    let Ok(layout) = Layout::from_size_align(bytes.len() + 1, 1) else { return core::ptr::null() };
    // SAFETY: the size is not 0; as many bytes are copied.
    unsafe {
        let copy = KernelMemory.alloc_zeroed(layout);
        if !copy.is_null() {
            copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        copy.cast()
    }
}

/// The object of a text: another thread may make it at the same time, and then one of both stays unused.
fn object_of<T>(text: &'static Text, make: impl FnOnce() -> *mut T) -> *mut T {
    // Acquire; pairs with AcqRel below.
    match text.object.load(Ordering::Acquire) {
        0 => {
            let made = make();
            let address = made.expose_provenance();
            match text.object.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => made,
                Err(other) => core::ptr::with_exposed_provenance_mut(other),
            }
        }
        address => core::ptr::with_exposed_provenance_mut(address),
    }
}

/// A function of the list.
struct Function {
    name: &'static CStr,
}

/// The next tool's functions, in the order of [`FUNCTIONS`].
static THEIRS: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// Makes of each row a function that the list gets, and calls the next tool's behind ours.
macro_rules! functions {
    ($($number:literal $name:ident $ours:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $($body:tt)* })*) => {
        $(
            unsafe extern "C" fn $ours($($argument: $type),*) $(-> $result)? {
                // Relaxed: stored before the program gets this function.
                let theirs = THEIRS[$number].load(Ordering::Relaxed);
                let theirs: Option<unsafe extern "C" fn($($type),*) $(-> $result)?> = match theirs {
                    0 => None,
                    // SAFETY: the function of this name in the next tool has this type.
                    address => Some(unsafe { transmute_copy(&address) }),
                };
                functions!(@ theirs ($($argument),*) $(-> $result)? { $($body)* })
            }
        )*
        static FUNCTIONS: &[Function] = &[$(Function {
            name: interpose::c_name!($name),
        }),*];
        /// The address of each.
        fn address(number: usize) -> usize {
            match number {
                $($number => $ours as *const () as usize,)*
                _ => 0,
            }
        }
    };
    // One without a result: ours, then theirs.
    (@ $theirs:ident ($($argument:ident),*) { $($body:tt)* }) => {{
        // SAFETY: the program's own call.
        unsafe {
            { $($body)* }
            if let Some(theirs) = $theirs {
                theirs($($argument),*);
            }
        }
    }};
    // One with a result: theirs, where there is one, which ours gets.
    (@ $theirs:ident ($($argument:ident),*) -> $result:ty { |$answer:ident| $($body:tt)* }) => {{
        // SAFETY: the program's own call.
        unsafe {
            let $answer: Option<$result> = $theirs.map(|theirs| theirs($($argument),*));
            $($body)*
        }
    }};
}

functions! {
    0 __itt_domain_create domain_create(name: *const c_char) -> *mut Domain { |theirs|
        let bytes = text::c_bytes(name);
        let Some(text) = text::intern(ObjectKind::domain, bytes) else { return theirs.unwrap_or(null_mut()) };
        theirs.unwrap_or_else(|| object_of(text, || new(Domain {
            flags: AtomicI32::new(text.is_on.into()),
            name: c_copy(bytes),
            wide: core::ptr::null(),
            extra: OURS,
            text,
            next: null_mut(),
        })))
    }
    1 __itt_string_handle_create string_handle_create(name: *const c_char) -> *mut StringHandle { |theirs|
        let bytes = text::c_bytes(name);
        let Some(text) = text::intern(ObjectKind::text, bytes) else { return theirs.unwrap_or(null_mut()) };
        theirs.unwrap_or_else(|| object_of(text, || new(StringHandle {
            name: c_copy(bytes),
            wide: core::ptr::null(),
            extra: OURS,
            text,
            next: null_mut(),
        })))
    }
    2 __itt_counter_create counter_create(name: *const c_char, domain: *const c_char) -> *mut Counter { |theirs|
        theirs.unwrap_or_else(|| new_counter(name, domain, UINT64))
    }
    3 __itt_counter_create_typed counter_create_typed(
        name: *const c_char, domain: *const c_char, kind: c_int
    ) -> *mut Counter { |theirs|
        theirs.unwrap_or_else(|| new_counter(name, domain, kind))
    }
    4 __itt_task_begin task_begin(domain: *const Domain, id: Id, parent: Id, name: *const StringHandle) {
        range::begin(AnnotationKind::range, 0, &Said::new(SOURCE, domain_of(domain), name_of(name)));
    }
    5 __itt_task_begin_fn task_begin_fn(domain: *const Domain, id: Id, parent: Id, function: *const c_void) {
        range::begin(AnnotationKind::range, 0, &Said::new(SOURCE, domain_of(domain), address_text(function.addr())));
    }
    6 __itt_task_end task_end(domain: *const Domain) {
        range::end(AnnotationKind::range, SOURCE, domain_of(domain), 0);
    }
    7 __itt_task_begin_overlapped task_begin_overlapped(
        domain: *const Domain, id: Id, parent: Id, name: *const StringHandle
    ) {
        range::begin(AnnotationKind::process, id.number(), &Said::new(SOURCE, domain_of(domain), name_of(name)));
    }
    8 __itt_task_end_overlapped task_end_overlapped(domain: *const Domain, id: Id) {
        range::end(AnnotationKind::process, SOURCE, domain_of(domain), id.number());
    }
    9 __itt_frame_begin_v3 frame_begin(domain: *const Domain, id: *const Id) {
        let domain = domain_of(domain);
        range::begin(AnnotationKind::frame, frame_number(id), &Said::new(SOURCE, domain, domain));
    }
    10 __itt_frame_end_v3 frame_end(domain: *const Domain, id: *const Id) {
        range::end(AnnotationKind::frame, SOURCE, domain_of(domain), frame_number(id));
    }
    11 __itt_frame_submit_v3 frame_submit(domain: *const Domain, id: *const Id, begin: u64, end: u64) {
        // The next tool's clock is another one.
        if THEIRS[TIMESTAMP].load(Ordering::Relaxed) == 0 {
            let domain = domain_of(domain);
            range::span(AnnotationKind::frame, (SOURCE, domain, domain), begin, end);
        }
    }
    12 __itt_region_begin region_begin(domain: *const Domain, id: Id, parent: Id, name: *const StringHandle) {
        range::begin(AnnotationKind::process, id.number(), &Said::new(SOURCE, domain_of(domain), name_of(name)));
    }
    13 __itt_region_end region_end(domain: *const Domain, id: Id) {
        range::end(AnnotationKind::process, SOURCE, domain_of(domain), id.number());
    }
    14 __itt_marker marker(domain: *const Domain, id: Id, name: *const StringHandle, scope: c_int) {
        range::mark(scope_of(scope), &Said::new(SOURCE, domain_of(domain), name_of(name)));
    }
    15 __itt_pause pause() {
        set_paused(true);
    }
    16 __itt_resume resume() {
        set_paused(false);
    }
    17 __itt_detach detach() {
        set_paused(true);
    }
    18 __itt_counter_set_value counter_set_value(counter: *const Counter, value: *const c_void) {
        if let Some(counter) = counter.as_ref() {
            counter.said(ValueRole::counter, number(counter.kind, value));
        }
    }
    19 __itt_counter_inc counter_inc(counter: *const Counter) {
        if let Some(counter) = counter.as_ref() {
            counter.said(ValueRole::increment, (PayloadType::uint64, 1));
        }
    }
    20 __itt_counter_inc_delta counter_inc_delta(counter: *const Counter, delta: u64) {
        if let Some(counter) = counter.as_ref() {
            counter.said(ValueRole::increment, (PayloadType::uint64, delta));
        }
    }
    21 __itt_counter_inc_v3 counter_inc_v3(domain: *const Domain, name: *const StringHandle) {
        let what = (SOURCE, domain_of(domain), name_of(name));
        range::value(ValueRole::increment, AnnotationScope::process, what, (PayloadType::uint64, 1), 0);
    }
    22 __itt_counter_inc_delta_v3 counter_inc_delta_v3(
        domain: *const Domain, name: *const StringHandle, delta: u64
    ) {
        let what = (SOURCE, domain_of(domain), name_of(name));
        range::value(ValueRole::increment, AnnotationScope::process, what, (PayloadType::uint64, delta), 0);
    }
    23 __itt_metadata_add metadata_add(
        domain: *const Domain, id: Id, key: *const StringHandle, kind: c_int, count: usize, data: *const c_void
    ) {
        if count > 0 {
            let what = (SOURCE, domain_of(domain), name_of(key));
            range::value(ValueRole::fact, AnnotationScope::thread, what, number(kind, data), id.number());
        }
    }
    24 __itt_metadata_str_add metadata_str_add(
        domain: *const Domain, id: Id, key: *const StringHandle, data: *const c_char, length: usize
    ) {
        let fact = match length {
            // Its end is a zero.
            usize::MAX => text::c_bytes(data),
            _ if data.is_null() => &[],
            _ => core::slice::from_raw_parts(data.cast::<u8>(), length.min(text::LONGEST)),
        };
        let what = (SOURCE, domain_of(domain), name_of(key));
        range::text_value(AnnotationScope::thread, what, text::intern(ObjectKind::text, fact), id.number());
    }
    25 __itt_event_create event_create(name: *const c_char, length: c_int) -> c_int { |theirs|
        let event = theirs.unwrap_or_else(next_event);
        let name = text::c_bytes(name);
        let name = &name[..name.len().min(usize::try_from(length).unwrap_or(0))];
        if let (Some(place), Some(text)) = (place_of_event(event), text::intern(ObjectKind::text, name)) {
            place.store(core::ptr::from_ref(text).expose_provenance(), Ordering::Relaxed);
        }
        event
    }
    26 __itt_event_start event_start(event: c_int) -> c_int { |theirs|
        let text = place_of_event(event).map_or(0, |place| place.load(Ordering::Relaxed));
        let name = core::ptr::with_exposed_provenance::<Text>(text).as_ref();
        range::begin(AnnotationKind::range, event_instance(event), &Said::new(SOURCE, None, name));
        theirs.unwrap_or(0)
    }
    27 __itt_event_end event_end(event: c_int) -> c_int { |theirs|
        range::end(AnnotationKind::range, SOURCE, None, event_instance(event));
        theirs.unwrap_or(0)
    }
    28 __itt_get_timestamp get_timestamp() -> u64 { |theirs|
        theirs.unwrap_or_else(|| recorder().map_or(0, |recorder| recorder.now()))
    }
    29 __itt_pause_scoped pause_scoped(scope: c_int) {
        set_paused(scope & HOST != 0);
    }
    30 __itt_resume_scoped resume_scoped(scope: c_int) {
        if scope & HOST != 0 {
            set_paused(false);
        }
    }
}

const TIMESTAMP: usize = 28;
/// The scope of a pause that means this process.
const HOST: c_int = 1;
/// `__itt_metadata_u64`.
const UINT64: c_int = 1;

fn set_paused(pauses: bool) {
    if let Some(recorder) = recorder() {
        recorder.pause(SOURCE, pauses);
    }
}

/// `__itt_scope`: 3 is the thread, 4 the task.
fn scope_of(scope: c_int) -> AnnotationScope {
    if scope >= 3 { AnnotationScope::thread } else { AnnotationScope::process }
}

/// # Safety
/// Null, or the program's own.
unsafe fn frame_number(id: *const Id) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { id.as_ref() }.map_or(0, |id| id.number())
}

/// Names of events, by their numbers.
static EVENTS: [AtomicUsize; 1 << 10] = [const { AtomicUsize::new(0) }; 1 << 10];

fn next_event() -> c_int {
    static NUMBERS: AtomicI32 = AtomicI32::new(1);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

fn place_of_event(event: c_int) -> Option<&'static AtomicUsize> {
    EVENTS.get(usize::try_from(event).ok()?)
}

/// Events need not nest, so their ends say which ones they are.
fn event_instance(event: c_int) -> u64 {
    1 << 32 | u64::from(event as u32)
}

/// A function that is a task's name, as its address.
fn address_text(address: usize) -> Option<&'static Text> {
    let mut digits = *b"0x0000000000000000";
    for (place, digit) in digits.iter_mut().skip(2).enumerate() {
        *digit = b"0123456789abcdef"[address >> (60 - 4 * place) & 15];
    }
    text::intern(ObjectKind::text, &digits)
}

/// # Safety
/// The program's own texts.
unsafe fn new_counter(name: *const c_char, domain: *const c_char, kind: c_int) -> *mut Counter {
    // SAFETY: by the caller's promise.
    let (name, domain) = unsafe { (text::c_bytes(name), text::c_bytes(domain)) };
    let text = text::intern(ObjectKind::key, name).map_or(core::ptr::null(), core::ptr::from_ref);
    new(Counter {
        name: c_copy(name),
        wide: core::ptr::null(),
        domain: c_copy(domain),
        wide_domain: core::ptr::null(),
        kind,
        index: 0,
        extra: OURS,
        text,
        next: null_mut(),
    })
}

impl Counter {
    /// # Safety
    /// A counter of ours or the next tool's.
    unsafe fn said(&self, role: ValueRole, payload: Payload) {
        // SAFETY: by the caller's promise.
        let (domain, name) = unsafe {
            let domain = match text::c_bytes(self.domain) {
                [] => None,
                bytes => text::intern(ObjectKind::domain, bytes),
            };
            let name = match self.extra == OURS {
                true => self.text.as_ref(),
                false => text::of_c(ObjectKind::key, self.name),
            };
            (domain, name)
        };
        range::value(role, AnnotationScope::process, (SOURCE, domain, name), payload, 0);
    }
}

/// The number at an address, by its type (`__itt_metadata_type`).
///
/// # Safety
/// Null, or a number of that type.
unsafe fn number(kind: c_int, at: *const c_void) -> Payload {
    if at.is_null() {
        return NONE;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        match kind {
            1 => (PayloadType::uint64, at.cast::<u64>().read_unaligned()),
            2 => (PayloadType::int64, at.cast::<u64>().read_unaligned()),
            3 => (PayloadType::uint64, at.cast::<u32>().read_unaligned().into()),
            4 => (PayloadType::int64, i64::from(at.cast::<i32>().read_unaligned()) as u64),
            5 => (PayloadType::uint64, at.cast::<u16>().read_unaligned().into()),
            6 => (PayloadType::int64, i64::from(at.cast::<i16>().read_unaligned()) as u64),
            7 => (PayloadType::float64, f64::from(at.cast::<f32>().read_unaligned()).to_bits()),
            8 => (PayloadType::float64, at.cast::<u64>().read_unaligned()),
            _ => NONE,
        }
    }
}

/// An entry of the list; the last one has no name.
#[repr(C)]
struct Entry {
    name: *const c_char,
    function: *mut usize,
    initial: usize,
    null: usize,
    group: c_int,
}

/// The begin of `__itt_global`, up to the list.
#[repr(C)]
pub(crate) struct Global {
    magic: [u8; 8],
    version: [u64; 3],
    initialized: i64,
    mutex_initialized: i64,
    counter: i64,
    mutex: libc::pthread_mutex_t,
    library: *mut c_void,
    error_handler: *mut c_void,
    path: *const *const c_char,
    list: *mut Entry,
}

// glibc's mutex has 48 bytes on aarch64 and 40 elsewhere.
const _: () = assert!(
    core::mem::offset_of!(Global, library) == 56 + size_of::<libc::pthread_mutex_t>()
        && core::mem::offset_of!(Global, list) == 80 + size_of::<libc::pthread_mutex_t>()
);

/// The static part calls it once in each library that has one.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __itt_api_init(global: *mut Global, groups: c_int) {
    const MAGIC: [u8; 8] = [0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30];
    type Initialize = unsafe extern "C" fn(*mut Global, c_int);
    // SAFETY: null, or the static part's own.
    let Some(own) = (unsafe { global.as_ref() }) else { return };
    if own.magic != MAGIC || own.list.is_null() {
        return;
    }
    let mut entry = own.list;
    // SAFETY: the list of the static part, which ends with an entry without a name.
    unsafe {
        let next = NEXT.function::<Initialize>(c"__itt_api_init");
        let hears = hears(SOURCE) && !is_openmp_runtime(global.cast());
        if let Some(next) = next {
            next(global, groups);
        }
        while !(*entry).name.is_null() {
            let slot = (*entry).function;
            if !slot.is_null() {
                let null = (*entry).null;
                let theirs = match next {
                    Some(_) if slot.read() != null => slot.read(),
                    _ => 0,
                };
                let name = CStr::from_ptr((*entry).name);
                match FUNCTIONS.iter().position(|function| function.name == name) {
                    Some(number) if hears => {
                        THEIRS[number].store(theirs, Ordering::Relaxed);
                        slot.write(address(number));
                    }
                    _ => slot.write(if theirs == 0 { null } else { theirs }),
                }
            }
            entry = entry.add(1);
        }
    }
}

/// Whether an address lies in LLVM's or Intel's OpenMP runtime, which says by ITT what its callbacks say, too.
fn is_openmp_runtime(address: *const c_void) -> bool {
    // SAFETY: all fields may be zero.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: it only looks the address up.
    if unsafe { libc::dladdr(address, &mut found) } == 0 || found.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the loader's own text.
    let path = unsafe { CStr::from_ptr(found.dli_fname) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    [&b"libomp.so"[..], b"libomp5.so", b"libiomp5.so"].iter().any(|runtime| name.starts_with(runtime))
}
