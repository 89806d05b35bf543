//! The choice of what is done with an input, where it could be this or that.

/// Choices that an input makes by its check sum. So no byte of it has a second meaning, and inputs of the corpus keep
/// theirs.
#[derive(Debug)]
pub struct Choices(u32);

impl Choices {
    /// The choices of `data`.
    pub fn of(data: &[u8]) -> Choices {
        Choices(crc32fast::hash(data))
    }

    /// One of a number of choices. All together are at most 2^32.
    pub fn below(&mut self, many: u32) -> u32 {
        let chosen = self.0 % many;
        self.0 /= many;
        chosen
    }

    /// One of these; they are a power of two, so that the check sum's bits are as even as before.
    pub fn one_of<T: Copy, const MANY: usize>(&mut self, these: [T; MANY]) -> T {
        const { assert!(MANY.is_power_of_two()) };
        these[self.below(MANY as u32) as usize]
    }
}
