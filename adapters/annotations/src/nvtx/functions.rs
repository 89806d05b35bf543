//! The functions of module 1, which have no domain, and of module 5, which have one.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use omptrace_trace_format::field::{AnnotationKind, AnnotationScope, ObjectKind};

use crate::nvtx::attributes::Attributes;
use crate::nvtx::next::{self, Module};
use crate::nvtx::{GetExportTable, NO_LEVEL, SOURCE};
use crate::range::{self, Said};
use crate::recorder::hears;
use crate::text::{self, Text};

type Domain = *const Text;

/// # Safety
/// As of [`Text::of_handle`].
unsafe fn domain_of(handle: Domain) -> Option<&'static Text> {
    // SAFETY: by the caller's promise.
    unsafe { Text::of_handle(handle) }
}

/// What the program says of a range or mark.
enum Message {
    Event(*const Attributes),
    Text(*const c_char),
    Wide(*const u32),
}

impl Message {
    /// # Safety
    /// The program's own.
    unsafe fn said(&self, domain: Option<&'static Text>) -> Option<Said> {
        // SAFETY: by the caller's promise.
        unsafe {
            match *self {
                Message::Event(event) => Some(Attributes::at(event)?.said(domain)),
                Message::Text(message) => {
                    Some(Said::new(SOURCE, domain, text::of_c(ObjectKind::text, message)))
                }
                Message::Wide(message) => {
                    let name = text::with_wide(message, |bytes| text::intern(ObjectKind::text, bytes));
                    Some(Said::new(SOURCE, domain, name))
                }
            }
        }
    }
}

/// # Safety
/// The program's own.
unsafe fn mark(domain: Domain, message: &Message) {
    // SAFETY: by the caller's promise.
    if let Some(said) = unsafe { message.said(domain_of(domain)) } {
        range::mark(AnnotationScope::thread, &said);
    }
}

/// # Safety
/// The program's own.
unsafe fn begin(domain: Domain, message: &Message, kind: AnnotationKind, instance: u64) {
    // SAFETY: by the caller's promise.
    let domain = unsafe { domain_of(domain) };
    let Some(active) = range::recorder_of(domain) else { return };
    // What is not readable began all the same.
    // SAFETY: as above.
    let said = unsafe { message.said(domain) }.unwrap_or(Said::new(SOURCE, domain, None));
    range::begin_in(active, kind, instance, &said);
}

/// An id of the next tool's, or ours.
fn fresh_id(theirs: Option<u64>) -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(0);
    match theirs {
        Some(id) if id != 0 => id,
        _ => IDS.fetch_add(1, Ordering::Relaxed) + 1,
    }
}

/// Makes of each row a function `name(message)`, or `name(domain, event)`, that is called for ranges and marks.
macro_rules! said {
    ($($module:ident $number:literal $mark:ident $push:ident $start:ident ($message:ident: $type:ty) $way:ident;)*) => { $(
        unsafe extern "C" fn $mark($message: $type) {
            // SAFETY: the program's own call.
            unsafe {
                mark(core::ptr::null(), &Message::$way($message));
                if let Some(next) = next::next() {
                    next.mark(Module::$module, $number, $message.cast());
                }
            }
        }
        unsafe extern "C" fn $start($message: $type) -> u64 {
            // SAFETY: the program's own call.
            unsafe {
                let theirs = next::next().and_then(|next| next.start(Module::$module, $number + 3, $message.cast()));
                let id = fresh_id(theirs);
                begin(core::ptr::null(), &Message::$way($message), AnnotationKind::process, id);
                id
            }
        }
        unsafe extern "C" fn $push($message: $type) -> i32 {
            // SAFETY: the program's own call.
            unsafe {
                begin(core::ptr::null(), &Message::$way($message), AnnotationKind::range, 0);
                next::next().and_then(|next| next.push(Module::$module, $number + 7, $message.cast())).unwrap_or(NO_LEVEL)
            }
        }
    )* };
}

said! {
    Core 1 mark_ex push_ex start_ex (event: *const Attributes) Event;
    Core 2 mark_a push_a start_a (message: *const c_char) Text;
    Core 3 mark_w push_w start_w (message: *const u32) Wide;
}

unsafe extern "C" fn range_end(id: u64) {
    range::end(AnnotationKind::process, SOURCE, None, id);
    if let Some(next) = next::next() {
        // SAFETY: the program's own call.
        unsafe { next.end(Module::Core, 7, id) };
    }
}

