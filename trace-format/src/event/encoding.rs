//! Encoding of a row as words: what all rows have in common. The bits are drawn in the [parent module](super).

use crate::event::field::{Numbers, Words};
use crate::event::predict::{SLOTS, State};

/// Maximum number of words of a compact event.
pub const MAX_COMPACT_WORDS: usize = 1 + FLAG_BITS as usize;
/// Bits of an event's time: a chunk must end before an event is 2^38 ticks after the chunk's base.
pub const TICK_BITS: u32 = 38;
/// The prefix of wide events.
pub(super) const WIDE: u64 = 63;
/// Maximum number of words of a wide event after its first two.
pub const MAX_WIDE_WORDS: usize = (1 << 20) - 1;

/// Bits for the head arguments. For an endpoint and a kind, the endpoint takes the lowest bits.
pub(super) const SUB_BITS: u32 = 6;
pub(super) const ENDPOINT_BITS: u32 = 2;
pub(super) const FLAG_BITS: u32 = 7;
pub(super) const SUB_SHIFT: u32 = 6;
pub(super) const SLOT_SHIFT: u32 = 12;
pub(super) const FLAG_SHIFT: u32 = 19;
pub(crate) const TICK_SHIFT: u32 = 64 - TICK_BITS;
pub(super) const WIDE_LEN_SHIFT: u32 = 6;

// Checks the drawing in `event/mod.rs`, and that there is room for the sub-kind, all code slots and the length of a
// wide event.
const _: () = assert!(FLAG_SHIFT + FLAG_BITS == TICK_SHIFT && TICK_SHIFT + TICK_BITS == 64);
const _: () = assert!(SUB_BITS == SLOT_SHIFT - SUB_SHIFT && WIDE < 1 << SUB_SHIFT);
const _: () = assert!(SLOTS == 1 << (FLAG_SHIFT - SLOT_SHIFT));
const _: () = assert!(MAX_WIDE_WORDS + 1 == 1 << (TICK_SHIFT - WIDE_LEN_SHIFT));
const _: () = assert!(MAX_COMPACT_WORDS == 8);

/// Words that follow the head of a compact event: one per flag that is set.
#[inline]
pub(crate) fn compact_extra_words(head: u64) -> usize {
    // Most events have no further word, and comparing with 0 is faster than counting bits.
    match head >> FLAG_SHIFT & ((1 << FLAG_BITS) - 1) {
        0 => 0,
        flags => flags.count_ones() as usize,
    }
}

/// Number of words that follow `head`, in either encoding.
#[inline]
pub(crate) fn extra_words(head: u64) -> usize {
    if is_wide_prefix(head) {
        1 + (head >> WIDE_LEN_SHIFT) as usize % (1 << 20)
    } else {
        compact_extra_words(head)
    }
}

/// Whether `head` is the first word of a wide event.
pub(crate) fn is_wide_prefix(head: u64) -> bool {
    head & 63 == WIDE
}

/// Splits `words` into the words of each event, without decoding them. Stops at an event that is cut off.
pub(crate) fn split(mut words: &[u64]) -> impl Iterator<Item = &[u64]> {
    std::iter::from_fn(move || {
        let len = 1 + extra_words(*words.first()?);
        let (event, rest) = words.split_at_checked(len)?;
        words = rest;
        Some(event)
    })
}

/// A row of the table that has a compact encoding.
pub trait CompactRow: Copy {
    /// The row's kind in the head of its events, 1 to 62.
    const KIND: u8;
    /// Whether the head arguments fit into the sub bits; if not, the event needs [`CompactRow::encode_wide`].
    fn fits(&self) -> bool;
    /// Whether the row has a code address.
    const HAS_CODE: bool;
    /// Whether the event's code address differs from the one in its slot; if so, its module may be new.
    fn has_new_code(&self, state: &State) -> bool;
    /// The event's code address; 0 where the row has none.
    fn code(&self) -> u64;
    /// Stores the head and the unpredicted arguments, and returns the number of words. `ticks` must be below 2^38 and
    /// [`CompactRow::fits`] true; other values are truncated. `KNOWN_CODE` asserts that [`CompactRow::has_new_code`]
    /// returned false.
    fn encode<const KNOWN_CODE: bool>(
        self,
        state: &mut State,
        ticks: u64,
        out: &mut [u64; MAX_COMPACT_WORDS],
    ) -> usize;
    /// Whether every argument, including the code address, is as predicted, so that only the head is stored.
    fn is_predicted(&self, state: &State) -> bool;
    /// The event's only word, if [`CompactRow::is_predicted`] is true. Updates the state like [`CompactRow::encode`].
    fn encode_predicted(self, state: &mut State, ticks: u64) -> u64;
    /// Whether every argument except the code address is as predicted.
    fn is_predicted_but_for_code(&self, state: &State) -> bool;
    /// The event's two words, if [`CompactRow::is_predicted_but_for_code`] and [`CompactRow::has_new_code`] are true.
    /// Updates the state like [`CompactRow::encode`].
    fn encode_new_code(self, state: &mut State, ticks: u64) -> [u64; 2];
    /// Stores the event in its wide form, which holds any value. Returns `None` and leaves `state` unchanged if `out`
    /// is too short; [`MAX_COMPACT_WORDS`] + 4 words suffice for any row.
    fn encode_wide(self, state: &mut State, ticks: u64, out: &mut [u64]) -> Option<usize>;
}

