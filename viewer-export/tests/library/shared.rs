//! The output of an export, kept in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Bytes that outlive the export that writes them.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    /// The bytes that were written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("one thread").clone()
    }
}
