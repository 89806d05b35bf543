//! The encoding of OTF2's primitive values.
//!
//! Numbers are either *compressed* - a byte with the number of bytes that follow, then the lowest bytes, none for 0 -
//! or *full*, with a fixed width. An undefined reference has all bits set; its compressed form is the single byte `ff`.

use std::fmt;

use crate::buffer::Out;

/// A value as a field of a record.
pub trait Field: Sized {
    /// The maximum number of bytes of its encoding.
    const MAX_BYTES: usize = usize::MAX;
    /// Appends the value, little-endian.
    fn put(&self, out: &mut impl Out);
    /// Decodes a value from the front; `None` if the bytes end too early or are invalid.
    fn take(from: &mut Bytes<'_>) -> Option<Self>;
    /// Calls `visit` with the definitions to which the value refers.
    fn references(&self, visit: &mut dyn FnMut(Kind, u64)) {
        let _ = visit;
    }
}

/// Bytes of a file, consumed from the front.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'b> {
    /// The remaining bytes.
    pub rest: &'b [u8],
    /// Whether numbers of fixed width are big-endian.
    pub big_endian: bool,
}

impl<'b> Bytes<'b> {
    /// Takes `len` bytes; `None` if there are fewer.
    pub fn slice(&mut self, len: usize) -> Option<&'b [u8]> {
        let (front, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(front)
    }

    /// Takes one byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.slice(1).map(|byte| byte[0])
    }

    /// A number of `len` bytes, at most 8.
    fn number(&mut self, len: usize) -> Option<u64> {
        let bytes = self.slice(len)?;
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    /// A compressed number of at most `width` bytes.
    fn compressed(&mut self, width: usize) -> Option<u64> {
        match usize::from(self.byte()?) {
            0xff => Some(u64::MAX >> (64 - 8 * width)),
            len if len <= width => self.number(len),
            _ => None,
        }
    }

    /// Takes text up to the terminating byte 0.
    pub fn text(&mut self) -> Option<String> {
        let len = self.rest.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(self.slice(len)?).into_owned();
        self.byte()?;
        Some(text)
    }
}

/// Number of bytes of `value` without leading zeros.
#[inline]
pub fn significant_bytes(value: u64) -> usize {
    ((u64::BITS + 7 - value.leading_zeros()) / 8) as usize
}

/// Appends the number `len`, and then the `len` lowest bytes of `value`.
#[inline]
pub fn put_sized(out: &mut impl Out, value: u64, len: usize) {
    let bytes = u128::from(value) << 8 | len as u128;
    out.store(bytes.to_le_bytes(), 1 + len);
}

#[inline]
fn put_compressed(out: &mut impl Out, value: u64, undefined: u64) {
    if value == undefined {
        out.store([0xff], 1);
    } else {
        put_sized(out, value, significant_bytes(value));
    }
}

/// Enumerators, and other single bytes.
impl Field for u8 {
    const MAX_BYTES: usize = 1;

    fn put(&self, out: &mut impl Out) {
        out.store([*self], 1);
    }

    fn take(from: &mut Bytes<'_>) -> Option<u8> {
        from.byte()
    }
}

/// A compressed number.
impl Field for u32 {
    const MAX_BYTES: usize = 5;

    #[inline]
    fn put(&self, out: &mut impl Out) {
        put_compressed(out, (*self).into(), u32::MAX.into());
    }

    fn take(from: &mut Bytes<'_>) -> Option<u32> {
        from.compressed(4).map(|number| number as u32)
    }
}

/// A compressed number.
impl Field for u64 {
    const MAX_BYTES: usize = 9;

    #[inline]
    fn put(&self, out: &mut impl Out) {
        put_compressed(out, *self, u64::MAX);
    }

    fn take(from: &mut Bytes<'_>) -> Option<u64> {
        from.compressed(8)
    }
}

/// A compressed number; a negative number takes all eight bytes.
impl Field for i64 {
    const MAX_BYTES: usize = 9;

    fn put(&self, out: &mut impl Out) {
        put_sized(out, *self as u64, significant_bytes(*self as u64));
    }

    fn take(from: &mut Bytes<'_>) -> Option<i64> {
        from.compressed(8).map(|number| number as i64)
    }
}

/// A number of always eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full(pub u64);

impl Field for Full {
    const MAX_BYTES: usize = 8;

    fn put(&self, out: &mut impl Out) {
        out.store(self.0.to_le_bytes(), 8);
    }

