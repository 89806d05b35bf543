//! Kokkos Tools: functions that `Kokkos::initialize` looks for in the library that `KOKKOS_TOOLS_LIBS` names.
//!
//! A kernel begins and ends on the thread that launches it. Without [`kokkosp_request_tool_settings`], Kokkos would wait for the device
//! after each kernel, and so change what is measured.

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use omptrace_trace_format::event::AnnotationMemory;
use omptrace_trace_format::field::{
    Address, AnnotationKind, AnnotationScope, AnnotationSource, MemoryChange, ObjectKind, PayloadType,
};

use crate::next_tool::NextTool;
use crate::range::{self, Said};
use crate::recorder::{active, hears};
use crate::text::{self, Text};

const SOURCE: AnnotationSource = AnnotationSource::kokkos;

static NEXT: NextTool = NextTool::of(c"OMPTRACE_CHAIN_KOKKOS");

/// Whether kernels are recorded: 0 before that is known.
static HEARS: AtomicU32 = AtomicU32::new(0);

fn is_heard() -> bool {
    match HEARS.load(Ordering::Relaxed) {
        0 => {
            let heard = hears(SOURCE);
            HEARS.store(if heard { 2 } else { 1 }, Ordering::Relaxed);
            heard
        }
        answer => answer == 2,
    }
}

/// The next tool's function of a name, which is looked up once.
struct Theirs {
    name: &'static CStr,
    /// 0 before it is looked up, 1 where there is none.
    address: AtomicUsize,
}

impl Theirs {
    const fn of(name: &'static CStr) -> Theirs {
        Theirs { name, address: AtomicUsize::new(0) }
    }

    /// # Safety
    /// `F` is the type of a function pointer, and the function has this type.
    unsafe fn get<F: Copy>(&self) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let address = match self.address.load(Ordering::Relaxed) {
            0 => {
                // SAFETY: only the address is taken.
                let found = unsafe { NEXT.function::<*mut c_void>(self.name) };
                let address = found.map_or(1, |found| found.expose_provenance());
                self.address.store(address, Ordering::Relaxed);
                address
            }
            address => address,
        };
        // SAFETY: by the caller's promise.
        (address != 1).then(|| unsafe { core::mem::transmute_copy::<usize, F>(&address) })
    }
}

/// Calls the next tool's function of this name and type.
macro_rules! next {
    ($name:ident: fn($($type:ty),*)($($argument:expr),*)) => {{
        static THEIRS: Theirs = Theirs::of(interpose::c_name!($name));
        // SAFETY: the type that Kokkos Tools gives to the function; the arguments are Kokkos's.
        unsafe {
            if let Some(theirs) = THEIRS.get::<unsafe extern "C" fn($($type),*)>() {
                theirs($($argument),*);
                true
            } else {
                false
            }
        }
    }};
}

/// A memory space: passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Space([u8; 64]);

impl Space {
    fn text(&self) -> Option<&'static Text> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        text::intern(ObjectKind::text, &self.0[..end])
    }
}

/// The name of a kernel or label.
///
/// # Safety
/// Null, or a C string.
unsafe fn name(name: *const c_char) -> Option<&'static Text> {
    // SAFETY: by the caller's promise.
    unsafe { text::of_c(ObjectKind::text, name) }
}

fn begin(kind: AnnotationKind, device: u32, name: Option<&'static Text>) {
    if is_heard() {
        range::begin(kind, 0, &Said { device, ..Said::new(SOURCE, None, name) });
    }
}

