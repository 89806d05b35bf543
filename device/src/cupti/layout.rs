//! The layout of CUPTI's activity records, as one table.
//!
//! NVIDIA adds fields at the end of a record, and then increments the number in the structure's name. All versions in
//! CUDA 12 and 13 have the fields of this table at the same offsets. A test compiles the table against NVIDIA's headers
//! (`device/tests/layouts.rs`).

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name in the structure.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
}

/// The layout of a kind of records, up to the last field that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The structure's name without `CUpti_Activity` and its number.
    pub name: &'static str,
    /// The lowest number of the structure in CUDA 12 and 13; 0 if its name has no number.
    pub first_number: u32,
    /// The names of the kind's enumerators, without `CUPTI_ACTIVITY_KIND_`, and their numbers.
    pub kinds: &'static [(&'static str, u32)],
    /// The fields that are read.
    pub fields: &'static [Field],
    /// Number of bytes up to the end of the last field.
    pub bytes: usize,
}

/// Turns each row into a module with the places of its fields, and an element of [`LAYOUTS`].
macro_rules! layouts {
    ($($(#[$doc:meta])* $module:ident = $name:literal from $first:literal {
        kinds: $($kind:ident = $number:literal),+;
        $($field:ident $c_name:literal: $type:ty = $offset:literal,)*
    })*) => {
        $($(#[$doc])*
        #[allow(missing_docs, reason = "each is the field of its name in NVIDIA's header")]
        pub(crate) mod $module {
            use $crate::cupti::layout::Place;
            $(pub(crate) const $kind: u32 = $number;)+
            $(#[allow(non_upper_case_globals, reason = "fields")]
            pub(crate) const $field: Place<$type> = Place::at($offset);)*
            pub(crate) const BYTES: usize = $crate::cupti::layout::last(&[$($offset + size_of::<$type>()),*]);
        })*

        /// The kinds of records that are read.
        pub const LAYOUTS: &[Layout] = &[$(Layout {
            name: $name,
            first_number: $first,
            kinds: &[$((stringify!($kind), $number)),+],
            fields: &[$(Field { name: $c_name, offset: $offset, bytes: size_of::<$type>() }),*],
            bytes: $module::BYTES,
        }),*];
    };
}

layouts! {
    /// Code that ran on a device. `Kernel4` is older than CUDA 12, whose records are `Kernel9`.
    kernel = "Kernel" from 4 {
        kinds: KERNEL = 3, CONCURRENT_KERNEL = 10;
        start "start": u64 = 16,
        end "end": u64 = 24,
        device_id "deviceId": u32 = 40,
        stream_id "streamId": u32 = 48,
        grid_x "gridX": u32 = 52,
        grid_y "gridY": u32 = 56,
        grid_z "gridZ": u32 = 60,
        correlation_id "correlationId": u32 = 92,
        name "name": u64 = 104,
    }
    /// A copy that involves one device.
    memcpy = "Memcpy" from 3 {
        kinds: MEMCPY = 1;
        copy_kind "copyKind": u8 = 4,
        bytes "bytes": u64 = 8,
        start "start": u64 = 16,
        end "end": u64 = 24,
        device_id "deviceId": u32 = 32,
        stream_id "streamId": u32 = 40,
        correlation_id "correlationId": u32 = 44,
    }
    /// A copy from device to device.
    memcpy_peers = "MemcpyPtoP" from 2 {
        kinds: MEMCPY2 = 22;
        bytes "bytes": u64 = 8,
        start "start": u64 = 16,
        end "end": u64 = 24,
        device_id "deviceId": u32 = 32,
        stream_id "streamId": u32 = 40,
        correlation_id "correlationId": u32 = 60,
    }
    /// Memory is set to a value.
    memset = "Memset" from 2 {
        kinds: MEMSET = 2;
        bytes "bytes": u64 = 8,
        start "start": u64 = 16,
        end "end": u64 = 24,
        device_id "deviceId": u32 = 32,
        stream_id "streamId": u32 = 40,
        correlation_id "correlationId": u32 = 44,
    }
    /// Memory is allocated or released.
    memory = "Memory" from 2 {
        kinds: MEMORY2 = 49;
        operation "memoryOperationType": u32 = 4,
        memory_kind "memoryKind": u32 = 8,
        correlation_id "correlationId": u32 = 12,
        address "address": u64 = 16,
        bytes "bytes": u64 = 24,
        timestamp "timestamp": u64 = 32,
        device_id "deviceId": u32 = 52,
    }
    /// An external id that we pushed for the thread's next calls.
    external = "ExternalCorrelation" from 0 {
        kinds: EXTERNAL_CORRELATION = 39;
        kind "externalKind": u32 = 4,
        id "externalId": u64 = 8,
        correlation_id "correlationId": u32 = 16,
    }
    /// Time that CUPTI or the driver spent on tracing.
    overhead = "Overhead" from 2 {
        kinds: OVERHEAD = 17;
        start "start": u64 = 24,
        end "end": u64 = 32,
    }
}

/// The largest of `ends`.
const fn last(ends: &[usize]) -> usize {
    let (mut last, mut index) = (0, 0);
    while index < ends.len() {
        if ends[index] > last {
            last = ends[index];
        }
        index += 1;
    }
    last
}

/// The kind of driver calls, whose records are not read.
pub(crate) const DRIVER: u32 = 4;
/// The kind of CUDA runtime calls, whose records are not read.
pub(crate) const RUNTIME: u32 = 5;

/// The offset of a field of this type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<T> {
    offset: usize,
    of: std::marker::PhantomData<T>,
}

