//! A driver that provides a device's records, as NVIDIA's does through CUPTI: the runtime reports the device's work to
//! it.

use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::operation::Operation;

/// Device, data operation or 0, bytes, begin and end in nanoseconds of real time.
type Worked = unsafe extern "C" fn(u32, u32, u64, u64, u64);

/// The library of a driver, which stays loaded.
#[derive(Debug)]
pub(super) struct Driver {
    worked: Worked,
    _library: Library,
}

impl Driver {
    /// Loads the library.
    pub(super) fn load(path: &Path) -> Result<Driver, String> {
        let words = |error| format!("{}: {error}", path.display());
        // SAFETY: a library made for this.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(words)?;
        // SAFETY: its function of this name has this signature.
        let worked = *unsafe { library.get::<Worked>("stand_in_work") }.map_err(words)?;
        Ok(Driver { worked, _library: library })
    }

    /// Reports an operation of the device.
    pub(super) fn worked(&self, device: u32, operation: &Operation) {
        let Operation { data_op, bytes, begin_ns, end_ns, .. } = *operation;
        // SAFETY: as in `load`.
        unsafe { (self.worked)(device, data_op.unwrap_or(0), bytes, begin_ns, end_ns) };
    }
}
