//! What an event has: `nvtxEventAttributes_t`, 48 bytes.

use core::ffi::{c_char, c_void};

use omptrace_trace_format::field::{ObjectKind, PayloadType};

use crate::nvtx::SOURCE;
use crate::nvtx::payload::{PayloadData, first_number};
use crate::range::{NONE, Payload, Said};
use crate::text::{self, Text};

/// As the header has it. Older versions may have fewer fields, as `size` says.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    colour_type: i32,
    colour: u32,
    payload_type: i32,
    payload_count: i32,
    payload: u64,
    pub(super) message_type: i32,
    pub(super) message: *const c_void,
}

pub(super) const REGISTERED: i32 = 3;

impl Attributes {
    /// The attributes at an address; `None` where it is null, or not all are there.
    ///
    /// # Safety
    /// Null, or the program's attributes.
    pub(super) unsafe fn at<'a>(attributes: *const Attributes) -> Option<&'a Attributes> {
        // SAFETY: by the caller's promise, the first two fields are there in each version.
        let size = unsafe { (!attributes.is_null()).then(|| (&raw const (*attributes).size).read()) };
        let is_whole = size.is_some_and(|size| usize::from(size) >= size_of::<Attributes>());
        // SAFETY: they are there, as the size says.
        is_whole.then(|| unsafe { &*attributes })
    }

    /// What they say of a range or a mark.
    ///
    /// # Safety
    /// The program's attributes.
    pub(super) unsafe fn said(&self, domain: Option<&'static Text>) -> Said {
        let colour = match self.colour_type {
            // Python gives no alpha: opaque is meant.
            1 if self.colour >> 24 == 0 && self.colour != 0 => self.colour | 0xff00_0000,
            1 => self.colour,
            _ => 0,
        };
        // SAFETY: by the caller's promise.
        let (name, payload) = unsafe { (self.message(), self.payload()) };
        Said { category: self.category, colour, payload, ..Said::new(SOURCE, domain, name) }
    }

    /// # Safety
    /// The program's attributes.
    unsafe fn message(&self) -> Option<&'static Text> {
        // SAFETY: by the caller's promise, as the type says.
        unsafe {
            match self.message_type {
                1 => text::of_c(ObjectKind::text, self.message.cast::<c_char>()),
                2 => text::with_wide(self.message.cast(), |bytes| text::intern(ObjectKind::text, bytes)),
                REGISTERED => Text::of_handle(self.message.cast()),
                _ => None,
            }
        }
    }

    /// # Safety
    /// The program's attributes.
    unsafe fn payload(&self) -> Payload {
        /// `NVTX_PAYLOAD_TYPE_EXT`.
        const EXTENDED: i32 = 0xDFBD_0009_u32 as i32;
        let low = self.payload as u32;
        match self.payload_type {
            1 => (PayloadType::uint64, self.payload),
            2 => (PayloadType::int64, self.payload),
            3 => (PayloadType::float64, self.payload),
            4 => (PayloadType::uint64, low.into()),
            5 => (PayloadType::int64, i64::from(low as i32) as u64),
            6 => (PayloadType::float64, f64::from(f32::from_bits(low)).to_bits()),
            EXTENDED if self.payload_count > 0 => {
                let payloads = core::ptr::with_exposed_provenance::<PayloadData>(self.payload as usize);
                // SAFETY: by the caller's promise, at least one is there.
                unsafe { first_number(payloads, self.payload_count as usize) }
            }
            _ => NONE,
        }
    }
}
