//! `libcupti`, which is found and loaded at run time, never linked, and its functions.

use std::ffi::{OsStr, OsString, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

use super::layout;

/// The user's choice of `libcupti`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The library that fits the driver, if the loader or NVIDIA's installer has it.
    #[default]
    Auto,
    /// No `libcupti`.
    Off,
    /// The library with this path.
    At(OsString),
}

/// The driver's library. If it is loaded, the process uses CUDA.
const DRIVER: &str = "libcuda.so.1";
/// The supported major versions, newest first.
const MAJORS: [u32; 2] = [13, 12];
/// The directories of NVIDIA's installers, in addition to those of the loader; `%` is the major version.
const FOLDERS: [&str; 4] = [
    "/usr/local/cuda/extras/CUPTI/lib64",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda-%/extras/CUPTI/lib64",
    "/usr/local/cuda-%/lib64",
];
/// glibc's `RTLD_NOLOAD`.
const NO_LOAD: c_int = libc::RTLD_NOLOAD;

/// `CUptiResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Answer(pub(crate) u32);

impl Answer {
    pub(crate) const SUCCESS: Answer = Answer(0);
    pub(crate) const MAX_LIMIT_REACHED: Answer = Answer(12);

    /// The result's name if it explains why tracing does not start, else its number.
    pub(crate) fn text(self) -> String {
        const NAMES: &[(u32, &str)] = &[
            (7, "INVALID_OPERATION"),
            (8, "OUT_OF_MEMORY"),
            (9, "HARDWARE"),
            (14, "NOT_COMPATIBLE"),
            (15, "NOT_INITIALIZED"),
            (21, "INVALID_KIND"),
            (26, "HARDWARE_BUSY"),
            (27, "NOT_SUPPORTED"),
            (28, "UM_PROFILING_NOT_SUPPORTED"),
            (29, "UM_PROFILING_NOT_SUPPORTED_ON_DEVICE"),
            (30, "UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES"),
            (31, "UM_PROFILING_NOT_SUPPORTED_WITH_MPS"),
            (32, "CDP_TRACING_NOT_SUPPORTED"),
            (33, "VIRTUALIZED_DEVICE_NOT_SUPPORTED"),
            (35, "INSUFFICIENT_PRIVILEGES"),
            (36, "OLD_PROFILER_API_INITIALIZED"),
            (39, "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
            (40, "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES"),
            (41, "CONFIDENTIAL_COMPUTING_NOT_SUPPORTED"),
            (42, "CMP_DEVICE_NOT_SUPPORTED"),
            (43, "MIG_DEVICE_NOT_SUPPORTED"),
            (44, "SLI_DEVICE_NOT_SUPPORTED"),
            (45, "WSL_DEVICE_NOT_SUPPORTED"),
            (46, "INVALID_CHIP_NAME"),
            (47, "HES_TRACE_NOT_SUPPORTED_ON_MPS"),
            (999, "UNKNOWN"),
        ];
        let name = NAMES.iter().find(|(number, _)| *number == self.0);
        name.map_or_else(|| format!("CUptiResult {}", self.0), |(_, name)| format!("CUPTI_ERROR_{name}"))
    }
}

/// Requests a buffer: where to store its address, its size, and the maximum number of records.
pub(crate) type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Returns a buffer: context, stream, address, size, valid bytes.
pub(crate) type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Turns a row `field: signature = name` into a field of [`Functions`], bound by name.
macro_rules! functions {
    ($($field:ident: $signature:ty = $name:literal;)*) => {
        /// The library's functions.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Functions { $(pub(crate) $field: $signature,)* }

        /// The names of the functions.
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        impl Functions {
            /// Binds all functions; the error is the name of the first missing one.
            fn bind(library: &Loaded) -> Result<Functions, &'static str> {
                Ok(Functions {
                    // SAFETY: the function of this name has this signature in NVIDIA's headers of CUDA 12 and 13.
                    $($field: *unsafe { library.get::<$signature>($name) }.map_err(|_| $name)?,)*
                })
            }
        }
    };
}

functions! {
    get_version: unsafe extern "C" fn(*mut u32) -> Answer = "cuptiGetVersion";
    get_timestamp: unsafe extern "C" fn(*mut u64) -> Answer = "cuptiGetTimestamp";
    register_callbacks: unsafe extern "C" fn(Requested, Completed) -> Answer = "cuptiActivityRegisterCallbacks";
    enable: unsafe extern "C" fn(u32) -> Answer = "cuptiActivityEnable";
    disable: unsafe extern "C" fn(u32) -> Answer = "cuptiActivityDisable";
    flush_all: unsafe extern "C" fn(u32) -> Answer = "cuptiActivityFlushAll";
    get_next_record: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Answer = "cuptiActivityGetNextRecord";
    get_num_dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Answer = "cuptiActivityGetNumDroppedRecords";
    push_external: unsafe extern "C" fn(u32, u64) -> Answer = "cuptiActivityPushExternalCorrelationId";
    pop_external: unsafe extern "C" fn(u32, *mut u64) -> Answer = "cuptiActivityPopExternalCorrelationId";
}