/// A row of the table that has only the wide encoding.
pub trait WideRow {
    /// Stores the event; `None` if it does not fit into `out`.
    fn encode(&self, ticks: u64, out: &mut [u64]) -> Option<usize>;
    /// The event's code address; 0 where the row has none.
    fn code(&self) -> u64;
    /// The row's arguments for the schema.
    fn arguments() -> Vec<ArgumentSchema>
    where
        Self: Sized;
}

/// An argument in the description of the table that each trace carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentSchema {
    /// The argument's name: OMPT's, or ours.
    pub name: &'static str,
    /// The argument's type, named as in `Field::TYPE`.
    pub type_name: &'static str,
    /// The predictor of the argument's group; `None` for an argument in the head's sub bits, and in a wide row.
    pub predictor: Option<&'static str>,
    /// The number of the argument's group: arguments of one group share a word, or the sub bits.
    pub group: usize,
}

/// Appends the arguments of one group.
pub(super) fn push_group(
    arguments: &mut Vec<ArgumentSchema>,
    predictor: Option<&'static str>,
    members: &[(&'static str, &'static str)],
) {
    let group = arguments.last().map_or(0, |argument| argument.group + 1);
    arguments.extend(members.iter().map(|(name, type_name)| ArgumentSchema {
        name: argument_name(name),
        type_name,
        predictor,
        group,
    }));
}

/// A row of the table in the description that each trace carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSchema {
    /// The callback's number; events of ours have numbers from 256 on.
    pub number: u16,
    /// The row's kind, 0 for a wide row.
    pub kind: u8,
    /// The event's name: OMPT's without `ompt_callback_`, or ours with `omptrace_`.
    pub name: &'static str,
    /// The event's meaning, with its source.
    pub doc: &'static str,
    /// Arguments in the head's sub bits, then (for compact rows) each group, in order.
    pub arguments: Vec<ArgumentSchema>,
}

/// The specification's spelling of an argument whose name is a Rust keyword.
pub(super) fn argument_name(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// Stores a wide event whose arguments are written by `put`.
pub(super) fn wide(out: &mut [u64], ticks: u64, tag: u64, put: impl FnOnce(&mut Words<'_>)) -> Option<usize> {
    let (front, rest) = out.split_at_mut_checked(2)?;
    let mut words = Words::new(rest);
    put(&mut words);
    let len = words.finish().filter(|len| *len <= MAX_WIDE_WORDS)?;
    front[0] = WIDE | (len as u64) << WIDE_LEN_SHIFT | ticks << TICK_SHIFT;
    front[1] = tag;
    Some(2 + len)
}

/// Stores `row` in its compact form if it fits, else in its wide form.
pub fn encode_compact<R: CompactRow>(
    row: R,
    state: &mut State,
    ticks: u64,
    out: &mut [u64],
) -> Option<usize> {
    if !row.fits() {
        return row.encode_wide(state, ticks, out);
    }
    let out = out.first_chunk_mut()?;
    if row.is_predicted(state) {
        out[0] = row.encode_predicted(state, ticks);
        return Some(1);
    }
    Some(row.encode::<false>(state, ticks, out))
}

/// Why words could not be decoded as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The event ends beyond the last word.
    Truncated,
    /// A compact event of a newer format; the rest of the chunk cannot be decoded.
    UnknownKind(u8),
    /// A wide event with invalid arguments; it can be skipped.
    BadArguments {
        /// Words to skip.
        len: usize,
    },
}

/// An event whose number this reader does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownEvent<'a> {
    /// The event's number.
    pub number: u16,
    /// Its arguments' words.
    pub words: Numbers<'a>,
}
