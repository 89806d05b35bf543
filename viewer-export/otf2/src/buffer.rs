//! Where the bytes of records are put together.

/// Takes bytes one after another.
pub trait Out {
    /// Appends the first `len` of `bytes`. A store of fixed width costs less than a copy of variable length.
    fn store<const N: usize>(&mut self, bytes: [u8; N], len: usize);
    /// Appends all of `bytes`.
    fn store_all(&mut self, bytes: &[u8]);
}

impl Out for Vec<u8> {
    #[inline]
    fn store<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        // A store of fixed width, of which the rest is cut off again.
        let start = self.len();
        self.extend_from_slice(&bytes);
        self.truncate(start + len);
    }

    fn store_all(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Bytes after the capacity, for stores that are wider than what they append.
const SPARE_BYTES: usize = 16;

/// Bytes of a capacity that does not grow: who appends knows that there is room. By default there is none.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
}

impl Buffer {
    /// One for this many bytes. Those that are never written take no memory.
    pub fn new(capacity: usize) -> Buffer {
        Buffer { bytes: vec![0; capacity + SPARE_BYTES].into(), len: 0 }
    }

    #[inline]
    /// Bytes that were appended.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all bytes; the capacity stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends zeros up to a length.
    pub fn fill(&mut self, len: usize) {
        self.bytes[self.len..len].fill(0);
        self.len = len;
    }

    #[inline]
    /// The bytes that were appended.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    /// The bytes that were appended.
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
