//! Flaws of a trace, and what they mean to a user.
//!
//! A damaged trace is read as far as possible; each flaw is reported as one [`Diagnostic`], so no loss is silent.

use std::collections::BTreeSet;
use std::fmt;

use crate::metadata::Found;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is missing.
    Note,
    /// Something may be missing or less exact.
    Warning,
    /// Events are missing.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    fn named(name: &str) -> Option<Severity> {
        let mut all = [Severity::Note, Severity::Warning, Severity::Error].into_iter();
        all.find(|severity| severity.name() == name)
    }
}

macro_rules! kinds {
    // Each row is a kind: its severity, its machine-readable name, and its message (`#` is replaced with the count).
    ($($Kind:ident $severity:ident $name:literal $text:literal;)*) => {
        /// A kind of flaw, described by [`DiagnosticKind::text`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the table's text is the documentation")]
        #[non_exhaustive]
        pub enum DiagnosticKind { $(#[doc = $text] $Kind,)* }

        impl DiagnosticKind {
            const ALL: &[DiagnosticKind] = &[$(DiagnosticKind::$Kind),*];

            /// The kind's machine-readable name.
            pub fn name(self) -> &'static str {
                match self { $(DiagnosticKind::$Kind => $name,)* }
            }

            /// The severity of flaws of this kind.
            pub fn severity(self) -> Severity {
                match self { $(DiagnosticKind::$Kind => Severity::$severity,)* }
            }

            /// The message; `#` is replaced with the count.
            pub fn text(self) -> &'static str {
                match self { $(DiagnosticKind::$Kind => $text,)* }
            }
        }
    };
}

kinds! {
    FileHeaderDamaged Warning "file_header_damaged"
        "the file header, which identifies the recording session and the spool, is damaged; the session of the first valid block was used, and the spool was expected next to the trace file";
    BlockHeaderDamaged Note "block_header_damaged"
        "a block's header is damaged; the copy of this header in the index was used";
    BytesSkipped Error "bytes_skipped"
        "# bytes do not form a block and were skipped; events may be missing";
    Hole Warning "hole"
        "# bytes were reserved for a chunk but never written, and the spool that may have contained the chunk no longer exists";
    HoleOfSpool Note "hole_of_spool"
        "# bytes were reserved for a chunk but not written, because the process is still running, or ended before it wrote the chunk; the spool contains the chunk";
    BlockCut Error "block_cut"
        "the file ends # bytes before the end of this block";
    OtherSession Note "other_session"
        "# blocks belong to another recording session and were ignored";
    UnknownBlock Note "unknown_block"
        "# blocks of a kind unknown to this version of omptrace were ignored";
    IndexMissing Warning "index_missing"
        "the trace is finished (sealed) but has no index, so the end of the file may be missing";
    IndexDamaged Warning "index_damaged"
        "the index is damaged; blocks were found by scanning the file";
    SummaryDamaged Warning "summary_damaged"
        "the summary (the stored results of the analysis) is damaged; omptrace stats reads the events instead";
    CheckpointDamaged Warning "checkpoint_damaged"
        "# checkpoints are damaged; to read a time window after a damaged checkpoint, readers start at an earlier checkpoint";
    OtherBlockDamaged Warning "other_block_damaged"
        "# blocks of a kind unknown to this version of omptrace are damaged";
    BytesBetween Warning "bytes_between"
        "# bytes between blocks do not form a block; readers skip these bytes";
    SpoolUnchecked Note "spool_unchecked"
        "# chunks are only in the spool, where damage cannot be detected; omptrace recover adds these chunks to the trace";
    MetadataDamaged Warning "metadata_damaged"
        "a metadata block is damaged and was ignored";
    MetadataKey Warning "metadata_key"
        "# metadata keys have values that this version of omptrace cannot interpret";
    MetadataMissing Warning "metadata_missing"
        "the trace contains no metadata, so the program, machine and runtime are unknown";
    ChunkDamaged Error "chunk_damaged"
        "a chunk is damaged and was skipped";
    ChunkCopyDamaged Note "chunk_copy_damaged"
        "a copy of a chunk is damaged; another copy was used";
    ChunkCodec Error "chunk_codec"
        "a chunk is stored in a form unknown to this version of omptrace, and was skipped";
    ChunkCut Error "chunk_cut"
        "the last # words (of 8 bytes) of a chunk are not events and were skipped";
    EventsDamaged Error "events_damaged"
        "# events have inconsistent arguments and were skipped";
    ChunksMissing Error "chunks_missing"
        "# consecutive chunks of this stream, from the given chunk on, are missing";
    ChunksOverwritten Note "chunks_overwritten"
        "# consecutive chunks of this stream, from the given chunk on, were overwritten by newer chunks, because the trace was recorded in flight-recorder mode";
    ChunkTwice Note "chunk_twice"
        "# chunks are in the file more than once; each of these chunks was read only once";
    SpoolMissing Error "spool_missing"
        "the end of the session was not recorded, and the spool cannot be found or read, so the newest events of each stream are missing";
    SpoolDamaged Error "spool_damaged"
        "the spool's header is damaged or belongs to another session; the spool's chunks were ignored";
    SpoolChunkDamaged Error "spool_chunk_damaged"
        "# chunks of the spool have invalid headers and were ignored";
    EventsUnreported Error "events_unreported"
        "# events were lost while tracing, but the process ended before it recorded where these events were lost";
    SpoolMoved Note "spool_moved"
        "the spool was found next to the trace, not at the path in the trace's header";
    SpoolRecycled Note "spool_recycled"
        "a chunk of the running process changed while it was read; read the trace again to see the chunk's events";
    ClockMissing Warning "clock_missing"
        "the trace has no clock readings; one tick is assumed to be one nanosecond";
    ClockSkipped Warning "clock_skipped"
        "# clock readings contradict the other clock readings and were ignored";
    LimitReached Error "limit_reached"
        "the trace exceeds a limit of omptrace on the number or size of chunks, blocks, streams or metadata; # of them were left out";
    ReadFailed Error "read_failed"
        "reading the file failed";
    Suppressed Warning "suppressed"
        "# further diagnostics were left out";
    UnknownFlaw Warning "unknown_flaw"
        "the trace has a flaw of a kind unknown to this version of omptrace";
}

