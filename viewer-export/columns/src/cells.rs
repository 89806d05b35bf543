//! The values of cells, and how they are written to the file.

use bytes::Bytes;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed 32-bit integer.
    Int32,
    /// A signed 64-bit integer.
    Int64,
    /// A 64-bit floating-point number.
    Double,
    /// True or false.
    Bool,
    /// UTF-8 text.
    Text,
}

impl Kind {
    /// The type's name in the documentation: the SQL name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Int32 => "INTEGER",
            Kind::Int64 => "BIGINT",
            Kind::Double => "DOUBLE",
            Kind::Bool => "BOOLEAN",
            Kind::Text => "VARCHAR",
        }
    }
}

/// A word from a fixed set, with few distinct values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) &'static str);

/// The values of a column in the next row group.
#[derive(Debug)]
pub(crate) struct Buffer {
    values: Values,
    /// By row: 1 if it has a value, 0 if it is NULL. Empty if the column is not nullable.
    present: Vec<i16>,
}

#[derive(Debug)]
enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Buffer {
    pub(crate) fn new(kind: Kind) -> Buffer {
        Buffer {
            values: match kind {
                Kind::Int32 => Values::Int32(Vec::new()),
                Kind::Int64 => Values::Int64(Vec::new()),
                Kind::Double => Values::Double(Vec::new()),
                Kind::Bool => Values::Bool(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
            },
            present: Vec::new(),
        }
    }

    /// Writes the values, and clears the buffer.
    pub(crate) fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = &self.present;
        match &mut self.values {
            Values::Int32(values) => write::<Int32Type>(column, values, present),
            Values::Int64(values) => write::<Int64Type>(column, values, present),
            Values::Double(values) => write::<DoubleType>(column, values, present),
            Values::Bool(values) => write::<BoolType>(column, values, present),
            Values::Text(values) => write::<ByteArrayType>(column, values, present),
        }?;
        self.present.clear();
        Ok(())
    }
}

fn write<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    present: &[i16],
) -> Result<(), ParquetError> {
    let present = (!present.is_empty()).then_some(present);
    column.typed::<T>().write_batch(values, present, None)?;
    values.clear();
    Ok(())
}

/// A type of values in a column.
pub(crate) trait Cell {
    const KIND: Kind;
    const IS_NULLABLE: bool = false;
    /// Appends the value to the column.
    fn push(self, column: &mut Buffer);
}

/// Turns `type => Variant, value` into an implementation of [`Cell`].
macro_rules! cells {
    ($($type:ty => $kind:ident, |$value:ident| $made:expr;)*) => {
        $(impl Cell for $type {
            const KIND: Kind = Kind::$kind;

            #[inline]
            fn push(self, column: &mut Buffer) {
                let $value = self;
                match &mut column.values {
                    Values::$kind(values) => values.push($made),
                    _ => unreachable!("the column was made for this type"),
                }
            }
        })*
    };
}

cells! {
    i32 => Int32, |value| value;
    i64 => Int64, |value| value;
    f64 => Double, |value| value;
    bool => Bool, |value| value;
    &str => Text, |value| ByteArray::from(value);
    Word => Text, |value| ByteArray::from(Bytes::from_static(value.0.as_bytes()));
    ByteArray => Text, |value| value;
}

impl<C: Cell> Cell for Option<C> {
    const KIND: Kind = C::KIND;
    const IS_NULLABLE: bool = true;

    #[inline]
    fn push(self, column: &mut Buffer) {
        column.present.push(i16::from(self.is_some()));
        if let Some(value) = self {
            value.push(column);
        }
    }
}
