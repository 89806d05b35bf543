//! Another tool that listens to NVTX: it fills tables of ours, and is called from our functions.
//!
//! The program has our handles. So the next tool gets its own ones back, which the text of each handle has. Its functions for what we do
//! not listen to, such as names of devices, it stores in the program's own tables.

use core::ffi::{CStr, c_void};
use core::mem::transmute_copy;
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::next_tool::NextTool;
use crate::nvtx::GetExportTable;
use crate::nvtx::attributes::{Attributes, REGISTERED};
use crate::text::Text;

pub(super) static TOOL: NextTool = NextTool::of(c"OMPTRACE_CHAIN_NVTX");

/// Modules whose functions are ours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Module {
    Core = 1,
    Core2 = 5,
}

/// Functions of a module.
const FUNCTIONS: usize = 16;

/// The next tool's functions.
pub(super) struct Next {
    core: [AtomicUsize; FUNCTIONS],
    core2: [AtomicUsize; FUNCTIONS],
}

static NEXT: Next = Next {
    core: [const { AtomicUsize::new(0) }; FUNCTIONS],
    core2: [const { AtomicUsize::new(0) }; FUNCTIONS],
};
static IS_THERE: AtomicBool = AtomicBool::new(false);

/// The next tool, where there is one.
#[inline]
pub(super) fn next() -> Option<&'static Next> {
    // Acquire; pairs with Release in `initialize`.
    IS_THERE.load(Ordering::Acquire).then_some(&NEXT)
}

/// The next tool's handle of a domain.
pub(super) fn domain_handle(domain: *const Text) -> *const c_void {
    // SAFETY: null, or a text.
    let theirs = unsafe { Text::of_handle(domain) }.map_or(0, |domain| domain.theirs.load(Ordering::Relaxed));
    core::ptr::with_exposed_provenance(theirs)
}

/// The attributes as the next tool knows them.
///
/// # Safety
/// The program's own.
unsafe fn translated<T>(event: *const Attributes, f: impl FnOnce(*const Attributes) -> T) -> T {
    // SAFETY: by the caller's promise.
    match unsafe { Attributes::at(event) } {
        Some(attributes) if attributes.message_type == REGISTERED => {
            let mut copy = *attributes;
            copy.message = domain_handle(attributes.message.cast());
            f(&copy)
        }
        _ => f(event),
    }
}

impl Next {
    /// # Safety
    /// `F` is the type of the function of this number.
    unsafe fn get<F: Copy>(&self, module: Module, number: usize) -> Option<F> {
        let functions = if module == Module::Core { &self.core } else { &self.core2 };
        let address = functions.get(number)?.load(Ordering::Relaxed);
        // SAFETY: by the caller's promise.
        (address != 0).then(|| unsafe { transmute_copy::<usize, F>(&address) })
    }

    /// Calls a function of module 1 with attributes or a text.
    ///
    /// # Safety
    /// The program's own call; so below.
    unsafe fn said<R>(&self, number: usize, message: *const c_void) -> Option<R> {
        const EXTENDED: [usize; 3] = [1, 4, 8];
        // SAFETY: the type of these functions, by the caller's promise.
        unsafe {
            let function = self.get::<unsafe extern "C" fn(*const c_void) -> R>(Module::Core, number)?;
            Some(match EXTENDED.contains(&number) {
                true => translated(message.cast(), |event| function(event.cast())),
                false => function(message),
            })
        }
    }

    pub(super) unsafe fn mark(&self, _: Module, number: usize, message: *const c_void) {
        // SAFETY: by the caller's promise.
        unsafe { self.said::<()>(number, message) };
    }

    pub(super) unsafe fn start(&self, _: Module, number: usize, message: *const c_void) -> Option<u64> {
        // SAFETY: by the caller's promise.
        unsafe { self.said(number, message) }
    }