impl<T> Place<T> {
    const fn at(offset: usize) -> Place<T> {
        Place { offset, of: std::marker::PhantomData }
    }
}

/// The bytes of a record that are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'b>(pub(crate) &'b [u8]);

impl Bytes<'_> {
    /// The value of a field; 0 if the record is shorter.
    pub(crate) fn get<T>(self, place: Place<T>) -> u64 {
        let mut word = [0; 8];
        let field = self.0.get(place.offset..place.offset + size_of::<T>());
        word[..size_of::<T>()].copy_from_slice(field.unwrap_or(&[0; 8][..size_of::<T>()]));
        u64::from_ne_bytes(word)
    }
}

/// The record's kind: its first field.
pub(crate) const KIND: Place<u32> = Place::at(0);
pub(crate) const KIND_BYTES: usize = size_of::<u32>();

/// The layout of records of this kind; `None` if they are not read.
pub(crate) fn of_kind(kind: u32) -> Option<&'static Layout> {
    let is_it = |layout: &&Layout| layout.kinds.iter().any(|(_, number)| *number == kind);
    LAYOUTS.iter().find(is_it)
}

/// Whether the table applies to a library with this interface version. Versions in CUDA 12 are numbered from 19; since
/// CUDA 13, they are CUDA's version times 10000.
pub fn knows(version: u32) -> bool {
    (19..100).contains(&version) || (130_000..140_000).contains(&version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_no_field_beyond_the_record() {
        let mut bytes = [0_u8; kernel::BYTES];
        bytes[104..112].copy_from_slice(&0x1122_u64.to_ne_bytes());
        bytes[92..96].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!(Bytes(&bytes).get(kernel::name), 0x1122);
        assert_eq!(Bytes(&bytes).get(kernel::correlation_id), 7);
        assert_eq!(Bytes(&bytes[..100]).get(kernel::name), 0);
    }

    #[test]
    fn knows_the_versions_of_cuda_12_and_13_only() {
        let known = [19, 28, 130_000, 130_500];
        let unknown = [0, 18, 120_000, 140_000, 150_001];
        assert!(known.into_iter().all(knows));
        assert!(!unknown.into_iter().any(knows));
    }
}
