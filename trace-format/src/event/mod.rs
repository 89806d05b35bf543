//! Events: **one row per event** in the table (`event/table.rs`). Encoder, decoder, names, schema, `dump` and test generators
//! come from it (`event/codegen.rs`).
//!
//! Times and arguments become 64-bit words. There are two encodings.
//!
//! # Compact
//!
//! For the rows that programs are full of. One word, and a further word for each argument that was not predicted
//! ([`crate::event::predict`]):
//!
//! ```text
//!  bit 63                        26 25      19 18       12 11     6 5     0
//!     +----------------------------+----------+-----------+--------+-------+
//!     | ticks since chunk's base   | flags    | code slot | sub    | kind  |
//!     +----------------------------+----------+-----------+--------+-------+
//!       38                           7          7           6        6
//! ```
//!
//! `flags` has one bit per group of arguments, the first group highest: set where the group's word follows.
//! A group is one argument of 64 bits or two of 32. `sub` holds the arguments that distinguish variants of the event.
//! That is one of up to 6 bits, or an endpoint (2 bits) and a kind (4 bits).
//!
//! # Wide
//!
//! For all other rows, and for a compact row with a value that does not fit its bits. Kind 63 is the prefix:
//!
//! ```text
//!  word 0   ticks since chunk's base (38 bits) | words that follow word 1 (20 bits) | 63
//!  word 1   kind of the compact row, or 0 (bits 32..38) | number of the event (bits 0..16)
//!  word 2.. the arguments in the table's order, none predicted
//! ```
//!
//! Readers skip events whose number they do not know. A compact row in wide form updates the predictors as its
//! compact form would. A new compact row, or a changed predictor, is a new version of the format; a new wide row is
//! not.
//!
//! The number of an event is that of its callback (OpenMP 5.2, 19.4.2.4, `ompt_callbacks_t`). From 256 on are ours, and
//! those of callbacks that OpenMP no longer has.

#[macro_use]
mod codegen;
mod encoding;
pub mod field;
pub mod predict;
pub mod stack;
mod table;

use crate::event::field::Id;
use crate::event::predict::State;

pub use encoding::*;
pub(crate) use encoding::{TICK_SHIFT, extra_words, is_wide_prefix, split};
pub(crate) use table::decode_into;
pub use table::*;

/// Decodes the event at the start of `words`.
///
/// # Errors
/// See [`DecodeError`]; the caller can skip a bad event only where its length is known.
pub fn decode(words: &[u64], state: &mut State) -> Result<Decoded, DecodeError> {
    let mut event = Event::default();
    let len = decode_into(&mut event, words, state)?;
    let ticks = words[0] >> TICK_SHIFT;
    Ok(Decoded { event, ticks, len })
}

/// A placeholder where an event is going to be decoded: the end of no known thread.
impl Default for Event<'_> {
    fn default() -> Self {
        Event::ThreadEnd(ThreadEnd { thread_data: Id::UNSET })
    }
}

/// An event of the stream, and where it ends.
#[derive(Debug)]
pub struct Decoded {
    /// The event.
    pub event: Event<'static>,
    /// Its time in ticks since the chunk's base.
    pub ticks: u64,
    /// Words that it took.
    pub len: usize,
}
