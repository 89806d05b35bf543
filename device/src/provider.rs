//! The table of device tracers.
//!
//! The first is the runtime's own interface. To support a vendor's library, for devices whose runtime does not trace
//! them, add a row here and an implementation of [`DeviceTracer`].

use crate::announced::Announced;
use crate::cupti::{self, CuptiTracer};
use crate::ompt::OmptTracer;
use crate::tracer::DeviceTracer;

/// A row of the table: returns a tracer for the device, even if it cannot trace; `None` for devices of other vendors.
///
/// # Safety
/// Like [`tracer_of`].
type Provider = unsafe fn(&Announced<'_>) -> Option<Box<dyn DeviceTracer>>;

/// In the order in which they are tried.
const PROVIDERS: &[Provider] = &[
    // The runtime's own.
    ompt, // NVIDIA's.
    cupti,
];

/// # Safety
/// Like [`tracer_of`].
unsafe fn ompt(announced: &Announced<'_>) -> Option<Box<dyn DeviceTracer>> {
    // SAFETY: by this function's contract.
    Some(Box::new(unsafe { OmptTracer::new(announced) }))
}

/// # Safety
/// Like [`tracer_of`].
unsafe fn cupti(announced: &Announced<'_>) -> Option<Box<dyn DeviceTracer>> {
    let is_nvidias = cupti::is_nvidias(announced.device_type);
    is_nvidias.then(|| -> Box<dyn DeviceTracer> {
        Box::new(CuptiTracer::new(announced.device_num, announced.cupti))
    })
}

/// The tracer chosen for a device.
#[derive(Debug)]
pub struct Found {
    /// The first tracer that can trace, else the first of all.
    pub tracer: Box<dyn DeviceTracer>,
    /// If this tracer cannot trace, why the others cannot either.
    pub others: Vec<String>,
}

/// Tries the providers one after the other, until one can trace.
///
/// # Safety
/// The callback that announced the device has not returned. The tracer is used at most until the device's
/// `device_finalize`. Each function that the lookup function finds has the signature that the specification defines for
/// its name.
pub unsafe fn tracer_of(announced: &Announced<'_>) -> Found {
    let mut first: Option<Found> = None;
    for provider in PROVIDERS {
        // SAFETY: by this function's contract.
        let Some(tracer) = (unsafe { provider(announced) }) else {
            continue;
        };
        let missing = tracer.missing();
        match &mut first {
            _ if missing.is_empty() => {
                return Found { tracer, others: Vec::new() };
            }
            Some(first) => first.others.extend(missing),
            None => {
                first = Some(Found { tracer, others: Vec::new() });
            }
        }
    }
    first.unwrap_or_else(|| Found {
        // SAFETY: by this function's contract.
        tracer: Box::new(unsafe { OmptTracer::new(announced) }),
        others: Vec::new(),
    })
}