/// One flaw of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The kind of flaw.
    pub kind: DiagnosticKind,
    /// Byte offset in the file.
    pub offset: Option<u64>,
    /// The affected stream.
    pub stream: Option<u32>,
    /// The affected chunk of that stream.
    pub sequence: Option<u32>,
    /// The count; its meaning depends on the kind.
    pub count: u64,
    /// The flaw was found when the trace was sealed, and is not visible in the sealed file. The offset refers to the
    /// file before it was sealed.
    pub while_sealing: bool,
}

impl Diagnostic {
    /// A diagnostic with count 1 and no place.
    pub fn new(kind: DiagnosticKind) -> Diagnostic {
        Diagnostic {
            severity: kind.severity(),
            kind,
            offset: None,
            stream: None,
            sequence: None,
            count: 1,
            while_sealing: false,
        }
    }

    /// A flaw that was recorded when the trace was sealed.
    pub(crate) fn of_sealing(found: &Found) -> Diagnostic {
        let mut kinds = DiagnosticKind::ALL.iter().copied();
        let kind = kinds.find(|kind| kind.name() == found.kind);
        let kind = kind.unwrap_or(DiagnosticKind::UnknownFlaw);
        Diagnostic {
            severity: Severity::named(&found.severity).unwrap_or(kind.severity()),
            kind,
            offset: found.offset,
            stream: found.stream,
            sequence: found.sequence,
            count: found.count,
            while_sealing: true,
        }
    }

    /// The form in which sealing records the flaw.
    pub(crate) fn found(&self) -> Found {
        Found {
            severity: self.severity.name().to_owned(),
            kind: self.kind.name().to_owned(),
            text: self.words(),
            offset: self.offset,
            stream: self.stream,
            sequence: self.sequence,
            count: self.count,
        }
    }

