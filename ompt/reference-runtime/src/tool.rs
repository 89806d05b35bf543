//! Finds and initializes the tool (OpenMP 5.2, 19.2 and 19.3; OpenMP 6.0, 32.2 and 32.3).

use std::env;
use std::ffi::{CStr, CString, OsString};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use ompt_sys::*;
use serde::{Deserialize, Serialize};

use super::active_tool::{ACTIVE, Tool};
pub use super::active_tool::{Finalized, Place, finalize};
use super::callback_table::forget_callbacks;
use super::dialect::Dialect;
use super::entry_points;

/// The OpenMP version that the runtime passes to `ompt_start_tool`.
const OMP_VERSION: u32 = 202_111;
const RUNTIME_VERSION: &str = "omptrace reference runtime";

/// The result of the search for a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// `OMP_TOOL=disabled`: no tool was searched.
    Disabled,
    /// `OMP_TOOL` has an invalid value: no tool was searched.
    BadSetting,
    /// Neither the process nor a library of `OMP_TOOL_LIBRARIES` has a tool that wants to be active.
    Nothing,
    /// A tool whose `initialize` returned 0: it is not active.
    Declined(Place),
    /// A tool that is active now.
    Active(Place),
}

/// Searches a tool and initializes it, as a runtime does before its first event.
///
/// `version` is the runtime's version text; if it is empty, the runtime's own name is used.
pub fn activate(version: &str) -> Found {
    forget_callbacks();
    match env::var_os("OMP_TOOL").as_deref().and_then(|value| value.to_str()) {
        None | Some("" | "enabled") => {}
        Some("disabled") => return Found::Disabled,
        Some(other) => {
            eprintln!(
                "reference runtime: OMP_TOOL is \"{other}\", which is neither enabled nor disabled: no tool"
            );
            return Found::BadSetting;
        }
    }
    let version = if version.is_empty() { RUNTIME_VERSION } else { version };
    let version = CString::new(version).unwrap_or_default();
    let Some(tool) = find(&version) else {
        return Found::Nothing;
    };
    let place = tool.place.clone();
    if !initialize(&tool) {
        forget_callbacks();
        return Found::Declined(place);
    }
    *ACTIVE.lock().expect("no thread panics with it") = Some(tool);
    Found::Active(place)
}

/// The first tool that wants to be active: one in the process, else from the libraries in order.
fn find(version: &CStr) -> Option<Tool> {
    let libraries = env::var_os("OMP_TOOL_LIBRARIES").unwrap_or_default();
    let process = (Place::AddressSpace, Library::this());
    let loaded = env::split_paths(&libraries)
        .filter(|path| !path.as_os_str().is_empty())
        .filter_map(|path| Some((Place::Library(path.clone()), load(&path)?)));
    std::iter::once(process).chain(loaded).find_map(|(place, library)| start(place, library, version))
}

fn load(path: &Path) -> Option<Library> {
    // SAFETY: its constructors are as trustworthy as the user who named it.
    let library = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL) };
    library.inspect_err(|error| verbose(&format!("cannot load {}: {error}", path.display()))).ok()
}

/// Calls a library's `ompt_start_tool`; a tool that returns NULL does not want to be active.
fn start(place: Place, library: Library, version: &CStr) -> Option<Tool> {
    // SAFETY: the specification defines this type for the symbol.
    let start_tool = unsafe { library.get::<ompt_start_tool_t>(b"ompt_start_tool\0") }.ok()?;
    // SAFETY: called as specified.
    let result = unsafe { start_tool(OMP_VERSION, version.as_ptr()) };
    verbose(&format!("{place:?}: ompt_start_tool returned {result:?}"));
    (!result.is_null()).then(|| Tool { place, library, result })
}

/// Initializes a tool; returns whether it is active now.
fn initialize(tool: &Tool) -> bool {
    // SAFETY: the tool keeps its result valid until finalize.
    let result = unsafe { *tool.result };
    let (Some(initialize), Some(_)) = (result.initialize, result.finalize) else {
        return false;
    };
    // SAFETY: the tool's own function, and its result.
    let active = unsafe { Dialect::current().initialize(initialize, entry_points::lookup, tool.result) };
    verbose(&format!("{:?}: initialize returned {active}", tool.place));
    active != 0
}

/// Prints a message if `OMP_TOOL_VERBOSE_INIT` requests it (OpenMP 5.2, 21.3.3).
fn verbose(message: &str) {
    use std::io::Write;

    let setting = env::var_os("OMP_TOOL_VERBOSE_INIT").unwrap_or_else(|| OsString::from("disabled"));
    match setting.to_str() {
        Some("disabled") => {}
        Some("stderr") => eprintln!("reference runtime: {message}"),
        Some("stdout") => println!("reference runtime: {message}"),
        _ => {
            let file = std::fs::File::options().append(true).create(true).open(&setting);
            if let Err(error) = file.and_then(|mut file| writeln!(file, "{message}")) {
                eprintln!("reference runtime: {}: {error}", Path::new(&setting).display());
            }
        }
    }
}
