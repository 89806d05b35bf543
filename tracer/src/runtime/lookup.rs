//! The OpenMP runtime as seen through its lookup function: entry points, states, CPUs, places.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{transmute, transmute_copy};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use ompt_sys::{
    ompt_enumerate_mutex_impls_t, ompt_enumerate_states_t, ompt_function_lookup_t, ompt_get_num_devices_t,
    ompt_get_num_places_t, ompt_get_num_procs_t, ompt_get_parallel_info_t, ompt_get_place_proc_ids_t,
    ompt_get_state_t, ompt_get_task_info_t, ompt_get_thread_data_t, ompt_interface_fn_t, ompt_set_callback_t,
    tr2,
};
use omptrace_trace_format::metadata::Runtime;

use crate::os::loader;
use crate::runtime::replaced_libgomp::{is_adapter, max_threads};

/// All entry points of the host (OpenMP 5.2, 19.6.1).
const ENTRY_POINTS: &[&CStr] = &[
    c"ompt_enumerate_states",
    c"ompt_enumerate_mutex_impls",
    c"ompt_set_callback",
    c"ompt_get_callback",
    c"ompt_get_thread_data",
    c"ompt_get_num_procs",
    c"ompt_get_num_places",
    c"ompt_get_place_proc_ids",
    c"ompt_get_place_num",
    c"ompt_get_partition_place_nums",
    c"ompt_get_proc_id",
    c"ompt_get_state",
    c"ompt_get_parallel_info",
    c"ompt_get_task_info",
    c"ompt_get_task_memory",
    c"ompt_get_target_info",
    c"ompt_get_num_devices",
    c"ompt_get_unique_id",
    c"ompt_finalize_tool",
    // Only in TR2 (chapter 5).
    c"ompt_enumerate_state",
    c"ompt_get_thread_id",
    c"ompt_get_idle_frame",
    c"ompt_get_parallel_id",
    c"ompt_get_parallel_team_size",
    c"ompt_get_task_id",
    c"ompt_get_task_frame",
];

/// Start value with which `enumerate_states` returns all states; with 0 it omits `work_serial`, which is 0
/// (`ompt_state_t`).
const STATE_UNDEFINED: c_int = 0x102;
/// Start value for `enumerate_mutex_impls` (`ompt_mutex_impl_none`).
const MUTEX_IMPL_NONE: c_int = 0;
/// Limit for endless enumerations; no runtime has more states or places.
const MOST: usize = 4096;

/// The result of `ompt_get_parallel_info` and `ompt_get_task_info` if there is a region or task at that level, and the
/// information is available (OpenMP 5.2, 19.6.1.13 and 19.6.1.14).
pub(crate) const INFO_IS_THERE: c_int = 2;

/// A runtime's lookup function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup(ompt_function_lookup_t);

/// The lookup function of this process's runtime, until it finalizes the tool; null if there is none. Not behind a
/// lock, which the child of a raw clone(2) would wait for forever if a thread of its parent held it.
static LOOKUP: AtomicPtr<()> = AtomicPtr::new(null_mut());

impl Lookup {
    /// # Safety
    /// `lookup` is the argument of `ompt_initialize_t`, and works until the runtime ends.
    pub(crate) unsafe fn new(lookup: ompt_function_lookup_t) -> Lookup {
        // Release; pairs with Acquire in `current`.
        LOOKUP.store(lookup as *mut (), Ordering::Release);
        Lookup(lookup)
    }

    /// A lookup function of the tracer, located between the next tool and the runtime.
    ///
    /// # Safety
    /// As for [`Lookup::new`].
    pub(crate) unsafe fn between(lookup: ompt_function_lookup_t) -> Lookup {
        Lookup(lookup)
    }

    /// The lookup function of the current runtime.
    pub(crate) fn current() -> Option<Lookup> {
        // Acquire; pairs with Release in `new`.
        let lookup = LOOKUP.load(Ordering::Acquire);
        (!lookup.is_null()).then(|| {
            // SAFETY: a pointer that is not null was stored by `new`, from such a function.
            Lookup(unsafe { transmute::<*mut (), ompt_function_lookup_t>(lookup) })
        })
    }

    /// The runtime is ending.
    pub(crate) fn forget() {
        // Release; pairs with Acquire in `current`, as in `new`.
        LOOKUP.store(null_mut(), Ordering::Release);
    }