    pub(super) unsafe fn push(&self, _: Module, number: usize, message: *const c_void) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.said(number, message) }
    }

    pub(super) unsafe fn end(&self, module: Module, number: usize, id: u64) {
        // SAFETY: by the caller's promise.
        if let Some(function) = unsafe { self.get::<unsafe extern "C" fn(u64)>(module, number) } {
            // SAFETY: as above.
            unsafe { function(id) };
        }
    }

    pub(super) unsafe fn pop(&self, module: Module, number: usize) -> Option<i32> {
        // SAFETY: by the caller's promise.
        let function = unsafe { self.get::<unsafe extern "C" fn() -> i32>(module, number) }?;
        // SAFETY: as above.
        Some(unsafe { function() })
    }

    pub(super) unsafe fn name_category(
        &self,
        module: Module,
        number: usize,
        category: u32,
        name: *const c_void,
    ) {
        type Function = unsafe extern "C" fn(u32, *const c_void);
        // SAFETY: by the caller's promise.
        if let Some(function) = unsafe { self.get::<Function>(module, number) } {
            // SAFETY: as above.
            unsafe { function(category, name) };
        }
    }

    /// Calls a function of module 5 with a domain and attributes.
    unsafe fn of_domain<R>(&self, number: usize, domain: *const Text, event: *const Attributes) -> Option<R> {
        type Function<R> = unsafe extern "C" fn(*const c_void, *const Attributes) -> R;
        // SAFETY: by the caller's promise.
        unsafe {
            let function = self.get::<Function<R>>(Module::Core2, number)?;
            Some(translated(event, |event| function(domain_handle(domain), event)))
        }
    }

    pub(super) unsafe fn domain_mark(&self, domain: *const Text, event: *const Attributes) {
        // SAFETY: by the caller's promise.
        unsafe { self.of_domain::<()>(1, domain, event) };
    }

    pub(super) unsafe fn domain_start(&self, domain: *const Text, event: *const Attributes) -> Option<u64> {
        // SAFETY: by the caller's promise.
        unsafe { self.of_domain(2, domain, event) }
    }

    pub(super) unsafe fn domain_push(&self, domain: *const Text, event: *const Attributes) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.of_domain(4, domain, event) }
    }

    pub(super) unsafe fn domain_end(&self, domain: *const Text, id: u64) {
        type Function = unsafe extern "C" fn(*const c_void, u64);
        // SAFETY: by the caller's promise.
        if let Some(function) = unsafe { self.get::<Function>(Module::Core2, 3) } {
            // SAFETY: as above.
            unsafe { function(domain_handle(domain), id) };
        }
    }

    pub(super) unsafe fn domain_pop(&self, domain: *const Text) -> Option<i32> {
        type Function = unsafe extern "C" fn(*const c_void) -> i32;
        // SAFETY: by the caller's promise.
        let function = unsafe { self.get::<Function>(Module::Core2, 5) }?;
        // SAFETY: as above.
        Some(unsafe { function(domain_handle(domain)) })
    }

    pub(super) unsafe fn domain_name_category(
        &self,
        number: usize,
        domain: *const Text,
        category: u32,
        name: *const c_void,
    ) {
        type Function = unsafe extern "C" fn(*const c_void, u32, *const c_void);
        // SAFETY: by the caller's promise.
        if let Some(function) = unsafe { self.get::<Function>(Module::Core2, number) } {
            // SAFETY: as above.
            unsafe { function(domain_handle(domain), category, name) };
        }
    }

    /// Keeps the next tool's handle of a string.
    pub(super) unsafe fn register(
        &self,
        number: usize,
        domain: *const Text,
        string: *const c_void,
        text: &Text,
    ) {
        type Function = unsafe extern "C" fn(*const c_void, *const c_void) -> *const c_void;
        // SAFETY: by the caller's promise.
        if let Some(function) = unsafe { self.get::<Function>(Module::Core2, number) } {
            // SAFETY: as above.
            let theirs = unsafe { function(domain_handle(domain), string) };
            text.theirs.store(theirs.expose_provenance(), Ordering::Relaxed);
        }
    }

    /// Keeps the next tool's handle of a domain.
    pub(super) unsafe fn create(&self, number: usize, name: *const c_void, domain: &Text) {
        type Function = unsafe extern "C" fn(*const c_void) -> *const c_void;
        // SAFETY: by the caller's promise.
        if let Some(function) = unsafe { self.get::<Function>(Module::Core2, number) } {
            // SAFETY: as above.
            let theirs = unsafe { function(name) };
            domain.theirs.store(theirs.expose_provenance(), Ordering::Relaxed);
        }
    }

    pub(super) unsafe fn destroy(&self, domain: *const Text) {
        // SAFETY: by the caller's promise.
        unsafe {
            if let Some(function) = self.get::<unsafe extern "C" fn(*const c_void)>(Module::Core2, 14) {
                function(domain_handle(domain));
            }
        }
    }
}

