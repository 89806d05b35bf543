//! Reads files of an archive record by record, with one chunk in memory at a time.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use omptrace_trace_format::open_regular;

use crate::encoding::{Bytes, Field, Full};
use crate::records::{
    BIG_ENDIAN, CHUNK_HEADER, END_OF_CHUNK, END_OF_FILE, LITTLE_ENDIAN, TIMESTAMP, is_singleton,
};

/// The reference library refuses chunks of other sizes. The maximum limits the memory needed per file.
const CHUNK_BYTES: std::ops::RangeInclusive<u64> = (256 << 10)..=(16 << 20);

/// Why a file cannot be read, or not to its end.
#[derive(Debug)]
pub(super) struct Damage(pub(super) String);

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The contents of an archive's anchor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) event_chunk_bytes: usize,
    pub(super) definition_chunk_bytes: usize,
    pub(super) locations: u64,
    pub(super) definitions: u64,
}

impl Anchor {
    /// Reads the file `path`.
    pub(super) fn read(path: &Path) -> Result<Anchor, Damage> {
        let bytes = read(path).map_err(|error| damage(path, 0, &error.to_string()))?;
        let bad = |what: &str| damage(path, 0, what);
        let [CHUNK_HEADER, order, ref rest @ ..] = bytes[..] else {
            return Err(bad("is no anchor"));
        };
        let mut from = Bytes { rest, big_endian: order == BIG_ENDIAN };
        if from.text().as_deref() != Some("OTF2") {
            return Err(bad("is no anchor"));
        }
        let mut anchor = || {
            let (_format, trace_format) = (from.byte()?, from.byte()?);
            from.slice(3)?;
            let (Full(events), Full(definitions)) = (Field::take(&mut from)?, Field::take(&mut from)?);
            let (substrate, compression) = (from.byte()?, from.byte()?);
            let (Full(locations), Full(count)) = (Field::take(&mut from)?, Field::take(&mut from)?);
            Some((trace_format, events, definitions, substrate, compression, locations, count))
        };
        let (trace_format, events, definitions, substrate, compression, locations, count) =
            anchor().ok_or_else(|| bad("ends too early"))?;
        if trace_format > 2 || substrate != 1 || compression > 1 {
            return Err(bad("is of a kind that can be read only with the reference library"));
        }
        if !CHUNK_BYTES.contains(&events) || !CHUNK_BYTES.contains(&definitions) {
            return Err(bad("states no valid chunk size"));
        }
        if bytes[bytes.len().saturating_sub(3)..] != [END_OF_FILE, 1, END_OF_CHUNK] {
            return Err(bad("has no end"));
        }
        Ok(Anchor {
            event_chunk_bytes: events as usize,
            definition_chunk_bytes: definitions as usize,
            locations,
            definitions: count,
        })
    }
}

fn damage(path: &Path, offset: u64, what: &str) -> Damage {
    Damage(format!("{} {what} (at byte {offset})", path.display()))
}

/// The records of a chunked file.
pub(super) struct Records {
    file: File,
    path: PathBuf,
    chunk_bytes: usize,
    chunk: Vec<u8>,
    /// The offset of the chunk in the file.
    start: u64,
    at: usize,
    big_endian: bool,
    has_times: bool,
    /// The numbers of the first and last event in this chunk, according to its header.
    pub(super) stated: (u64, u64),
}

impl Records {
    /// Opens a file. `has_times`: the file contains events rather than definitions.
    pub(super) fn open(path: &Path, chunk_bytes: usize, has_times: bool) -> io::Result<Records> {
        Ok(Records {
            file: open_regular(path)?,
            path: path.to_owned(),
            chunk_bytes,
            chunk: Vec::new(),
            start: 0,
            at: 0,
            big_endian: false,
            has_times,
            stated: (1, 0),
        })
    }

    fn damage(&self, what: &str) -> Damage {
        damage(&self.path, self.start + self.at as u64, what)
    }

    fn load(&mut self) -> Result<(), Damage> {
        self.start += self.chunk.len() as u64;
        self.at = 0;
        self.chunk.resize(self.chunk_bytes, 0);
        let mut len = 0;
        while len < self.chunk.len() {
            match self.file.read_at(&mut self.chunk[len..], self.start + len as u64) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.damage(&error.to_string())),
            }
        }
        self.chunk.truncate(len);
        let [CHUNK_HEADER, order @ (LITTLE_ENDIAN | BIG_ENDIAN), ref rest @ ..] = self.chunk[..] else {
            return Err(self.damage("has no chunk where one should begin"));
        };
        let mut from = Bytes { rest, big_endian: order == BIG_ENDIAN };
        let numbers = Full::take(&mut from).zip(Full::take(&mut from));
        let Some((Full(first), Full(last))) = numbers else {
            return Err(self.damage("ends in the header of a chunk"));
        };
        self.big_endian = from.big_endian;
        self.stated = (first, last);
        self.at = self.chunk.len() - from.rest.len();
        Ok(())
    }

    /// Reads the next record. `parse` converts its number and fields. `None` at the end of the file.
    pub(super) fn next<T>(
        &mut self,
        parse: impl FnOnce(u8, &mut Bytes<'_>) -> Option<T>,
    ) -> Result<Option<T>, Damage> {
        if self.chunk.is_empty() {
            self.load()?;
        }
        while self.chunk.get(self.at) == Some(&END_OF_CHUNK) {
            if self.chunk.len() < self.chunk_bytes {
                return Err(self.damage("ends in a chunk"));
            }
            self.load()?;
        }
        let mut from = Bytes { rest: &self.chunk[self.at..], big_endian: self.big_endian };
        match from.byte() {
            None => Err(self.damage("ends without its last record")),
            Some(END_OF_FILE) => Ok(None),
            Some(id) => {
                let fields = self.fields(id, &mut from);
                let parsed = fields.and_then(|mut fields| parse(id, &mut fields));
                let rest = from.rest.len();
                let parsed = parsed.ok_or_else(|| self.damage("has a record without an end"))?;
                self.at = self.chunk.len() - rest;
                Ok(Some(parsed))
            }
        }
    }

    /// Removes the fields of a record with this `id` from the front.
    fn fields<'b>(&self, id: u8, from: &mut Bytes<'b>) -> Option<Bytes<'b>> {
        let len = if self.has_times && id == TIMESTAMP {
            8
        } else if self.has_times && is_singleton(id) {
            // The first byte is the length of the number itself.
            match usize::from(*from.rest.first()?) {
                0xff => 1,
                len => 1 + len,
            }
        } else {
            match from.byte()? {
                0xff => Full::take(from).and_then(|Full(len)| usize::try_from(len).ok())?,
                len => len.into(),
            }
        };
        let big_endian = from.big_endian;
        from.slice(len).map(|rest| Bytes { rest, big_endian })
    }
}
