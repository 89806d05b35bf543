//! The tracers of devices: one row each.
//!
//! The runtime's own interface is the first. A vendor's library becomes a provider by a row here and a [`DeviceTracer`] of its
//! own, for devices whose runtime traces nothing.

use crate::announced::Announced;
use crate::cupti::{self, CuptiTracer};
use crate::ompt::OmptTracer;
use crate::tracer::DeviceTracer;

/// A row of the table: a tracer for the device, whether it can trace or not; `None` for devices of other vendors.
///
/// # Safety
/// Like [`tracer_of`].
type Provider = unsafe fn(&Announced<'_>) -> Option<Box<dyn DeviceTracer>>;

/// In the order in which they are asked.
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

/// The tracer of a device.
#[derive(Debug)]
pub struct Found {
    /// The first tracer that lacks nothing, else the first.
    pub tracer: Box<dyn DeviceTracer>,
    /// Why no other one is taken, where this one cannot trace.
    pub others: Vec<String>,
}

/// Asks the providers one after the other, until one can trace.
///
/// # Safety
/// The device was announced by the callback, which has not returned. The tracer is used until the device's `device_finalize` at
/// most. A function that the lookup answers has the signature that the specification gives to its name.
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
