//! The directory of an archive.
//!
//! ```text
//! traces.otf2        anchor: the contents of the archive; written last, because without it a directory is not an archive
//! traces.def         global definitions
//! traces.marker      notes to the reader
//! traces/N.evt       events of location N
//! traces/N.def       definitions of location N, if it has any
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::buffer::Out;
use crate::chunks::Chunks;
use crate::encoding::{Field, Full};
use crate::records::{
    CHUNK_HEADER, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, LITTLE_ENDIAN, Record, put_record,
};

/// Bytes per chunk of definitions, as in the reference library.
const DEFINITION_CHUNK_BYTES: usize = 4 << 20;
/// Bytes per chunk of events; the second value is used if there are many locations. Readers keep two chunks of each
/// location in memory, and this writer keeps one.
const EVENT_CHUNK_BYTES: usize = 1 << 20;
const MANY_LOCATIONS: usize = 64;
const SMALL_EVENT_CHUNK_BYTES: usize = 256 << 10;

/// An archive to which data is being written.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    event_chunk_bytes: usize,
}

/// The contents of the anchor.
#[derive(Debug)]
pub struct Anchor<'a> {
    /// Number of locations written.
    pub locations: u64,
    /// Number of global definitions written.
    pub definitions: u64,
    /// Names and values of the archive's properties.
    pub properties: &'a [(String, String)],
    /// Must not be 0. Equal archives have equal ids.
    pub trace_id: u64,
}

impl Archive {
    /// Begins an archive in the existing, empty directory `folder`. `locations`: their approximate number.
    ///
    /// # Errors
    /// The directory is not writable.
    pub fn create(folder: &Path, locations: usize) -> io::Result<Archive> {
        fs::create_dir(folder.join("traces"))?;
        Ok(Archive {
            folder: folder.to_owned(),
            event_chunk_bytes: if locations > MANY_LOCATIONS {
                SMALL_EVENT_CHUNK_BYTES
            } else {
                EVENT_CHUNK_BYTES
            },
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The path of a location's events.
    pub fn events(&self, location: u32) -> PathBuf {
        self.path(&format!("traces/{location}.evt"))
    }

    /// The path of a stream's events before all threads have been numbered.
    pub fn stream_events(&self, stream: u32) -> PathBuf {
        self.path(&format!("traces/stream-{stream}.evt"))
    }

    /// Turns a stream, whose events are complete, into the location with this number.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub fn number_stream(&self, stream: u32, location: u32) -> io::Result<()> {
        fs::rename(self.stream_events(stream), self.events(location))
    }

    /// Bytes per chunk of events.
    pub fn event_chunk_bytes(&self) -> usize {
        self.event_chunk_bytes
    }

    /// The global definitions.
    pub fn global_definitions(&self) -> DefinitionFile {
        DefinitionFile::create(self.path("traces.def"))
    }

    /// The definitions of a location.
    pub fn local_definitions(&self, location: u32) -> DefinitionFile {
        DefinitionFile::create(self.path(&format!("traces/{location}.def")))
    }

    /// The markers.
    pub fn markers(&self) -> DefinitionFile {
        DefinitionFile::create(self.path("traces.marker"))
    }

    /// Writes the anchor, which completes the archive.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self, anchor: &Anchor<'_>) -> io::Result<()> {
        let mut out = vec![CHUNK_HEADER, LITTLE_ENDIAN];
        out.extend(b"OTF2\0");
        // Format versions of the anchor and of the trace, and the OTF2 version of the records.
        out.extend([3, 2, 3, 0, 0]);
        Full(self.event_chunk_bytes as u64).put(&mut out);
        Full(DEFINITION_CHUNK_BYTES as u64).put(&mut out);
        // Plain files, not compressed.
        out.extend([1, 1]);
        Full(anchor.locations).put(&mut out);
        Full(anchor.definitions).put(&mut out);
        let creator = concat!("omptrace ", env!("CARGO_PKG_VERSION"));
        for text in ["", creator, ""] {
            text.to_owned().put(&mut out);
        }
        out.extend((anchor.properties.len() as u32).to_le_bytes());
        for (name, value) in anchor.properties {
            name.put(&mut out);
            value.put(&mut out);
        }
        Full(anchor.trace_id).put(&mut out);
        // No snapshots, no thumbnails.
        out.extend([0; 8]);
        out.extend([END_OF_FILE, END_OF_BUFFER, END_OF_CHUNK]);
        fs::write(self.path("traces.otf2"), out)
    }
}

/// A file of definitions to which data is being written.
#[derive(Debug)]
pub struct DefinitionFile {
    chunks: Chunks,
    record: Vec<u8>,
    count: u64,
}

impl DefinitionFile {
    fn create(path: PathBuf) -> DefinitionFile {
        DefinitionFile { chunks: Chunks::create(path, DEFINITION_CHUNK_BYTES), record: Vec::new(), count: 0 }
    }

    /// Appends a definition.
    pub fn put<R: Record>(&mut self, definition: &R) {
        self.record.clear();
        put_record(&mut self.record, definition);
        self.chunks.room(self.record.len());
        self.chunks.bytes().store_all(&self.record);
        self.count += 1;
    }

    /// Writes the remaining data. Returns the number of definitions.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self) -> io::Result<u64> {
        self.chunks.finish()?;
        Ok(self.count)
    }
}