    /// The function's address.
    pub(crate) fn address(self) -> *const c_void {
        self.0 as *const c_void
    }

    /// Looks up the entry point `name`.
    pub(crate) fn find(self, name: &CStr) -> Option<ompt_interface_fn_t> {
        // SAFETY: by `new`'s contract; a C string.
        unsafe { (self.0)(name.as_ptr()) }
    }

    /// Looks up the entry point `name` of type `F`.
    ///
    /// # Safety
    /// The specification defines `F` as the type of this entry point.
    pub(crate) unsafe fn entry<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<ompt_interface_fn_t>()) };
        // SAFETY: by this function's contract; function pointers of one size.
        self.find(name).map(|entry| unsafe { transmute_copy(&entry) })
    }

    /// `ompt_set_callback`.
    pub(crate) fn set_callback(self) -> Option<ompt_set_callback_t> {
        // SAFETY: OpenMP 5.2, 19.6.1.3.
        unsafe { self.entry(c"ompt_set_callback") }
    }

    /// `ompt_set_callback` of TR2.
    pub(crate) fn set_callback_of_tr2(self) -> Option<tr2::ompt_set_callback_t> {
        // SAFETY: TR2, 6.1.2.
        unsafe { self.entry(c"ompt_set_callback") }
    }

    /// `ompt_get_parallel_team_size` of TR2.
    pub(crate) fn team_size_of_tr2(self) -> Option<tr2::ompt_get_parallel_team_size_t> {
        // SAFETY: TR2, 5.3.
        unsafe { self.entry(c"ompt_get_parallel_team_size") }
    }

    /// Whether the runtime passes pointers to data where TR2 has ids.
    pub(crate) fn has_data_in_tr2(self) -> bool {
        self.find(c"ompt_get_parallel_data").is_some()
    }

    /// `ompt_get_state`.
    pub(crate) fn get_state(self) -> Option<ompt_get_state_t> {
        // SAFETY: OpenMP 5.2, 19.6.1.12.
        unsafe { self.entry(c"ompt_get_state") }
    }

    /// `ompt_get_thread_data`.
    pub(crate) fn get_thread_data(self) -> Option<ompt_get_thread_data_t> {
        // SAFETY: OpenMP 5.2, 19.6.1.5.
        unsafe { self.entry(c"ompt_get_thread_data") }
    }

    /// `ompt_get_parallel_info`.
    pub(crate) fn get_parallel_info(self) -> Option<ompt_get_parallel_info_t> {
        // SAFETY: OpenMP 5.2, 19.6.1.13.
        unsafe { self.entry(c"ompt_get_parallel_info") }
    }

    /// `ompt_get_task_info`.
    pub(crate) fn get_task_info(self) -> Option<ompt_get_task_info_t> {
        // SAFETY: OpenMP 5.2, 19.6.1.14.
        unsafe { self.entry(c"ompt_get_task_info") }
    }

    /// The library that contains the lookup function.
    fn library(self) -> Option<String> {
        loader::library_of(self.0 as *const _)
    }

    /// The runtime's description in the metadata; `version` and `omp_version` were passed to `ompt_start_tool` or a
    /// similar function.
    pub(crate) fn describe(self, dialect: &str, version: &str, omp_version: u32) -> Runtime {
        let names = self.entry_points().into_iter();
        Runtime {
            version: version.into(),
            omp_version,
            dialect: dialect.into(),
            path: self.library().map(real_folder).unwrap_or_default(),
            entry_points: names.map(String::from).collect(),
            states: self.states(),
            mutex_impls: self.mutex_impls(),
        }
    }

    /// Names of the entry points that the runtime has.
    fn entry_points(self) -> Vec<&'static str> {
        ENTRY_POINTS
            .iter()
            .filter(|name| self.find(name).is_some())
            .filter_map(|name| name.to_str().ok())
            .collect()
    }

    /// The states that the runtime enumerates.
    fn states(self) -> BTreeMap<u32, String> {
        // SAFETY: OpenMP 5.2, 19.6.1.1; TR2, 5.1.
        let (entry, of_tr2): (Option<ompt_enumerate_states_t>, Option<ompt_enumerate_states_t>) =
            unsafe { (self.entry(c"ompt_enumerate_states"), self.entry(c"ompt_enumerate_state")) };
        let Some(next) = entry.or(of_tr2) else {
            return BTreeMap::new();
        };
        let from = |first| {
            enumerate(first, |number, following, name| {
                // SAFETY: valid places for the answer, for the length of the call.
                unsafe { next(number, following, name) }
            })
        };
        // TR2, and the first TR4 runtimes, start with another value; the usual one is not one of their states.
        let states = from(STATE_UNDEFINED);
        match states.is_empty() {
            true => from(tr2::ompt_state_first),
            false => states,
        }
    }

    /// The mutex implementations that the runtime enumerates.
    fn mutex_impls(self) -> BTreeMap<u32, String> {
        // SAFETY: OpenMP 5.2, 19.6.1.2.
        let entry: Option<ompt_enumerate_mutex_impls_t> =
            unsafe { self.entry(c"ompt_enumerate_mutex_impls") };
        let Some(next) = entry else {
            return BTreeMap::new();
        };
        enumerate(MUTEX_IMPL_NONE, |number, following, name| {
            // SAFETY: valid places for the answer, for the length of the call.
            unsafe { next(number, following, name) }
        })
    }

    /// The number of CPUs according to the runtime; only on a thread that has begun.
    pub(crate) fn num_procs(self) -> i32 {
        // SAFETY: OpenMP 5.2, 19.6.1.6.
        let entry: Option<ompt_get_num_procs_t> = unsafe { self.entry(c"ompt_get_num_procs") };
        // SAFETY: no arguments.
        entry.map_or(0, |get| unsafe { get() })
    }

    /// The maximum number of threads of a parallel region, as returned by `omp_get_max_threads` outside of regions;
    /// only on a thread that has begun.
    pub(crate) fn max_threads(self) -> Option<i32> {
        max_threads()
    }

    /// The number of devices; only on a thread that has begun. `None` with the libgomp adapter before the first device
    /// construct, because libgomp would load its plugins to count the devices.
    pub(crate) fn num_devices(self) -> Option<i32> {
        // SAFETY: OpenMP 5.2, 19.6.1.17.
        let entry: Option<ompt_get_num_devices_t> = unsafe { self.entry(c"ompt_get_num_devices") };
        // SAFETY: no arguments.
        let count = entry.map(|get| unsafe { get() })?;
        let is_known = count != 0 || !is_adapter(self.address());
        is_known.then_some(count)
    }

    /// The CPUs of each place; only on a thread that has begun.
    pub(crate) fn places(self) -> Vec<Vec<i32>> {
        // SAFETY: OpenMP 5.2, 19.6.1.7 and 19.6.1.8.
        let (number, ids): (Option<ompt_get_num_places_t>, Option<ompt_get_place_proc_ids_t>) =
            unsafe { (self.entry(c"ompt_get_num_places"), self.entry(c"ompt_get_place_proc_ids")) };
        let (Some(number), Some(ids)) = (number, ids) else {
            return Vec::new();
        };
        // SAFETY: no arguments.
        let places = unsafe { number() }.clamp(0, MOST as i32);
        let processors = |place| {
            let mut processors = vec![0; MOST];
            // SAFETY: the place exists, and the array has the given length; the runtime writes it only if all ids fit.
            let len = unsafe { ids(place, MOST as c_int, processors.as_mut_ptr()) };
            processors.truncate(len.clamp(0, MOST as c_int) as usize);
            processors
        };
        (0..places).map(processors).collect()
    }
}

/// Resolves links in the path's directory: `omptrace record` preloads runtimes through a temporary link.
fn real_folder(path: String) -> String {
    let named = Path::new(&path);
    let folder = named.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, named.file_name()) {
        (Some(folder), Some(name)) => folder.join(name).to_string_lossy().into_owned(),
        _ => path,
    }
}

/// Enumerates values from `first` to the end.
fn enumerate(
    first: c_int,
    next: impl Fn(c_int, *mut c_int, *mut *const c_char) -> c_int,
) -> BTreeMap<u32, String> {
    let (mut number, mut found) = (first, BTreeMap::new());
    for _ in 0..MOST {
        let (mut following, mut name) = (0, std::ptr::null());
        if next(number, &mut following, &mut name) == 0 {
            break;
        }
        // SAFETY: the runtime gives a C string of its own.
        found.insert(following as u32, unsafe { text(name) });
        number = following;
    }
    found
}

/// A text from the runtime; empty for a null pointer.
///
/// # Safety
/// `text` is null or a C string.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}
