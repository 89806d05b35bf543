//! The output of an export: buffered, compressed if requested, with errors kept until the end.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use flate2::{Compression, GzBuilder, write::GzEncoder};

use crate::writer::buffers::{BUFFER_BYTES, Writer, new_buffer};
use crate::writer::turns::Turns;

/// Number of buffers that may wait for the writing thread.
const BUFFERS_UNDER_WAY: usize = 2;

/// A buffer in front of a writer. Keeps the first error, and drops all later data.
pub(crate) struct Output {
    buffer: Vec<u8>,
    target: Target,
    bytes: ByteCount,
    error: Option<io::Error>,
}

/// What writes the data.
enum Target {
    Here(Writer),
    Behind(Behind),
    /// The share of a file, by number.
    InTurns(Arc<Turns>, u32),
}

impl Output {
    /// Writes into `writer`.
    pub(crate) fn new(writer: Writer) -> Output {
        Output::to(Target::Here(writer))
    }

    /// Lets a separate thread write (and compress) the data for `writer`. If no thread can be created, writes it on
    /// this thread.
    pub(crate) fn behind(writer: Writer) -> Output {
        Output::to(match Behind::new(writer) {
            Ok(behind) => Target::Behind(behind),
            Err(writer) => Target::Here(writer),
        })
    }

    /// Writes `share` of a file, and counts its bytes in `bytes`.
    pub(crate) fn in_turns(turns: Arc<Turns>, share: u32, bytes: ByteCount) -> Output {
        Output { bytes, ..Output::to(Target::InTurns(turns, share)) }
    }

    fn to(target: Target) -> Output {
        Output { buffer: new_buffer(), target, bytes: ByteCount::default(), error: None }
    }

    /// The number of bytes written, before compression.
    pub(crate) fn bytes(&self) -> ByteCount {
        self.bytes.clone()
    }

    /// The buffer to append to. Call [`Output::written`] occasionally.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the buffer if it is full enough.
    #[inline]
    pub(crate) fn written(&mut self) {
        if self.buffer.len() >= BUFFER_BYTES {
            self.drain();
        }
    }

    fn drain(&mut self) {
        if self.error.is_none() {
            self.bytes.add(self.buffer.len());
            let written = match &mut self.target {
                Target::Here(writer) => writer.write_all(&self.buffer),
                Target::Behind(behind) => behind.hand_over(&mut self.buffer),
                Target::InTurns(turns, share) => turns.hand_over(*share, &mut self.buffer),
            };
            self.error = written.err();
        }
        self.buffer.clear();
    }

    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Keeps the error in `result`, if it is the first.
    pub(crate) fn note_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Writes the remaining data. For a compressed file, this also writes the trailer.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.drain();
        match self.error {
            Some(error) => Err(error),
            None => match self.target {
                Target::Here(mut writer) => writer.flush(),
                Target::Behind(behind) => behind.finish(),
                // The owner of the file finishes it.
                Target::InTurns(..) => Ok(()),
            },
        }
    }
}

/// Compresses data for `target`, without a modification time, so that equal exports are equal files.
pub(crate) fn gzip(target: Writer) -> Writer {
    Box::new(Gzip(Some(GzBuilder::new().mtime(0).write(target, Compression::default()))))
}

/// A gzip stream that is completed by `flush`, which [`Output::finish`] calls exactly once.
struct Gzip(Option<GzEncoder<Writer>>);

impl Write for Gzip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(encoder) => encoder.write(bytes),
            None => Err(io::Error::other("the gzip stream is already complete")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.take() {
            Some(encoder) => encoder.finish()?.flush(),
            None => Ok(()),
        }
    }
}

/// A thread that writes the buffers it receives.
struct Behind {
    full: SyncSender<Vec<u8>>,
    /// Written buffers, for reuse.
    spare: Receiver<Vec<u8>>,
    /// `None` if the thread has ended and its error was reported.
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Behind {
    /// Returns the writer if no thread can be created.
    fn new(writer: Writer) -> Result<Behind, Writer> {
        let (full, of_thread) = sync_channel::<Vec<u8>>(BUFFERS_UNDER_WAY);
        let (to_spare, spare) = channel();
        let (to_thread, writers) = channel::<Writer>();
        let write = move || {
            for mut writer in writers {
                for mut buffer in &of_thread {
                    writer.write_all(&buffer)?;
                    buffer.clear();
                    // Fails if the export has ended, so that no buffers are needed.
                    let _ = to_spare.send(buffer);
                }
                writer.flush()?;
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("omptrace-output".into());
        let Ok(thread) = thread.spawn(write) else {
            return Err(writer);
        };
        match to_thread.send(writer) {
            Ok(()) => Ok(Behind { full, spare, thread: Some(thread) }),
            Err(SendError(writer)) => Err(writer),
        }
    }

    /// Passes the contents of `buffer` on, and replaces it by an empty one.
    fn hand_over(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let next = self.spare.try_recv().unwrap_or_else(|_| new_buffer());
        let full = std::mem::replace(buffer, next);
        match self.full.send(full) {
            Ok(()) => Ok(()),
            // The thread ends early only after an error.
            Err(_) => ended(self.thread.take()),
        }
    }

    /// Waits until everything is written.
    fn finish(self) -> io::Result<()> {
        drop(self.full);
        ended(self.thread)
    }
}

/// The result of writing.
fn ended(thread: Option<JoinHandle<io::Result<()>>>) -> io::Result<()> {
    match thread.map(JoinHandle::join) {
        Some(Ok(result)) => result,
        Some(Err(_)) | None => Err(io::Error::other("the writer thread has ended")),
    }
}

/// A count of the bytes written so far.
#[derive(Clone, Default)]
pub(crate) struct ByteCount(Arc<AtomicU64>);

impl ByteCount {
    pub(crate) fn add(&self, bytes: usize) {
        // Relaxed: see `ByteCount::count`.
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        // Relaxed: the count orders nothing, and it is usually read by the writing thread itself.
        self.0.load(Ordering::Relaxed)
    }
}