/// The program's own function for tables, of the shared object that is being initialized.
static PROGRAM: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static PROGRAM_TABLE: AtomicUsize = AtomicUsize::new(0);

type ModuleTable = unsafe extern "C" fn(i32, *mut *const *mut usize, *mut u32) -> i32;

#[repr(C)]
struct Callbacks {
    size: usize,
    table: ModuleTable,
}

static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), table: module_table };

/// The tables that the next tool gets: ours of the modules that are ours.
unsafe extern "C" fn export_table(id: u32) -> *const c_void {
    const CALLBACKS_ID: u32 = 1;
    let program = PROGRAM.load(Ordering::Relaxed);
    if program.is_null() {
        return null();
    }
    // SAFETY: stored as this type.
    let get = unsafe { transmute_copy::<*mut c_void, GetExportTable>(&program) };
    // SAFETY: the program's own function, while the program initializes the library.
    let theirs = unsafe { get(id) };
    if id != CALLBACKS_ID || theirs.is_null() {
        return theirs;
    }
    // SAFETY: it begins with its size.
    let callbacks = unsafe { &*theirs.cast::<Callbacks>() };
    PROGRAM_TABLE.store(callbacks.table as usize, Ordering::Relaxed);
    (&raw const CALLBACKS).cast()
}

/// Addresses of our variables, by the numbers of functions.
struct Slots([*mut usize; FUNCTIONS]);

// SAFETY: constant addresses of atomic variables.
unsafe impl Sync for Slots {}

const fn slots(functions: &'static [AtomicUsize; FUNCTIONS]) -> Slots {
    let mut slots = [core::ptr::null_mut(); FUNCTIONS];
    let mut number = 1;
    while number < FUNCTIONS {
        slots[number] = functions[number].as_ptr();
        number += 1;
    }
    Slots(slots)
}

static CORE: Slots = slots(&NEXT.core);
static CORE2: Slots = slots(&NEXT.core2);

unsafe extern "C" fn module_table(module: i32, slots: *mut *const *mut usize, count: *mut u32) -> i32 {
    let ours = match module {
        1 => &CORE,
        5 => &CORE2,
        _ => {
            let table = PROGRAM_TABLE.load(Ordering::Relaxed);
            if table == 0 {
                return 0;
            }
            // SAFETY: stored as this type; the next tool's own call.
            return unsafe { transmute_copy::<usize, ModuleTable>(&table)(module, slots, count) };
        }
    };
    // SAFETY: null, or the next tool's own variables.
    unsafe {
        if !slots.is_null() {
            slots.write(ours.0.as_ptr());
        }
        if !count.is_null() {
            count.write(FUNCTIONS as u32);
        }
    }
    1
}

/// Initializes the next tool for a shared object of the program's. Gives what it answered.
///
/// # Safety
/// The program's own function.
pub(super) unsafe fn initialize(get: GetExportTable) -> Option<i32> {
    const NAME: &CStr = c"InitializeInjectionNvtx2";
    type Initialize = unsafe extern "C" fn(GetExportTable) -> i32;
    // SAFETY: the type that NVTX gives to the function.
    let theirs = unsafe { TOOL.function::<Initialize>(NAME) }?;
    if !crate::recorder::hears(super::SOURCE) {
        // SAFETY: as the program would call it.
        return Some(unsafe { theirs(get) });
    }
    PROGRAM.store((get as *const c_void).cast_mut(), Ordering::Relaxed);
    // SAFETY: as above.
    let answer = unsafe { theirs(export_table) };
    if answer == 1 {
        // Release; pairs with Acquire in `next`.
        IS_THERE.store(true, Ordering::Release);
    }
    Some(answer)
}
