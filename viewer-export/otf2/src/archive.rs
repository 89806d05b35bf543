//! The directory of an archive.
//!
//! ```text
//! traces.otf2        anchor: what the archive is made of; written last, so without it nothing is taken for an archive
//! traces.def         global definitions
//! traces.marker      what the reader should know
//! traces/N.evt       events of location N
//! traces/N.def       definitions of location N: none
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

/// Bytes of a chunk of definitions, as the reference library has it.
const DEFINITION_CHUNK_BYTES: usize = 4 << 20;
/// Bytes of a chunk of events, and where there are many locations: readers keep two chunks of each in memory, and we one.
const EVENT_CHUNK_BYTES: usize = 1 << 20;
const MANY_LOCATIONS: usize = 64;
const SMALL_EVENT_CHUNK_BYTES: usize = 256 << 10;

/// An archive that is being written.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    event_chunk_bytes: usize,
}

/// The content of the anchor.
#[derive(Debug)]
pub struct Anchor<'a> {
    /// Locations that were written.
    pub locations: u64,
    /// Global definitions that were written.
    pub definitions: u64,
    /// Properties of the archive: names and values.
    pub properties: &'a [(String, String)],
    /// Not 0; equal archives have equal numbers.
    pub trace_id: u64,
}

impl Archive {
    /// Begins an archive in `folder`, which is there and empty, of about `locations` locations.
    ///
    /// # Errors
    /// The directory cannot be written to.
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

    /// The path of a stream's events, until all threads have their numbers.
    pub fn stream_events(&self, stream: u32) -> PathBuf {
        self.path(&format!("traces/stream-{stream}.evt"))
    }

    /// Makes a stream the location of that number: its events are complete.
    ///
    /// # Errors
    /// The file cannot have its name.
    pub fn number_stream(&self, stream: u32, location: u32) -> io::Result<()> {
        fs::rename(self.stream_events(stream), self.events(location))
    }

    /// Bytes of a chunk of events.
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

    /// Writes the anchor: the archive is complete.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self, anchor: &Anchor<'_>) -> io::Result<()> {
        let mut out = vec![CHUNK_HEADER, LITTLE_ENDIAN];
        out.extend(b"OTF2\0");
        // Formats of the anchor and of the trace; the version of OTF2 whose records these are.
        out.extend([3, 2, 3, 0, 0]);
        Full(self.event_chunk_bytes as u64).put(&mut out);
        Full(DEFINITION_CHUNK_BYTES as u64).put(&mut out);
        // Files of a file system, not compressed.
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

/// A file of definitions that is being written.
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

    /// The next definition.
    pub fn put<R: Record>(&mut self, definition: &R) {
        self.record.clear();
        put_record(&mut self.record, definition);
        self.chunks.room(self.record.len());
        self.chunks.bytes().store_all(&self.record);
        self.count += 1;
    }

    /// Writes the rest. Gives the number of definitions.
    ///
    /// # Errors
    /// The first of all that was written.
    pub fn finish(mut self) -> io::Result<u64> {
        self.chunks.finish()?;
        Ok(self.count)
    }
}
