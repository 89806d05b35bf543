//! Payloads of several numbers, and counters: two modules of extensions.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use omptrace_trace_format::field::{AnnotationKind, AnnotationScope, ObjectKind, PayloadType, ValueRole};

use crate::nvtx::next::{TOOL, next};
use crate::nvtx::payload::{PayloadData, first_number};
use crate::nvtx::{NO_LEVEL, SOURCE};
use crate::range::{self, Payload, Said};
use crate::recorder::hears;
use crate::text::{self, Text};

type Domain = *const Text;

/// # Safety
/// The program's own.
unsafe fn said(domain: Domain, payloads: *const PayloadData, count: usize) -> Said {
    // SAFETY: by the caller's promise.
    let (domain, payload) = unsafe { (Text::of_handle(domain), first_number(payloads, count)) };
    Said { payload, ..Said::new(SOURCE, domain, None) }
}

unsafe extern "C" fn mark(domain: Domain, payloads: *const PayloadData, count: usize) {
    // SAFETY: the program's own call.
    range::mark(AnnotationScope::thread, &unsafe { said(domain, payloads, count) });
}

unsafe extern "C" fn push(domain: Domain, payloads: *const PayloadData, count: usize) -> i32 {
    // SAFETY: the program's own call.
    range::begin(AnnotationKind::range, 0, &unsafe { said(domain, payloads, count) });
    NO_LEVEL
}

unsafe extern "C" fn pop(domain: Domain, payloads: *const PayloadData, count: usize) -> i32 {
    // SAFETY: the program's own call.
    let said = unsafe { said(domain, payloads, count) };
    if said.payload.0 != PayloadType::none {
        let what = (SOURCE, said.domain, None);
        range::value(ValueRole::fact, AnnotationScope::thread, what, said.payload, 0);
    }
    range::end(AnnotationKind::range, SOURCE, said.domain, 0);
    NO_LEVEL
}

unsafe extern "C" fn start(domain: Domain, payloads: *const PayloadData, count: usize) -> u64 {
    // Apart from the ids of other ranges.
    static IDS: AtomicU64 = AtomicU64::new(1 << 62);
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the program's own call.
    range::begin(AnnotationKind::process, id, &unsafe { said(domain, payloads, count) });
    id
}

unsafe extern "C" fn end(domain: Domain, id: u64, _: *const PayloadData, _: usize) {
    // SAFETY: the program's own handle.
    range::end(AnnotationKind::process, SOURCE, unsafe { Text::of_handle(domain) }, id);
}

/// The program makes no events for a domain that is not.
unsafe extern "C" fn is_enabled(domain: Domain) -> u8 {
    // SAFETY: the program's own handle.
    unsafe { Text::of_handle(domain) }.is_none_or(|domain| domain.is_on).into()
}

/// `nvtxPayloadSchemaAttr_t`, whose last field is the id that the program wants, as the mask says.
#[repr(C)]
struct Schema {
    mask: u64,
    name: *const c_char,
    kind: u64,
    flags: u64,
    entries: *const c_void,
    count: usize,
    size: usize,
    alignment: usize,
    id: u64,
}

/// Numbers of schemas that we give.
static SCHEMAS: AtomicU64 = AtomicU64::new(1 << 32);

unsafe extern "C" fn register_schema(_: Domain, schema: *const Schema) -> u64 {
    const HAS_ID: u64 = 1 << 8;
    // SAFETY: null, or the program's own; the id is there where the mask says so.
    match unsafe { schema.as_ref() } {
        Some(schema) if schema.mask & HAS_ID != 0 && schema.id != 0 => schema.id,
        _ => SCHEMAS.fetch_add(1, Ordering::Relaxed),
    }
}

/// `nvtxCounterAttr_t`.
#[repr(C)]
struct CounterAttributes {
    size: usize,
    schema: u64,
    name: *const c_char,
    description: *const c_char,
    scope: u64,
    semantics: *const c_void,
    id: u64,
}

/// Counters whose names are known, by their ids from [`FIRST_COUNTER`] on.
static COUNTERS: [AtomicUsize; 1 << 10] = [const { AtomicUsize::new(0) }; 1 << 10];
const FIRST_COUNTER: u64 = 1 << 32;