fn end(kind: AnnotationKind) {
    if is_heard() {
        range::end(kind, SOURCE, None, 0);
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_init_library(sequence: i32, version: u64, count: u32, devices: *mut c_void) {
    next!(kokkosp_init_library: fn(i32, u64, u32, *mut c_void)(sequence, version, count, devices));
}

#[unsafe(no_mangle)]
extern "C" fn kokkosp_finalize_library() {
    next!(kokkosp_finalize_library: fn()());
}

/// The first of 256 switches is that for fences around kernels.
#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_request_tool_settings(count: u32, settings: *mut u8) {
    if count > 0 && !settings.is_null() {
        // SAFETY: as many switches are valid.
        unsafe { settings.write(0) };
    }
    next!(kokkosp_request_tool_settings: fn(u32, *mut u8)(count, settings));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_parse_args(count: i32, arguments: *mut *mut c_char) {
    next!(kokkosp_parse_args: fn(i32, *mut *mut c_char)(count, arguments));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_print_help(arguments: *mut c_char) {
    next!(kokkosp_print_help: fn(*mut c_char)(arguments));
}

/// Makes of each row the two functions of a kernel or fence.
macro_rules! kernels {
    ($($begin:ident $end:ident $kind:ident)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $begin(label: *const c_char, device: u32, id: *mut u64) {
            static IDS: AtomicU64 = AtomicU64::new(0);
            // SAFETY: Kokkos's own text and number.
            begin(AnnotationKind::$kind, device, unsafe { name(label) });
            if !next!($begin: fn(*const c_char, u32, *mut u64)(label, device, id)) && !id.is_null() {
                // SAFETY: as above.
                unsafe { id.write(IDS.fetch_add(1, Ordering::Relaxed)) };
            }
        }

        #[unsafe(no_mangle)]
        extern "C" fn $end(id: u64) {
            end(AnnotationKind::$kind);
            next!($end: fn(u64)(id));
        }
    )* };
}

kernels! {
    kokkosp_begin_parallel_for kokkosp_end_parallel_for parallel_for
    kokkosp_begin_parallel_reduce kokkosp_end_parallel_reduce parallel_reduce
    kokkosp_begin_parallel_scan kokkosp_end_parallel_scan parallel_scan
    kokkosp_begin_fence kokkosp_end_fence fence
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_push_profile_region(label: *const c_char) {
    // SAFETY: Kokkos's own text.
    begin(AnnotationKind::range, 0, unsafe { name(label) });
    next!(kokkosp_push_profile_region: fn(*const c_char)(label));
}

#[unsafe(no_mangle)]
extern "C" fn kokkosp_pop_profile_region() {
    end(AnnotationKind::range);
    next!(kokkosp_pop_profile_region: fn()());
}

/// Names of sections, by their numbers. Sections beyond are recorded without one.
static SECTIONS: [AtomicUsize; 1 << 10] = [const { AtomicUsize::new(0) }; 1 << 10];

/// Instances of sections begin behind all other numbers.
const SECTION: u64 = 1 << 32;

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_create_profile_section(label: *const c_char, id: *mut u32) {
    static IDS: AtomicU32 = AtomicU32::new(0);
    if id.is_null() {
        return;
    }
    if !next!(kokkosp_create_profile_section: fn(*const c_char, *mut u32)(label, id)) {
        // SAFETY: Kokkos's own number.
        unsafe { id.write(IDS.fetch_add(1, Ordering::Relaxed)) };
    }
    // SAFETY: as above, and Kokkos's own text.
    let (id, name) = unsafe { (id.read(), name(label)) };
    if let (Some(section), Some(name)) = (SECTIONS.get(id as usize), name) {
        section.store(core::ptr::from_ref(name).expose_provenance(), Ordering::Relaxed);
    }
}

#[unsafe(no_mangle)]
extern "C" fn kokkosp_destroy_profile_section(id: u32) {
    next!(kokkosp_destroy_profile_section: fn(u32)(id));
}

#[unsafe(no_mangle)]
extern "C" fn kokkosp_start_profile_section(id: u32) {
    if is_heard() {
        let text = SECTIONS.get(id as usize).map_or(0, |text| text.load(Ordering::Relaxed));
        // SAFETY: 0, or a text, which stays.
        let name = unsafe { core::ptr::with_exposed_provenance::<Text>(text).as_ref() };
        range::begin(AnnotationKind::process, SECTION + u64::from(id), &Said::new(SOURCE, None, name));
    }
    next!(kokkosp_start_profile_section: fn(u32)(id));
}

#[unsafe(no_mangle)]
extern "C" fn kokkosp_stop_profile_section(id: u32) {
    if is_heard() {
        range::end(AnnotationKind::process, SOURCE, None, SECTION + u64::from(id));
    }
    next!(kokkosp_stop_profile_section: fn(u32)(id));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_profile_event(label: *const c_char) {
    if is_heard() {
        // SAFETY: Kokkos's own text.
        range::mark(AnnotationScope::thread, &Said::new(SOURCE, None, unsafe { name(label) }));
    }
    next!(kokkosp_profile_event: fn(*const c_char)(label));
}

fn memory(
    change: MemoryChange,
    space: &Space,
    label: Option<&'static Text>,
    data: *const c_void,
    bytes: u64,
) {
    if is_heard()
        && let Some(active) = active()
    {
        let number = |text: Option<&'static Text>| text.map_or(0, |text| text.told(active));
        active.recorder.memory(AnnotationMemory {
            source: SOURCE,
            change,
            space: number(space.text()),
            label: number(label),
            address: Address(data.addr() as u64),
            bytes,
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_allocate_data(
    space: Space,
    label: *const c_char,
    data: *const c_void,
    bytes: u64,
) {
    // SAFETY: Kokkos's own text.
    memory(MemoryChange::allocate, &space, unsafe { name(label) }, data, bytes);
    next!(kokkosp_allocate_data: fn(Space, *const c_char, *const c_void, u64)(space, label, data, bytes));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_deallocate_data(
    space: Space,
    label: *const c_char,
    data: *const c_void,
    bytes: u64,
) {
    // SAFETY: Kokkos's own text.
    memory(MemoryChange::free, &space, unsafe { name(label) }, data, bytes);
    next!(kokkosp_deallocate_data: fn(Space, *const c_char, *const c_void, u64)(space, label, data, bytes));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_begin_deep_copy(
    to_space: Space,
    to_label: *const c_char,
    to: *const c_void,
    from_space: Space,
    from_label: *const c_char,
    from: *const c_void,
    bytes: u64,
) {
    if is_heard() {
        // SAFETY: Kokkos's own texts.
        let name = unsafe { copy_name(to_label, from_label) };
        let said = Said { payload: (PayloadType::uint64, bytes), ..Said::new(SOURCE, None, name) };
        range::begin(AnnotationKind::copy, 0, &said);
    }
    next!(kokkosp_begin_deep_copy: fn(Space, *const c_char, *const c_void, Space, *const c_char, *const c_void, u64)
        (to_space, to_label, to, from_space, from_label, from, bytes));
}

/// `FROM -> TO`.
///
/// # Safety
/// Null, or C strings.
unsafe fn copy_name(to: *const c_char, from: *const c_char) -> Option<&'static Text> {
    let mut name = [0; text::LONGEST];
    let mut length = 0;
    // SAFETY: by the caller's promise.
    let [from, to] = unsafe { [text::c_bytes(from), text::c_bytes(to)] };
    for byte in from.iter().chain(b" -> ").chain(to) {
        if let Some(place) = name.get_mut(length) {
            *place = *byte;
            length += 1;
        }
    }
    text::intern(ObjectKind::text, &name[..length])
}

#[unsafe(no_mangle)]
extern "C" fn kokkosp_end_deep_copy() {
    end(AnnotationKind::copy);
    next!(kokkosp_end_deep_copy: fn()());
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_declare_metadata(key: *const c_char, fact: *const c_char) {
    if is_heard() {
        // SAFETY: Kokkos's own texts.
        let (key, text) = unsafe { (text::of_c(ObjectKind::key, key), name(fact)) };
        range::text_value(AnnotationScope::process, (SOURCE, None, key), text, 0);
    }
    next!(kokkosp_declare_metadata: fn(*const c_char, *const c_char)(key, fact));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_dual_view_sync(label: *const c_char, data: *const c_void, is_device: bool) {
    next!(kokkosp_dual_view_sync: fn(*const c_char, *const c_void, bool)(label, data, is_device));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kokkosp_dual_view_modify(label: *const c_char, data: *const c_void, is_device: bool) {
    next!(kokkosp_dual_view_modify: fn(*const c_char, *const c_void, bool)(label, data, is_device));
}