unsafe extern "C" fn range_pop() -> i32 {
    range::end(AnnotationKind::range, SOURCE, None, 0);
    // SAFETY: the program's own call.
    next::next().and_then(|next| unsafe { next.pop(Module::Core, 11) }).unwrap_or(NO_LEVEL)
}

unsafe extern "C" fn name_category(category: u32, name: *const c_char) {
    // SAFETY: the program's own text.
    text::name_category(0, category, unsafe { text::c_bytes(name) });
    if let Some(next) = next::next() {
        // SAFETY: the program's own call.
        unsafe { next.name_category(Module::Core, 12, category, name.cast()) };
    }
}

unsafe extern "C" fn name_category_w(category: u32, name: *const u32) {
    // SAFETY: the program's own text.
    unsafe { text::with_wide(name, |bytes| text::name_category(0, category, bytes)) };
    if let Some(next) = next::next() {
        // SAFETY: the program's own call.
        unsafe { next.name_category(Module::Core, 13, category, name.cast()) };
    }
}

unsafe extern "C" fn domain_mark(domain: Domain, event: *const Attributes) {
    // SAFETY: the program's own call.
    unsafe {
        mark(domain, &Message::Event(event));
        if let Some(next) = next::next() {
            next.domain_mark(domain, event);
        }
    }
}

unsafe extern "C" fn domain_start(domain: Domain, event: *const Attributes) -> u64 {
    // SAFETY: the program's own call.
    unsafe {
        let id = fresh_id(next::next().and_then(|next| next.domain_start(domain, event)));
        begin(domain, &Message::Event(event), AnnotationKind::process, id);
        id
    }
}

unsafe extern "C" fn domain_end(domain: Domain, id: u64) {
    // SAFETY: the program's own call.
    unsafe {
        range::end(AnnotationKind::process, SOURCE, domain_of(domain), id);
        if let Some(next) = next::next() {
            next.domain_end(domain, id);
        }
    }
}

unsafe extern "C" fn domain_push(domain: Domain, event: *const Attributes) -> i32 {
    // SAFETY: the program's own call.
    unsafe {
        begin(domain, &Message::Event(event), AnnotationKind::range, 0);
        next::next().and_then(|next| next.domain_push(domain, event)).unwrap_or(NO_LEVEL)
    }
}

unsafe extern "C" fn domain_pop(domain: Domain) -> i32 {
    // SAFETY: the program's own call.
    unsafe {
        range::end(AnnotationKind::range, SOURCE, domain_of(domain), 0);
        next::next().and_then(|next| next.domain_pop(domain)).unwrap_or(NO_LEVEL)
    }
}

unsafe extern "C" fn domain_name_category(domain: Domain, category: u32, name: *const c_char) {
    // SAFETY: the program's own call.
    unsafe {
        let number = domain_of(domain).map_or(0, |domain| domain.number);
        text::name_category(number, category, text::c_bytes(name));
        if let Some(next) = next::next() {
            next.domain_name_category(8, domain, category, name.cast());
        }
    }
}

unsafe extern "C" fn domain_name_category_w(domain: Domain, category: u32, name: *const u32) {
    // SAFETY: the program's own call.
    unsafe {
        let number = domain_of(domain).map_or(0, |domain| domain.number);
        text::with_wide(name, |bytes| text::name_category(number, category, bytes));
        if let Some(next) = next::next() {
            next.domain_name_category(9, domain, category, name.cast());
        }
    }
}

/// The handle of a string. The next tool has one for each domain.
unsafe fn register(domain: Domain, bytes: &[u8], number: usize, string: *const c_void) -> *const Text {
    let Some(next) = next::next() else {
        return text::intern(ObjectKind::text, bytes).map_or(core::ptr::null(), core::ptr::from_ref);
    };
    // SAFETY: by the caller's promise.
    let of = unsafe { domain_of(domain) }.map_or(0, |domain| domain.number);
    let Some(text) = text::intern_in(ObjectKind::text, of, bytes) else { return core::ptr::null() };
    // SAFETY: the program's own call.
    unsafe { next.register(number, domain, string, text) };
    text
}

unsafe extern "C" fn register_string(domain: Domain, string: *const c_char) -> *const Text {
    // SAFETY: the program's own call.
    unsafe { register(domain, text::c_bytes(string), 10, string.cast()) }
}

unsafe extern "C" fn register_string_w(domain: Domain, string: *const u32) -> *const Text {
    // SAFETY: the program's own call.
    unsafe { text::with_wide(string, |bytes| register(domain, bytes, 11, string.cast())) }
}