    fn take(from: &mut Bytes<'_>) -> Option<Full> {
        from.number(8).map(Full)
    }
}

/// Longer texts are cut, because a record must fit into a chunk.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Text with a terminating byte 0.
impl Field for String {
    fn put(&self, out: &mut impl Out) {
        let end = self.find('\0').unwrap_or(self.len());
        let end = self.floor_char_boundary(end.min(MAX_TEXT_BYTES));
        out.store_all(&self.as_bytes()[..end]);
        out.store([0], 1);
    }

    fn take(from: &mut Bytes<'_>) -> Option<String> {
        from.text()
    }
}

/// A field that records of older versions lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added<T>(pub T);

/// The value of an added field in records that lack it.
pub trait Missing {
    /// The undefined reference.
    const MISSING: Self;
}

impl Missing for u32 {
    const MISSING: u32 = 0;
}

impl Missing for u64 {
    const MISSING: u64 = u64::MAX;
}

impl Missing for LocationGroupRef {
    const MISSING: LocationGroupRef = LocationGroupRef::UNDEFINED;
}

impl<T: Field + Missing> Field for Added<T> {
    const MAX_BYTES: usize = T::MAX_BYTES;

    fn put(&self, out: &mut impl Out) {
        self.0.put(out);
    }

    fn take(from: &mut Bytes<'_>) -> Option<Added<T>> {
        if from.rest.is_empty() {
            return Some(Added(T::MISSING));
        }
        T::take(from).map(Added)
    }

    fn references(&self, visit: &mut dyn FnMut(Kind, u64)) {
        self.0.references(visit);
    }
}

/// A list, preceded by its length.
impl<T: Field> Field for Vec<T> {
    fn put(&self, out: &mut impl Out) {
        (self.len() as u32).put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Bytes<'_>) -> Option<Vec<T>> {
        let len = u32::take(from)? as usize;
        // Each element takes at least one byte, so a wrong length does not lead to a long list.
        if len > from.rest.len() {
            return None;
        }
        (0..len).map(|_| T::take(from)).collect()
    }

    fn references(&self, visit: &mut dyn FnMut(Kind, u64)) {
        self.iter().for_each(|value| value.references(visit));
    }
}

/// A list, preceded by its length in one byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortList<T>(pub Vec<T>);

impl<T: Field> Field for ShortList<T> {
    fn put(&self, out: &mut impl Out) {
        (self.0.len() as u8).put(out);
        self.0.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Bytes<'_>) -> Option<ShortList<T>> {
        let len = from.byte()?;
        (0..len).map(|_| T::take(from)).collect::<Option<_>>().map(ShortList)
    }

    fn references(&self, visit: &mut dyn FnMut(Kind, u64)) {
        self.0.references(visit);
    }
}

/// A mapping from local to global numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mappings {
    /// The global numbers for local numbers from 0 on.
    Dense(Vec<u64>),
    /// Pairs of local and global numbers.
    Sparse(Vec<(u64, u64)>),
}

impl Field for Mappings {
    fn put(&self, out: &mut impl Out) {
        match self {
            Mappings::Dense(global) => {
                (global.len() as u64).put(out);
                0_u8.put(out);
                global.iter().for_each(|number| number.put(out));
            }
            Mappings::Sparse(pairs) => {
                (pairs.len() as u64).put(out);
                1_u8.put(out);
                for (local, global) in pairs {
                    local.put(out);
                    global.put(out);
                }
            }
        }
    }

    fn take(from: &mut Bytes<'_>) -> Option<Mappings> {
        let len = u64::take(from)?;
        let is_dense = from.byte()? == 0;
        // Each element takes at least one byte, so a wrong length does not lead to a long list.
        if len > from.rest.len() as u64 {
            return None;
        }
        Some(if is_dense {
            Mappings::Dense((0..len).map(|_| u64::take(from)).collect::<Option<_>>()?)
        } else {
            let mut pair = || Some((u64::take(from)?, u64::take(from)?));
            Mappings::Sparse((0..len).map(|_| pair()).collect::<Option<_>>()?)
        })
    }
}

/// A metric's value with its type: a 64-bit number, whose meaning depends on the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricValue {
    /// The number of the type.
    pub value_type: u8,
    /// The bits of the value.
    pub bits: u64,
}

impl Field for MetricValue {
    fn put(&self, out: &mut impl Out) {
        self.value_type.put(out);
        self.bits.put(out);
    }