unsafe extern "C" fn register_counter(_: Domain, attributes: *const CounterAttributes) -> u64 {
    static NEXT_COUNTER: AtomicU64 = AtomicU64::new(FIRST_COUNTER);
    // SAFETY: null, or the program's own.
    let Some(attributes) = (unsafe { attributes.as_ref() }) else { return 0 };
    let id = match attributes.id {
        0 => NEXT_COUNTER.fetch_add(1, Ordering::Relaxed),
        id => id,
    };
    // SAFETY: the program's own text.
    if let Some(name) = unsafe { text::of_c(ObjectKind::key, attributes.name) }
        && let Some(place) = place_of(id)
    {
        place.store(core::ptr::from_ref(name).expose_provenance(), Ordering::Relaxed);
    }
    id
}

/// Ids that the program chooses share the places by their last digits.
fn place_of(id: u64) -> Option<&'static AtomicUsize> {
    let number = id.checked_sub(FIRST_COUNTER).unwrap_or(id);
    COUNTERS.get(usize::try_from(number).ok()? % COUNTERS.len())
}

/// # Safety
/// The program's own handle.
unsafe fn sample(domain: Domain, counter: u64, payload: Payload) {
    let name = place_of(counter).map_or(0, |place| place.load(Ordering::Relaxed));
    // SAFETY: null or a text, which stays.
    let (domain, name) =
        unsafe { (Text::of_handle(domain), core::ptr::with_exposed_provenance::<Text>(name).as_ref()) };
    range::value(ValueRole::counter, AnnotationScope::process, (SOURCE, domain, name), payload, 0);
}

unsafe extern "C" fn sample_int(domain: Domain, counter: u64, value: i64) {
    // SAFETY: the program's own call.
    unsafe { sample(domain, counter, (PayloadType::int64, value as u64)) };
}

unsafe extern "C" fn sample_float(domain: Domain, counter: u64, value: f64) {
    // SAFETY: the program's own call.
    unsafe { sample(domain, counter, (PayloadType::float64, value.to_bits())) };
}

#[repr(C)]
struct Segment {
    id: usize,
    count: usize,
    functions: *mut usize,
}

/// `nvtxExtModuleInfo_t`.
#[repr(C)]
struct ExtensionModule {
    version: u16,
    size: u16,
    module: u16,
    compatible: u16,
    count: usize,
    segments: *mut Segment,
}

/// Each shared object calls it once for each module of extensions.
#[unsafe(no_mangle)]
unsafe extern "C" fn InitializeInjectionNvtxExtension(information: *mut ExtensionModule) -> i32 {
    const PAYLOAD: u16 = 2;
    const COUNTERS: u16 = 4;
    type Initialize = unsafe extern "C" fn(*mut ExtensionModule) -> i32;
    if next().is_some() || !hears(SOURCE) {
        // Its handles of domains are not ours: extensions are the next tool's where there is one, if it takes them.
        // SAFETY: the type that NVTX gives to the function.
        let theirs = unsafe { TOOL.function::<Initialize>(c"InitializeInjectionNvtxExtension") };
        return match theirs {
            // SAFETY: as the program would call it.
            Some(theirs) if !hears(SOURCE) => unsafe { theirs(information) },
            _ => 0,
        };
    }
    // SAFETY: null, or the program's own.
    let Some(module) = (unsafe { information.as_ref() }) else { return 0 };
    if module.count == 0 || module.segments.is_null() {
        return 0;
    }
    // SAFETY: the program's own, at least one.
    let segment = unsafe { &*module.segments };
    let set = |number: usize, function: usize| {
        if number < segment.count && !segment.functions.is_null() {
            // SAFETY: so many are there.
            unsafe { segment.functions.add(number).write(function) };
        }
    };
    match module.module {
        PAYLOAD => {
            set(0, register_schema as *const () as usize);
            set(2, mark as *const () as usize);
            set(3, push as *const () as usize);
            set(4, pop as *const () as usize);
            set(5, start as *const () as usize);
            set(6, end as *const () as usize);
            set(7, is_enabled as *const () as usize);
        }
        COUNTERS => {
            set(0, register_counter as *const () as usize);
            set(1, sample_int as *const () as usize);
            set(2, sample_float as *const () as usize);
        }
        _ => return 0,
    }
    1
}
