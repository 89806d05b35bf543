//! Libraries that the program loads by `dlopen` with RTLD_DEEPBIND, or by `dlmopen`. They do not see what is preloaded: this
//! library, and a runtime in libgomp's place. Their OpenMP runtime is another one. The library notes them for
//! `omptrace record` in its registry, as symbolic links named `PID.deepbind.HASH` or `PID.dlmopen.HASH`.

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
    /// Libraries that it needs come before those that the program has.
    DeepBind,
    /// In a namespace of its own.
    Dlmopen,
}

/// The registry, where there is one.
static REGISTRY: OnceLock<PathBuf> = OnceLock::new();

/// The library is loaded. Where it is preloaded, the process has one thread; later, the environment may be changing.
pub(crate) fn begin() {
    if let Some(folder) = std::env::var_os(omptrace_settings::REGISTRY)
        && !system::has_more_rights_than_its_user()
    {
        let _ = REGISTRY.set(folder.into());
    }
}

/// Notes the library of this name, once for each process.
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
        // One that is there is as good, and a folder that is gone has no reader.
        let _ = symlink(path, Path::new(folder).join(format!("{pid}.{way}.{hash:016x}")));
    });
}

type Dlmopen = unsafe extern "C" fn(c_long, *const c_char, c_int) -> *mut c_void;

interpose::interpose! {
    /// Takes the place of the C library's `dlmopen` where this library is preloaded, and goes on there, as
    /// [`crate::entry::preload::dlopen`] does.
    ///
    /// # Safety
    /// Like the C library's.
    pub(crate) unsafe extern "C" fn dlmopen(namespace: c_long, name: *const c_char, flags: c_int) -> *mut c_void,
        goes on in choose
}

/// Notes the library; the function that a call of `dlmopen` goes on in.
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
