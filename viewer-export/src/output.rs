//! Where an export's bytes go: buffered, compressed where asked for, errors kept until the end.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use flate2::{Compression, GzBuilder, write::GzEncoder};

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// Buffers that wait for the thread that writes.
const BUFFERS_UNDER_WAY: usize = 2;

/// The receiving end of an export.
type Target = Box<dyn Write + Send>;

/// A buffer in front of a writer. The first error is kept, and everything after it dropped.
pub(crate) struct Output {
    buffer: Vec<u8>,
    target: Target,
    error: Option<io::Error>,
}

impl Output {
    pub(crate) fn new(target: Target) -> Output {
        Output {
            buffer: Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 8),
            target,
            error: None,
        }
    }

    /// The buffer, to append to; call [`Output::written`] from time to time.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the buffer out when it is full enough.
    #[inline]
    pub(crate) fn written(&mut self) {
        if self.buffer.len() >= BUFFER_BYTES {
            self.drain();
        }
    }

    fn drain(&mut self) {
        if self.error.is_none() {
            self.error = self.target.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Keeps `result`'s error, if it is the first.
    pub(crate) fn note_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Writes the rest. For a compressed file this also writes the trailer.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.drain();
        match self.error {
            Some(error) => Err(error),
            None => self.target.flush(),
        }
    }
}

/// Compresses what is written into `target`, without a modification time: equal exports are equal files.
pub(crate) fn gzip(target: Target) -> Target {
    Box::new(Gzip(Some(
        GzBuilder::new()
            .mtime(0)
            .write(target, Compression::default()),
    )))
}

/// A gzip stream that is completed by `flush`, which [`Output::finish`] calls exactly once.
struct Gzip(Option<GzEncoder<Target>>);

impl Write for Gzip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(encoder) => encoder.write(bytes),
            None => Err(io::Error::other("the gzip stream is complete")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.take() {
            Some(encoder) => encoder.finish()?.flush(),
            None => Ok(()),
        }
    }
}

/// Lets a thread of its own write, or compress, what is written into `target`; where there can be none, does it here.
pub(crate) fn behind(target: Target) -> Target {
    let (full, of_writer) = sync_channel::<Vec<u8>>(BUFFERS_UNDER_WAY);
    let (to_spare, spare) = channel();
    let (to_writer, targets) = channel::<Target>();
    let write = move || {
        for mut target in targets {
            for mut buffer in &of_writer {
                target.write_all(&buffer)?;
                buffer.clear();
                // Nobody fills it again where the export has ended.
                let _ = to_spare.send(buffer);
            }
            target.flush()?;
        }
        Ok(())
    };
    let writer = thread::Builder::new().name("omptrace-output".into());
    let Ok(writer) = writer.spawn(write) else {
        return target;
    };
    match to_writer.send(target) {
        Ok(()) => Box::new(Behind {
            full: Some(full),
            spare,
            writer: Some(writer),
        }),
        Err(SendError(target)) => target,
    }
}

/// Hands buffers to a thread; completed by `flush`, which [`Output::finish`] calls exactly once.
struct Behind {
    full: Option<SyncSender<Vec<u8>>>,
    spare: Receiver<Vec<u8>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl Behind {
    /// Waits for all to be written.
    fn finish(&mut self) -> io::Result<()> {
        self.full = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => Err(io::Error::other("the thread that writes has ended")),
        }
    }
}

impl Write for Behind {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = self.spare.try_recv().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        match &self.full {
            Some(full) if full.send(buffer).is_ok() => Ok(bytes.len()),
            // It ends early only by an error.
            _ => self.finish().map(|()| 0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.finish()
    }
}

/// How many bytes were written so far.
#[derive(Clone, Default)]
pub(crate) struct ByteCount(Arc<AtomicU64>);

impl ByteCount {
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: the count orders nothing, and who asks has usually written them.
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts what is written into `target`.
pub(crate) fn counted(target: Target) -> (Target, ByteCount) {
    let count = ByteCount::default();
    (Box::new(Counted(target, count.clone())), count)
}

struct Counted(Target, ByteCount);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        // Relaxed: see `ByteCount::count`.
        self.1.0.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