    fn take(from: &mut Bytes<'_>) -> Option<MetricValue> {
        Some(MetricValue { value_type: Field::take(from)?, bits: Field::take(from)? })
    }
}

/// Turns a row `Name(number): Kind` into a type for references to definitions of this kind.
macro_rules! references {
    ($($Name:ident($Number:ty): $Kind:ident)*) => { $(
        /// A reference; undefined if all bits are set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name(pub $Number);

        impl $Name {
            /// The undefined reference.
            pub const UNDEFINED: $Name = $Name(<$Number>::MAX);
        }

        impl Default for $Name {
            fn default() -> $Name {
                $Name::UNDEFINED
            }
        }

        impl Field for $Name {
            const MAX_BYTES: usize = <$Number>::MAX_BYTES;

            fn put(&self, out: &mut impl Out) {
                self.0.put(out);
            }

            fn take(from: &mut Bytes<'_>) -> Option<$Name> {
                Field::take(from).map($Name)
            }

            fn references(&self, visit: &mut dyn FnMut(Kind, u64)) {
                if *self != $Name::UNDEFINED {
                    visit(Kind::$Kind, self.0.into());
                }
            }
        }
    )* };
}

/// The kinds of definitions. Communicators and inter-communicators share their numbers, and so do metric classes and
/// instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A text.
    String,
    /// An attribute of events.
    Attribute,
    /// A node of the system tree.
    SystemTreeNode,
    /// A process.
    LocationGroup,
    /// A thread, or a stream of a device.
    Location,
    /// A region of code.
    Region,
    /// A group.
    Group,
    /// A metric of a class.
    MetricMember,
    /// A class of metrics.
    Metric,
    /// A communicator.
    Comm,
    /// A parameter.
    Parameter,
    /// A window of remote memory access.
    RmaWin,
    /// A place in source code.
    SourceCodeLocation,
    /// A calling context.
    CallingContext,
    /// An interrupt generator.
    InterruptGenerator,
    /// A call path.
    Callpath,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::String => "string",
            Kind::Attribute => "attribute",
            Kind::SystemTreeNode => "system tree node",
            Kind::LocationGroup => "location group",
            Kind::Location => "location",
            Kind::Region => "region",
            Kind::Group => "group",
            Kind::MetricMember => "metric member",
            Kind::Metric => "metric",
            Kind::Comm => "communicator",
            Kind::Parameter => "parameter",
            Kind::RmaWin => "RMA window",
            Kind::SourceCodeLocation => "source code location",
            Kind::CallingContext => "calling context",
            Kind::InterruptGenerator => "interrupt generator",
            Kind::Callpath => "call path",
        })
    }
}

references! {
    StringRef(u32): String
    AttributeRef(u32): Attribute
    SystemTreeNodeRef(u32): SystemTreeNode
    LocationGroupRef(u32): LocationGroup
    LocationRef(u64): Location
    RegionRef(u32): Region
    GroupRef(u32): Group
    MetricMemberRef(u32): MetricMember
    MetricRef(u32): Metric
    CommRef(u32): Comm
    ParameterRef(u32): Parameter
    RmaWinRef(u32): RmaWin
    SourceCodeLocationRef(u32): SourceCodeLocation
    CallingContextRef(u32): CallingContext
    InterruptGeneratorRef(u32): InterruptGenerator
    CallpathRef(u32): Callpath
}

/// A value with its type, for attributes and properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TypedValue {
    /// `OTF2_TYPE_UINT64`.
    Uint64(u64),
    /// `OTF2_TYPE_INT64`.
    Int64(i64),
    /// `OTF2_TYPE_UINT8`.
    Uint8(u8),
    /// `OTF2_TYPE_STRING`.
    String(StringRef),
    /// `OTF2_TYPE_LOCATION`.
    Location(LocationRef),
    /// Another type, by number: a reference, or a number that is only skipped.
    Other(u8, u64),
}

impl TypedValue {
    /// The number of `OTF2_TYPE_UINT8`.
    pub const UINT8: u8 = 1;
    /// The number of `OTF2_TYPE_UINT64`.
    pub const UINT64: u8 = 4;
    /// The number of `OTF2_TYPE_INT64`.
    pub const INT64: u8 = 8;
    /// The number of `OTF2_TYPE_STRING`.
    pub const STRING: u8 = 11;
    /// The number of `OTF2_TYPE_LOCATION`.
    pub const LOCATION: u8 = 13;