unsafe fn create(bytes: &[u8], number: usize, name: *const c_void) -> Domain {
    let Some(domain) = text::intern(ObjectKind::domain, bytes) else { return core::ptr::null() };
    if let Some(next) = next::next() {
        // SAFETY: the program's own call.
        unsafe { next.create(number, name, domain) };
    }
    domain
}

unsafe extern "C" fn domain_create(name: *const c_char) -> Domain {
    // SAFETY: the program's own call.
    unsafe { create(text::c_bytes(name), 12, name.cast()) }
}

unsafe extern "C" fn domain_create_w(name: *const u32) -> Domain {
    // SAFETY: the program's own call.
    unsafe { text::with_wide(name, |bytes| create(bytes, 13, name.cast())) }
}

/// Domains stay: another one of the same name is the same.
unsafe extern "C" fn domain_destroy(domain: Domain) {
    if let Some(next) = next::next() {
        // SAFETY: the program's own call.
        unsafe { next.destroy(domain) };
    }
}

/// The program's tables: addresses of its variables that hold functions, by their numbers.
struct Table {
    slots: *const *mut usize,
    count: u32,
}

impl Table {
    /// # Safety
    /// A table of the program's; the function has the type of that number.
    unsafe fn set(&self, number: usize, function: usize) {
        if number < self.count as usize {
            // SAFETY: by the caller's promise; older headers have fewer.
            unsafe {
                let slot = self.slots.add(number).read();
                if !slot.is_null() {
                    slot.write(function);
                }
            }
        }
    }
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    table: Option<unsafe extern "C" fn(i32, *mut *const *mut usize, *mut u32) -> i32>,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct Version {
    size: usize,
    version: u32,
    reserved: u32,
    set: Option<unsafe extern "C" fn(u32)>,
}

/// Each shared object that uses NVTX calls it once, before its first event.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn InitializeInjectionNvtx2(get: GetExportTable) -> i32 {
    const CALLBACKS: u32 = 1;
    const VERSION: u32 = 3;
    // SAFETY: the program's own tables, which begin with their sizes.
    unsafe {
        let of_next = next::initialize(get);
        if !hears(SOURCE) {
            // The next tool has its functions where the program looks for them, if it has any.
            return of_next.unwrap_or(0);
        }
        if let Some(version) = get(VERSION).cast::<Version>().as_ref()
            && version.size >= size_of::<Version>()
            && let Some(set) = version.set
        {
            set(VERSION);
        }
        let Some(callbacks) = get(CALLBACKS).cast::<Callbacks>().as_ref() else { return 0 };
        let Some(table) = callbacks.table.filter(|_| callbacks.size >= size_of::<Callbacks>()) else {
            return 0;
        };
        fill(table);
    }
    1
}

/// # Safety
/// The program's own function.
unsafe fn fill(table: unsafe extern "C" fn(i32, *mut *const *mut usize, *mut u32) -> i32) {
    let of = |module: Module| {
        let mut found = Table { slots: core::ptr::null(), count: 0 };
        // SAFETY: by the caller's promise.
        let is_there = unsafe { table(module as i32, &mut found.slots, &mut found.count) } != 0;
        (is_there && !found.slots.is_null()).then_some(found)
    };
    // SAFETY: the types are those of the header.
    unsafe {
        if let Some(core) = of(Module::Core) {
            core.set(1, mark_ex as *const () as usize);
            core.set(2, mark_a as *const () as usize);
            core.set(3, mark_w as *const () as usize);
            core.set(4, start_ex as *const () as usize);
            core.set(5, start_a as *const () as usize);
            core.set(6, start_w as *const () as usize);
            core.set(7, range_end as *const () as usize);
            core.set(8, push_ex as *const () as usize);
            core.set(9, push_a as *const () as usize);
            core.set(10, push_w as *const () as usize);
            core.set(11, range_pop as *const () as usize);
            core.set(12, name_category as *const () as usize);
            core.set(13, name_category_w as *const () as usize);
        }
        if let Some(core) = of(Module::Core2) {
            core.set(1, domain_mark as *const () as usize);
            core.set(2, domain_start as *const () as usize);
            core.set(3, domain_end as *const () as usize);
            core.set(4, domain_push as *const () as usize);
            core.set(5, domain_pop as *const () as usize);
            core.set(8, domain_name_category as *const () as usize);
            core.set(9, domain_name_category_w as *const () as usize);
            core.set(10, register_string as *const () as usize);
            core.set(11, register_string_w as *const () as usize);
            core.set(12, domain_create as *const () as usize);
            core.set(13, domain_create_w as *const () as usize);
            core.set(14, domain_destroy as *const () as usize);
        }
    }
}
