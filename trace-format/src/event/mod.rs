//! Events: **one row per event** in the table (`event/table.rs`), from which `event/codegen.rs` derives the encoder,
//! decoder, names, schema, `dump` and test generators.
//!
//! Times and arguments are stored as 64-bit words, in one of two encodings.
//!
//! # Compact
//!
//! For frequent events. One word, plus one word for each group of arguments that was not predicted
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
//! `flags` has one bit per group of arguments, the first group highest; the bit is set if the group's word follows. A
//! group is one argument of 64 bits or two of 32. `sub` holds the arguments that distinguish variants of the event: one
//! argument of up to 6 bits, or an endpoint (2 bits) and a kind (4 bits).
//!
//! # Wide
//!
//! For all other rows, and for compact rows with a value that does not fit its bits. Kind 63 is the prefix:
//!
//! ```text
//!  word 0   ticks since chunk's base (38 bits) | words that follow word 1 (20 bits) | 63
//!  word 1   kind of the compact row, or 0 (bits 32..38) | number of the event (bits 0..16)
//!  word 2.. the arguments in the table's order, none predicted
//! ```
//!
//! Readers skip events whose number they do not know. A compact row in wide form updates the predictors as its compact
//! form would. Adding a compact row, or changing a predictor, requires a new version of the format; adding a wide row
//! does not.
//!
//! The number of an event is that of its callback (OpenMP 5.2, 19.4.2.4, `ompt_callbacks_t`). Numbers from 256 on are
//! for our own events, and for callbacks that OpenMP no longer has.

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
/// See [`DecodeError`]; the caller can skip a bad event only if its length is known.
pub fn decode(words: &[u64], state: &mut State) -> Result<Decoded, DecodeError> {
    let mut event = Event::default();
    let len = decode_into(&mut event, words, state)?;
    let ticks = words[0] >> TICK_SHIFT;
    Ok(Decoded { event, ticks, len })
}

/// A placeholder to decode an event into: the end of an unknown thread.
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
    /// Number of words that it took.
    pub len: usize,
}
