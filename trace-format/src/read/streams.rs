//! The streams of a trace, assembled from the chunks that were found.

use std::ops::Range;

use crate::read::chunks::{Stored, is_same_chunk};
use crate::read::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::read::limits::Limits;

/// The chunks of one thread or device queue.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The stream's number, from 1.
    pub number: u32,
    pub(crate) copies: Range<usize>,
    chunks: usize,
    missing: u64,
}

impl Stream {
    /// Number of chunks found.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Number of chunks missing before or between those found.
    pub fn missing(&self) -> u64 {
        self.missing
    }
}

/// The streams of `copies`, which are sorted by [`Stored::order`]. `gaps` is the diagnostic for missing chunks.
pub(crate) fn streams_of(
    copies: &[Stored],
    gaps: DiagnosticKind,
    limits: &Limits,
    diagnostics: &mut Diagnostics,
) -> Vec<Stream> {
    let mut streams = Vec::new();
    let (mut start, mut left_out) = (0, 0);
    for of_stream in copies.chunk_by(|a, b| a.chunk().stream == b.chunk().stream) {
        let range = start..start + of_stream.len();
        start = range.end;
        if streams.len() < limits.max_streams {
            streams.push(stream_of(of_stream, range, gaps, diagnostics));
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        diagnostics.push(Diagnostic::new(DiagnosticKind::LimitReached).count(left_out));
    }
    streams
}

/// The stream whose copies are `all[range]`.
fn stream_of(
    all: &[Stored],
    range: Range<usize>,
    gaps: DiagnosticKind,
    diagnostics: &mut Diagnostics,
) -> Stream {
    let number = all[0].chunk().stream;
    let mut stream = Stream { number, copies: range, chunks: 0, missing: 0 };
    let (mut next, mut twice) = (0, 0);
    for copies in all.chunk_by(is_same_chunk) {
        let sequence = copies[0].chunk().sequence;
        let gap = u64::from(sequence) - next;
        if gap > 0 {
            let missing = Diagnostic::new(gaps).count(gap);
            diagnostics.push(missing.chunk(number, next as u32));
            stream.missing += gap;
        }
        next = u64::from(sequence) + 1;
        stream.chunks += 1;
        let in_file = |stored: &&Stored| matches!(stored, Stored::File(_));
        twice += copies.iter().filter(in_file).count().saturating_sub(1);
    }
    if twice > 0 {
        let twice = Diagnostic::new(DiagnosticKind::ChunkTwice).count(twice as u64);
        diagnostics.push(Diagnostic { stream: Some(number), ..twice });
    }
    stream
}