/// The library loaded in this process.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) functions: Functions,
    /// The library's name and version.
    pub(crate) description: String,
}

/// Loads the library.
///
/// # Errors
/// Why there is none.
pub(super) fn load(choice: &Choice) -> Result<Library, String> {
    if *choice == Choice::Off {
        return Err("switched off by OMPTRACE_CUPTI".into());
    }
    let Some(driver) = loaded(DRIVER) else {
        return Err(format!("the process has not loaded {DRIVER}, so it does not use CUDA"));
    };
    let driver_version = version_of(&driver);
    // The driver's library remains loaded: the process uses it.
    std::mem::forget(driver);
    let others = MAJORS.iter().map(|major| format!("libcupti.so.{major}"));
    if let Some(other) = others.chain(["libcupti.so".into()]).find(|name| loaded(name).is_some()) {
        return Err(format!("{other} is already loaded, so another tool in the process uses CUPTI"));
    }
    let (library, name) = match choice {
        Choice::At(path) => open(path).map(|library| (library, path.to_string_lossy().into())),
        _ => find(driver_version),
    }?;
    let functions =
        Functions::bind(&library).map_err(|missing| format!("{name} does not define {missing}"))?;
    let mut version = 0;
    // SAFETY: NVIDIA's function, and the number can be written.
    let answer = unsafe { (functions.get_version)(&mut version) };
    // Never closed: one of its threads may be running.
    std::mem::forget(library);
    if answer != Answer::SUCCESS {
        return Err(format!("cuptiGetVersion of {name} returned {}", answer.text()));
    }
    if !layout::knows(version) {
        return Err(format!(
            "{name} has version {version} of the CUPTI interface, and omptrace does not support the record formats of this version"
        ));
    }
    Ok(Library { functions, description: format!("CUPTI {version} ({name})") })
}

/// Opens a library if the process has loaded it.
fn loaded(name: &str) -> Option<Loaded> {
    // SAFETY: nothing is loaded, so no code of it runs.
    unsafe { Loaded::open(Some(name), RTLD_NOW | RTLD_LOCAL | NO_LOAD) }.ok()
}

fn open(path: impl AsRef<OsStr>) -> Result<Loaded, String> {
    let path = path.as_ref();
    // SAFETY: NVIDIA's library, whose initialization has no requirements.
    unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| format!("{} cannot be loaded: {error}", path.display()))
}

/// The CUDA version that the driver supports, such as 12 for 12.9. Neither requires CUDA to be initialized, nor
/// initializes it.
fn version_of(driver: &Loaded) -> Option<u32> {
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
    // SAFETY: the driver's function of this name has this signature.
    let get = unsafe { driver.get::<GetVersion>("cuDriverGetVersion") }.ok()?;
    let mut version = 0;
    // SAFETY: the number can be written.
    let result = unsafe { get(&mut version) };
    (result == 0).then_some(version as u32 / 1000)
}

/// The newest library that is not newer than the driver.
fn find(driver_version: Option<u32>) -> Result<(Loaded, String), String> {
    let fits = |major: &u32| driver_version.is_none_or(|driver| *major <= driver);
    let majors: Vec<u32> = MAJORS.into_iter().filter(fits).collect();
    for major in &majors {
        let name = format!("libcupti.so.{major}");
        let in_folders = FOLDERS
            .iter()
            .map(|folder| Path::new(&folder.replace('%', &major.to_string())).join(&name))
            .filter(|path| path.exists())
            .map(|path| path.into_os_string());
        for place in std::iter::once(name.clone().into()).chain(in_folders) {
            if let Ok(library) = open(&place) {
                return Ok((library, place.to_string_lossy().into_owned()));
            }
        }
    }
    let names: Vec<String> = majors.iter().map(|major| format!("libcupti.so.{major}")).collect();
    Err(match &names[..] {
        [] => {
            format!(
                "the driver supports only CUDA versions up to {}, but CUDA 12 is required",
                driver_version.unwrap_or(0)
            )
        }
        names => {
            format!("{} was not found; set OMPTRACE_CUPTI to the path of the library", names.join(" or "))
        }
    })
}
