//! Text that is written to many sections at once and read section by section, in limited memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::writer::output::Output;

/// Number of bytes kept in memory; the rest is written to an unnamed temporary file.
const MEMORY_BYTES: usize = 64 << 20;
/// Number of bytes per write.
const PIECE_BYTES: usize = 256 << 10;

/// Sections to which text is appended in any order.
#[derive(Default)]
pub(crate) struct Sections {
    sections: Vec<Section>,
    in_memory: usize,
    spilled: Option<File>,
    spilled_bytes: u64,
}

#[derive(Default)]
struct Section {
    /// The section's newest text.
    text: Vec<u8>,
    /// Offset and length of its earlier parts in the temporary file.
    parts: Vec<(u64, u64)>,
}

impl Sections {
    /// Adds an empty section at the end, and returns its number.
    pub(crate) fn add(&mut self) -> usize {
        self.sections.push(Section::default());
        self.sections.len() - 1
    }

    /// Appends what `write` writes to a section.
    ///
    /// # Errors
    /// Errors of the temporary file.
    pub(crate) fn append(&mut self, section: usize, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let text = &mut self.sections[section].text;
        let before = text.len();
        write(text);
        self.in_memory += text.len() - before;
        if self.in_memory > MEMORY_BYTES { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.spilled.is_none() {
            self.spilled = Some(tempfile::tempfile()?);
        }
        let Some(file) = &mut self.spilled else {
            return Ok(());
        };
        for section in self.sections.iter_mut().filter(|section| !section.text.is_empty()) {
            file.write_all(&section.text)?;
            section.parts.push((self.spilled_bytes, section.text.len() as u64));
            self.spilled_bytes += section.text.len() as u64;
            section.text.clear();
        }
        self.in_memory = 0;
        Ok(())
    }

    /// Writes all sections, one after another.
    ///
    /// # Errors
    /// Errors of the temporary file.
    pub(crate) fn finish(mut self, out: &mut Output) -> io::Result<()> {
        for section in self.sections {
            for (offset, len) in section.parts {
                let Some(file) = &mut self.spilled else { break };
                file.seek(SeekFrom::Start(offset))?;
                let mut part = file.take(len);
                while part.by_ref().take(PIECE_BYTES as u64).read_to_end(out.buffer())? > 0 {
                    out.written();
                }
            }
            for piece in section.text.chunks(PIECE_BYTES) {
                out.buffer().extend_from_slice(piece);
                out.written();
            }
        }
        Ok(())
    }
}