    /// The number of the type.
    pub fn type_number(self) -> u8 {
        match self {
            TypedValue::Uint8(_) => TypedValue::UINT8,
            TypedValue::Uint64(_) => TypedValue::UINT64,
            TypedValue::Int64(_) => TypedValue::INT64,
            TypedValue::String(_) => TypedValue::STRING,
            TypedValue::Location(_) => TypedValue::LOCATION,
            TypedValue::Other(number, _) => number,
        }
    }

    /// Appends the value without its type.
    pub fn put_value(&self, out: &mut impl Out) {
        match self {
            TypedValue::Uint8(value) => value.put(out),
            TypedValue::Uint64(value) => value.put(out),
            TypedValue::Int64(value) => value.put(out),
            TypedValue::String(value) => value.put(out),
            TypedValue::Location(value) => value.put(out),
            TypedValue::Other(_, value) => value.put(out),
        }
    }
}

impl Field for TypedValue {
    fn put(&self, out: &mut impl Out) {
        self.type_number().put(out);
        self.put_value(out);
    }

    fn take(from: &mut Bytes<'_>) -> Option<TypedValue> {
        let number = from.byte()?;
        Some(match number {
            TypedValue::UINT8 => TypedValue::Uint8(from.byte()?),
            TypedValue::UINT64 => TypedValue::Uint64(u64::take(from)?),
            TypedValue::INT64 => TypedValue::Int64(i64::take(from)?),
            TypedValue::STRING => TypedValue::String(Field::take(from)?),
            TypedValue::LOCATION => TypedValue::Location(Field::take(from)?),
            // INT8, UINT16, INT16, FLOAT and DOUBLE have a fixed width.
            5 => TypedValue::Other(number, from.number(1)?),
            2 | 6 => TypedValue::Other(number, from.number(2)?),
            9 => TypedValue::Other(number, from.number(4)?),
            10 => TypedValue::Other(number, from.number(8)?),
            _ => TypedValue::Other(number, u64::take(from)?),
        })
    }

    fn references(&self, visit: &mut dyn FnMut(Kind, u64)) {
        match self {
            TypedValue::String(value) => value.references(visit),
            TypedValue::Location(value) => value.references(visit),
            TypedValue::Other(number, value) => {
                if let Some(kind) = referred_kind(*number)
                    && *value != u64::MAX
                {
                    visit(kind, *value);
                }
            }
            _ => {}
        }
    }
}

/// The kind of definition to which values of a type refer (`OTF2_Type`), other than strings and locations.
fn referred_kind(value_type: u8) -> Option<Kind> {
    Some(match value_type {
        12 => Kind::Attribute,
        14 => Kind::Region,
        15 => Kind::Group,
        16 => Kind::Metric,
        17 => Kind::Comm,
        18 => Kind::Parameter,
        19 => Kind::RmaWin,
        20 => Kind::SourceCodeLocation,
        21 => Kind::CallingContext,
        22 => Kind::InterruptGenerator,
        25 => Kind::LocationGroup,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Field + PartialEq + std::fmt::Debug>(value: T, bytes: &[u8]) {
        let mut out = Vec::new();
        value.put(&mut out);
        assert_eq!(out, bytes);
        let mut from = Bytes { rest: bytes, big_endian: false };
        assert_eq!(T::take(&mut from), Some(value));
        assert_eq!(from.rest, [0; 0]);
    }

    #[test]
    fn numbers_take_the_bytes_that_the_format_says() {
        check(0_u32, &[0]);
        check(0x0102_u32, &[2, 2, 1]);
        check(u32::MAX, &[0xff]);
        check(u64::MAX, &[0xff]);
        check(u64::from(u32::MAX), &[4, 0xff, 0xff, 0xff, 0xff]);
        check(-2_i64, &[8, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        check(Full(1), &[1, 0, 0, 0, 0, 0, 0, 0]);
        check("omp".to_owned(), b"omp\0");
        check(vec![7_u64, 0], &[1, 2, 1, 7, 0]);
    }

    #[test]
    fn other_writers_numbers_are_read() {
        let mut from = Bytes { rest: &[4, 0, 0, 1, 2, 0xff, 9], big_endian: true };
        assert_eq!(u32::take(&mut from), Some(0x0102));
        assert_eq!(i64::take(&mut from), Some(-1));
        assert_eq!(u64::take(&mut from), None, "nine bytes are no number");
    }
}
