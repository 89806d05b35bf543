//! Buffers in which records are assembled.

/// A destination for bytes.
pub trait Out {
    /// Appends the first `len` bytes of `bytes`. A store of fixed width is cheaper than a copy of variable length.
    fn store<const N: usize>(&mut self, bytes: [u8; N], len: usize);
    /// Appends all of `bytes`.
    fn store_all(&mut self, bytes: &[u8]);
}

impl Out for Vec<u8> {
    #[inline]
    fn store<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        // Stores the full width, and cuts the rest off.
        let start = self.len();
        self.extend_from_slice(&bytes);
        self.truncate(start + len);
    }

    fn store_all(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Bytes beyond the capacity, for stores that are wider than the appended data.
const SPARE_BYTES: usize = 16;

/// A buffer of fixed capacity (0 by default). The caller must make sure that there is room.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
}

impl Buffer {
    /// A buffer for this many bytes. Pages that are never written take no memory.
    pub fn new(capacity: usize) -> Buffer {
        Buffer { bytes: vec![0; capacity + SPARE_BYTES].into(), len: 0 }
    }

    #[inline]
    /// Number of appended bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer contains no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all bytes; the capacity is preserved.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends zeros until the length is `len`.
    pub fn fill(&mut self, len: usize) {
        self.bytes[self.len..len].fill(0);
        self.len = len;
    }

    #[inline]
    /// The appended bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    /// The appended bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Out for Buffer {
    #[inline]
    fn store<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        self.bytes[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += len;
    }

    #[inline]
    fn store_all(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}
