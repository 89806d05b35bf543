//! Detects libraries that the program loads with RTLD_DEEPBIND or `dlmopen`. Their OpenMP runtime is another one,
//! because they do not see preloaded libraries: neither this library nor a runtime that replaces libgomp. The names of
//! such libraries are passed to `omptrace record` in its registry, as symbolic links named `PID.deepbind.HASH` or
//! `PID.dlmopen.HASH`.

use std::ffi::{CStr, OsStr, c_char, c_int, c_long, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::os::system;
use crate::os::threads::containment::contained;

/// How a library was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// RTLD_DEEPBIND: symbols of the library's dependencies take precedence over the program's.
    DeepBind,
    /// `dlmopen`: in a separate namespace.
    Dlmopen,
}

/// The registry's directory, if there is one.
static REGISTRY: OnceLock<PathBuf> = OnceLock::new();

/// Called when the library is loaded, because the environment may be changing later. If the library is preloaded, the
/// process has one thread at that time.
pub(crate) fn begin() {
    if let Some(folder) = std::env::var_os(omptrace_settings::REGISTRY)
        && !system::has_more_rights_than_its_user()
    {
        let _ = REGISTRY.set(folder.into());
    }
}

/// Registers the library with this name, once per process.
pub(crate) fn note(name: Option<&CStr>, way: Way) {
    let (Some(folder), Some(name)) = (REGISTRY.get(), name.filter(|name| !name.is_empty())) else {
        return;
    };
    let _ = contained(|| {
        let mut path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        if name.to_bytes().contains(&b'/') {
            path = system::absolute(&path);
        }
        let mut hash = DefaultHasher::new();
        path.hash(&mut hash);
        let way = match way {
            Way::DeepBind => "deepbind",
            Way::Dlmopen => "dlmopen",
        };
        let (pid, hash) = (system::process_id(), hash.finish());
        // Errors do not matter: the link may already exist, and if the directory is gone, nobody reads it.
        let _ = symlink(path, Path::new(folder).join(format!("{pid}.{way}.{hash:016x}")));
    });
}

type Dlmopen = unsafe extern "C" fn(c_long, *const c_char, c_int) -> *mut c_void;

interpose::interpose! {
    /// Replaces the C library's `dlmopen` if this library is preloaded, and continues there, like
    /// [`crate::entry::preload::dlopen`].
    ///
    /// # Safety
    /// Like the C library's.
    pub(crate) unsafe extern "C" fn dlmopen(namespace: c_long, name: *const c_char, flags: c_int) -> *mut c_void,
        goes on in choose
}

/// Registers the library, and returns the function in which a call of `dlmopen` continues.
unsafe extern "C" fn choose(namespace: c_long, name: *const c_char, flags: c_int) -> Dlmopen {
    // SAFETY: the program's argument is null or a C string.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    if namespace != libc::LM_ID_BASE {
        note(name, Way::Dlmopen);
    } else if flags & libc::RTLD_DEEPBIND != 0 {
        note(name, Way::DeepBind);
    }
    of_c_library()
}

/// The C library's `dlmopen`.
fn of_c_library() -> Dlmopen {
    unsafe extern "C" fn none(_: c_long, _: *const c_char, _: c_int) -> *mut c_void {
        std::ptr::null_mut()
    }
    // SAFETY: it has this type.
    unsafe { interpose::next(c"dlmopen") }.unwrap_or(none)
}
