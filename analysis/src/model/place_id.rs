//! Places of a process, by number.

/// A place's number: a region's number, or from [`SERIAL`] on, serial code.
pub(crate) type PlaceId = u32;

/// Numbers from here on are serial code: `Sums::serial_places`.
pub(crate) const SERIAL: PlaceId = 1 << 31;
