//! Finds the second tool: the one that `OMPTRACE_NEXT_TOOL` names, else the next one in `OMP_TOOL_LIBRARIES`, else the
//! next one in the program, else Archer if the program uses ThreadSanitizer.

use std::env;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_uint, c_void};
use std::mem::transmute;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use ompt_sys::ompt_start_tool_result_t;

use crate::os::loader;
use crate::os::log::warning;
use crate::runtime::lookup::Lookup;

const START_TOOL: &CStr = c"ompt_start_tool";

type StartTool =
    unsafe extern "C" fn(omp_version: c_uint, version: *const c_char) -> *mut ompt_start_tool_result_t;

/// A tool that wants to be active.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The result of its `ompt_start_tool`; not null.
    pub(crate) result: *mut ompt_start_tool_result_t,
    /// The path of its library.
    pub(crate) name: String,
}

/// The first tool that wants to be active with a runtime of this version.
pub(crate) fn find(
    named: Option<&OsStr>,
    is_global: bool,
    omp_version: c_uint,
    version: &CStr,
) -> Option<Tool> {
    let start = |(name, function): (String, StartTool)| {
        // SAFETY: as a runtime calls it (OpenMP 5.2, 19.2.1).
        let result = unsafe { function(omp_version, version.as_ptr()) };
        (!result.is_null()).then_some(Tool { result, name })
    };
    if let Some(named) = named {
        return match tool_in(named) {
            Ok(found) => found.and_then(start),
            Err(why) => {
                let named = named.display();
                warning!("the tool {named} (from OMPTRACE_NEXT_TOOL) was not started: {why}");
                None
            }
        };
    }
    let mut listed = listed_behind_us(is_global).into_iter();
    let listed = listed.find_map(|library| tool_in(&library).ok().flatten().and_then(start));
    listed
        .or_else(|| is_global.then(next_in_program).flatten().and_then(start))
        .or_else(|| archer().and_then(start))
}

/// Archer, which LLVM's runtime loads if there is no tool. Without it, ThreadSanitizer does not know OpenMP's
/// synchronization, and reports false data races.
fn archer() -> Option<(String, StartTool)> {
    const ARCHER: &str = "libarcher.so";

    if !loader::is_defined_elsewhere(c"__tsan_init") {
        return None;
    }
    let runtime = loader::library_of(Lookup::current()?.address())?;
    let beside = Path::new(&runtime).with_file_name(ARCHER);
    let places = [beside.as_os_str(), ARCHER.as_ref()];
    places.iter().find_map(|place| tool_in(place).ok().flatten())
}

/// The entries of `OMP_TOOL_LIBRARIES` after this library. The runtime itself tries the entries before it, and tries
/// none if it has found this library in the program. If another tool has loaded this library, that tool may be any of
/// the entries.
fn listed_behind_us(is_global: bool) -> Vec<OsString> {
    let list = env::var_os("OMP_TOOL_LIBRARIES").unwrap_or_default();
    let own = loader::library_of(own_address()).and_then(|path| Path::new(&path).canonicalize().ok());
    let is_own = |entry: &OsString| own.is_some() && Path::new(entry).canonicalize().ok() == own;
    let entries: Vec<OsString> = list
        .as_bytes()
        .split(|byte| *byte == b':')
        .map(|entry| OsString::from_vec(entry.to_owned()))
        .collect();
    let behind = match entries.iter().rposition(is_own) {
        Some(own) => own + 1,
        None if is_global => 0,
        None => entries.len(),
    };
    entries.into_iter().skip(behind).filter(|entry| !entry.is_empty()).collect()
}

/// `ompt_start_tool` of the given library; `None` if it is the tracer's own.
///
/// # Errors
/// Why the library cannot be loaded, or is not a tool.
fn tool_in(library: &OsStr) -> Result<Option<(String, StartTool)>, String> {
    let path = CString::new(library.as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: loading a library runs its constructors, as it would if a runtime loaded it.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: a C string of the loader's, or null.
        let error = unsafe { libc::dlerror().as_ref() };
        // SAFETY: as above.
        let text = error.map(|error| unsafe { CStr::from_ptr(error) }.to_string_lossy());
        return Err(text.unwrap_or_default().into_owned());
    }
    // SAFETY: a handle of the loader's.
    let function = unsafe { loader::symbol(handle, START_TOOL) };
    if function.is_null() {
        return Err("the library does not define ompt_start_tool".to_owned());
    }
    Ok(foreign(function))
}

/// The next `ompt_start_tool` after this library's, for example of a tool that the program is linked with.
fn next_in_program() -> Option<(String, StartTool)> {
    // Otherwise the lookup would needlessly take the loader's lock, which may be held by a thread that waits for this
    // one.
    if !loader::is_defined_elsewhere(START_TOOL) {
        return None;
    }
    // SAFETY: a constant of the loader.
    foreign(unsafe { loader::symbol(libc::RTLD_NEXT, START_TOOL) })
}

/// The function and its library's path, if it belongs to another tool.
fn foreign(function: *mut c_void) -> Option<(String, StartTool)> {
    if function.is_null() || loader::module_of(function) == loader::module_of(own_address()) {
        return None;
    }
    let name = loader::library_of(function).unwrap_or_else(|| "the program".to_owned());
    // SAFETY: the specification defines this type for the function (OpenMP 5.2, 19.2.1).
    Some((name, unsafe { transmute::<*mut c_void, StartTool>(function) }))
}

/// An address inside this library. Not the address of `ompt_start_tool`, which may resolve to another library's.
fn own_address() -> *const c_void {
    START_TOOL.as_ptr().cast()
}