    fn words(&self) -> String {
        self.kind.text().replace('#', &self.count.to_string())
    }

    /// Returns the diagnostic with an offset.
    pub fn at(self, offset: u64) -> Diagnostic {
        Diagnostic { offset: Some(offset), ..self }
    }

    /// Returns the diagnostic with a chunk.
    pub fn chunk(self, stream: u32, sequence: u32) -> Diagnostic {
        Diagnostic { stream: Some(stream), sequence: Some(sequence), ..self }
    }

    /// Returns the diagnostic with a count.
    pub fn count(self, count: u64) -> Diagnostic {
        Diagnostic { count, ..self }
    }
}

/// `error: a chunk is damaged and was skipped (stream 1, chunk 3, byte 8192)`
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.while_sealing {
            true => "found while finishing the trace: ",
            false => "",
        };
        write!(f, "{}: {when}{}", self.severity.name(), self.words())?;
        let places = [
            self.stream.map(|stream| format!("stream {stream}")),
            self.sequence.map(|sequence| format!("chunk {sequence}")),
            self.offset.map(|offset| format!("byte {offset}")),
        ];
        let places: Vec<String> = places.into_iter().flatten().collect();
        if !places.is_empty() {
            write!(f, " ({})", places.join(", "))?;
        }
        Ok(())
    }
}

const _: () = assert!(DiagnosticKind::ALL.len() <= u64::BITS as usize);

/// A list of diagnostics with a limit, and the number of those dropped.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    limit: usize,
    suppressed: u64,
    /// Bit set of the kinds in the list.
    kinds: u64,
}

impl Diagnostics {
    pub(crate) fn new(limit: usize) -> Diagnostics {
        Diagnostics { limit, ..Diagnostics::default() }
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let kind = 1 << diagnostic.kind as u32;
        // The first one of each kind is always kept, because the kind may forbid sealing the trace.
        if self.list.len() < self.limit || self.kinds & kind == 0 {
            self.kinds |= kind;
            self.list.push(diagnostic);
        } else {
            self.suppressed += 1;
        }
    }

    /// Reduces the severity of those that `is_harmless` selects to a note.
    pub(crate) fn soften(&mut self, is_harmless: impl Fn(&Diagnostic) -> bool) {
        let harmless = self.list.iter_mut().filter(|diagnostic| is_harmless(diagnostic));
        harmless.for_each(|diagnostic| diagnostic.severity = Severity::Note);
    }

    /// Adds the flaws found when the trace was sealed, except for those that were found again, such as gaps.
    pub(crate) fn add_of_sealing(&mut self, found: &[Found]) {
        // Another version may have used other words.
        let without_text = |found: Found| Found { text: String::new(), ..found };
        let seen = self.list.iter().map(Diagnostic::found).map(without_text);
        let seen: BTreeSet<Found> = seen.collect();
        let is_new = |found: &&Found| !seen.contains(&without_text((*found).clone()));
        for found in found.iter().filter(is_new) {
            self.push(Diagnostic::of_sealing(found));
        }
    }

    /// Removes and returns all diagnostics; the last one has the number of those dropped.
    pub(crate) fn take(&mut self) -> Vec<Diagnostic> {
        let mut list = std::mem::take(&mut self.list);
        let suppressed = std::mem::take(&mut self.suppressed);
        if suppressed > 0 {
            list.push(Diagnostic::new(DiagnosticKind::Suppressed).count(suppressed));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flaw_that_another_version_worded_otherwise_counts_once() {
        let flaw = Diagnostic::new(DiagnosticKind::Hole).at(8).count(3);
        let mut diagnostics = Diagnostics::new(10);
        diagnostics.push(flaw.clone());
        let other_words = Found { text: "3 bytes are a hole".to_owned(), ..flaw.found() };
        diagnostics.add_of_sealing(&[other_words]);
        assert_eq!(diagnostics.take(), [flaw]);
    }
}
