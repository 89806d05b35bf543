//! The trace file: its name, and blocks appended by any thread without a lock.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use omptrace_trace_format::block::{
    self, BLOCK_HEADER_BYTES, Codec, FILE_HEADER_BYTES, FILE_MAGIC, FORMAT_VERSION, FileHeader,
};
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::writer;

use crate::clock;
use crate::spool::Chunk;
use crate::system;

/// The trace file.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: OwnedFd,
    session: u64,
    /// Where the next block goes: whoever adds its length owns the bytes before.
    end: AtomicU64,
}

/// Names tried when one is taken.
const MOST_NAMES: u32 = 10_000;

impl Output {
    /// Creates the file named `wanted`, or the first free name after it: `.2` and so on before the extension.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn create(wanted: &Path, session: u64) -> io::Result<Output> {
        let mut number = 1;
        let (path, file) = loop {
            let path = numbered(wanted, number);
            match system::create_new(&path) {
                Ok(file) => break (path, file),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_NAMES =>
                {
                    number += 1
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Output {
            path,
            file,
            session,
            end: AtomicU64::new(FILE_HEADER_BYTES as u64),
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True where the file still has its name.
    pub(crate) fn is_in_place(&self) -> bool {
        system::is_named(&self.file, &self.path)
    }

    /// Writes the first page, which names the spool; an empty name is none.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn write_header(&self, pid: u32, spool: &[u8]) -> io::Result<()> {
        let header = FileHeader {
            magic: FILE_MAGIC,
            version: FORMAT_VERSION,
            session: self.session,
            pid,
            chunk_bytes: 0,
            path: spool.to_vec(),
        };
        system::write_all_at(&self.file, &[&header.encode()], 0)
    }

    /// Appends a metadata block.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn write_metadata(&self, object: &serde_json::Value) -> io::Result<()> {
        self.append(&[&writer::metadata_block(
            self.session,
            clock::pair().0,
            object,
        )])
    }

    /// Appends a chunk: packed where there is a packer, else as it is. Returns the bytes written.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn write_chunk(&self, chunk: Chunk, packer: Option<&mut Packer>) -> io::Result<u64> {
        let words = chunk.published();
        let header = chunk.header();
        let (stream, sequence) = header.place();
        let place = block::Chunk {
            stream,
            sequence,
            clock: header.clock(),
            first_id: header.newest_id(),
        };
        // SAFETY: any eight bytes of a word are valid bytes, and the words live as long as the slice.
        let raw =
            unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
        let (codec, events, payload) = match packer.and_then(|packer| packer.pack(words)) {
            Some(packed) => (Codec::COLUMNS, packed.events, packed.payload),
            None => (Codec::RAW, 0, raw),
        };
        let header = writer::chunk_header(
            self.session,
            &place,
            words.len() as u32,
            events,
            codec,
            payload,
        );
        self.append(&[&header, payload])?;
        Ok((BLOCK_HEADER_BYTES + payload.len()) as u64)
    }

    fn append(&self, parts: &[&[u8]]) -> io::Result<()> {
        let len = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        // Relaxed: the number is all that is shared; the file system orders the rest.
        let offset = self
            .end
            .fetch_add(len.next_multiple_of(8), Ordering::Relaxed);
        system::write_all_at(&self.file, parts, offset)
    }
}

/// `app.omptrace`, `app.2.omptrace`, `app.3.omptrace`, ...
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_path_buf();
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// What the `%` of a file name's pattern stand for.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    /// `%e`: the program.
    pub(crate) program: &'a str,
    /// `%h`: the host.
    pub(crate) host: &'a str,
    /// `%p`: the process.
    pub(crate) pid: u32,
    /// `%r`: the MPI rank, 0 where there is none.
    pub(crate) rank: Option<u32>,
    /// `%t`: the start, `20260131T235959`.
    pub(crate) start: &'a str,
}

impl Names<'_> {
    /// The file name of `pattern`. A `%` before any other letter stays as it is.
    pub(crate) fn expand(&self, pattern: &str) -> String {
        let mut name = String::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            match (c, rest.clone().next()) {
                ('%', Some('e')) => name.push_str(self.program),
                ('%', Some('h')) => name.push_str(self.host),
                ('%', Some('p')) => name.push_str(&self.pid.to_string()),
                ('%', Some('r')) => name.push_str(&self.rank.unwrap_or(0).to_string()),
                ('%', Some('t')) => name.push_str(self.start),
                ('%', Some('%')) => name.push('%'),
                (c, _) => {
                    name.push(c);
                    continue;
                }
            }
            rest.next();
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_expand() {
        let names = Names {
            program: "app",
            host: "node7",
            pid: 42,
            rank: Some(3),
            start: "20260131T235959",
        };
        assert_eq!(names.expand("%e.%p.omptrace"), "app.42.omptrace");
        assert_eq!(
            names.expand("out/%h-%r-%t-100%%-%x%"),
            "out/node7-3-20260131T235959-100%-%x%"
        );
    }

    #[test]
    fn a_taken_name_gets_a_number_before_its_extension() {
        let folder = std::env::temp_dir().join(format!("omptrace-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let names: Vec<_> = (0..3)
            .map(|_| {
                Output::create(&folder.join("a.b.omptrace"), 1)
                    .unwrap()
                    .path()
                    .file_name()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(names, ["a.b.omptrace", "a.b.2.omptrace", "a.b.3.omptrace"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
