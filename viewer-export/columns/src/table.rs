//! A table of one process: collects rows, and writes them to the file in row groups.

use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::cells::{Buffer, Kind};
use crate::schema::{Row, SCHEMA_VERSION, TableSchema};
use crate::share::Share;

/// Number of rows per row group. DuckDB processes this many at once per thread.
const GROUP_ROWS: usize = 1 << 17;

/// A table of one process.
pub(crate) struct Table<R> {
    folder: PathBuf,
    share: Share,
    columns: Vec<Buffer>,
    rows: usize,
    /// The number of the next row group, and whether it belongs to the share.
    group: usize,
    is_ours: bool,
    file: Option<SerializedFileWriter<File>>,
    error: Option<io::Error>,
    row: PhantomData<fn(R)>,
}

impl<R: Row> Table<R> {
    /// A table, whose file is created in `folder` when there are rows. Only the rows of this share are written.
    pub(crate) fn new(folder: PathBuf, share: Share) -> Table<R> {
        Table {
            folder,
            share,
            group: 0,
            is_ours: share.has(0),
            columns: R::SCHEMA.columns.iter().map(|column| Buffer::new(column.kind)).collect(),
            rows: 0,
            file: None,
            error: None,
            row: PhantomData,
        }
    }

    /// Adds a row. An error is kept for [`Table::finish`].
    #[inline]
    pub(crate) fn push(&mut self, row: R) {
        if self.is_ours {
            row.push(&mut self.columns);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS {
            self.end_group();
        }
    }

    #[inline(never)]
    fn end_group(&mut self) {
        let result = match self.is_ours {
            true => self.write_group(),
            false => Ok(()),
        };
        self.rows = 0;
        self.group += 1;
        self.is_ours = self.share.has(self.group);
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    fn write_group(&mut self) -> io::Result<()> {
        let file = file(&mut self.file, &self.folder, self.share, &R::SCHEMA)?;
        let mut group = file.next_row_group().map_err(io_error)?;
        let mut buffers = self.columns.iter_mut();
        while let Some(mut column) = group.next_column().map_err(io_error)? {
            if let Some(buffer) = buffers.next() {
                buffer.write(&mut column).map_err(io_error)?;
            }
            column.close().map_err(io_error)?;
        }
        group.close().map_err(io_error)?;
        Ok(())
    }

    /// Whether writing has failed.
    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Finishes the table. If `is_needed`, creates the file even without rows.
    ///
    /// # Errors
    /// The first write error.
    pub(crate) fn finish(mut self, is_needed: bool) -> io::Result<()> {
        if self.rows > 0 {
            self.end_group();
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        if is_needed {
            file(&mut self.file, &self.folder, self.share, &R::SCHEMA)?;
        }
        match self.file {
            Some(file) => file.close().map(drop).map_err(io_error),
            None => Ok(()),
        }
    }
}

/// The file of a table, which is created for the first rows.
fn file<'f>(
    known: &'f mut Option<SerializedFileWriter<File>>,
    folder: &Path,
    share: Share,
    table: &TableSchema,
) -> io::Result<&'f mut SerializedFileWriter<File>> {
    match known {
        Some(file) => Ok(file),
        None => Ok(known.insert(create(folder, share, table)?)),
    }
}

fn create(folder: &Path, share: Share, table: &TableSchema) -> io::Result<SerializedFileWriter<File>> {
    fs::create_dir_all(folder)?;
    let file = File::create(folder.join(share.file_name()))?;
    let schema = schema(table).map_err(io_error)?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties(table))).map_err(io_error)
}

fn schema(table: &TableSchema) -> Result<Type, ParquetError> {
    let columns = table.columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Int32 => (Physical::INT32, None),
            Kind::Int64 => (Physical::INT64, None),
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::Double => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match column.is_nullable {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    Type::group_type_builder(table.name).with_fields(columns.collect::<Result<_, _>>()?).build()
}

/// Words are encoded as dictionaries, and growing numbers as differences.
fn properties(table: &TableSchema) -> WriterProperties {
    let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(format!("omptrace {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![
            pair("omptrace.table", table.name.to_owned()),
            pair("omptrace.schema_version", SCHEMA_VERSION.to_string()),
        ]));
    let times = table.columns.iter().filter(|column| column.kind == Kind::Int64);
    times
        .fold(properties, |properties, column| {
            let column = column.name;
            properties
                .set_column_dictionary_enabled(column.into(), false)
                .set_column_encoding(column.into(), Encoding::DELTA_BINARY_PACKED)
        })
        .build()
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => io::Error::other(error),
        error => io::Error::other(error),
    }
}
