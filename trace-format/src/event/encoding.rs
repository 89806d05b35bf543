//! How a row becomes words, whatever the row.

use crate::event::field::{Numbers, Words};
use crate::event::predict::{SLOTS, State};

/// The most words that a compact event takes.
pub const MAX_COMPACT_WORDS: usize = 1 + FLAG_BITS as usize;
/// Bits of an event's time: a chunk ends before its base lies 2^38 ticks back.
pub const TICK_BITS: u32 = 38;
/// The prefix of wide events.
pub(super) const WIDE: u64 = 63;
/// The most words that a wide event has behind its first two.
pub const MAX_WIDE_WORDS: usize = (1 << 20) - 1;

/// Bits for the head arguments, of which an endpoint in front of a kind takes the lowest.
pub(super) const SUB_BITS: u32 = 6;
pub(super) const ENDPOINT_BITS: u32 = 2;
pub(super) const FLAG_BITS: u32 = 7;
pub(super) const SUB_SHIFT: u32 = 6;
pub(super) const SLOT_SHIFT: u32 = 12;
pub(super) const FLAG_SHIFT: u32 = 19;
pub(crate) const TICK_SHIFT: u32 = 64 - TICK_BITS;
pub(super) const WIDE_LEN_SHIFT: u32 = 6;

// The picture in `event/mod.rs`, and room for the sub-kind, for every code slot, and for the length of a wide event.
const _: () = assert!(FLAG_SHIFT + FLAG_BITS == TICK_SHIFT && TICK_SHIFT + TICK_BITS == 64);
const _: () = assert!(SUB_BITS == SLOT_SHIFT - SUB_SHIFT && WIDE < 1 << SUB_SHIFT);
const _: () = assert!(SLOTS == 1 << (FLAG_SHIFT - SLOT_SHIFT));
const _: () = assert!(MAX_WIDE_WORDS + 1 == 1 << (TICK_SHIFT - WIDE_LEN_SHIFT));
const _: () = assert!(MAX_COMPACT_WORDS == 8);

/// Words that follow the head of a compact event: one per flag that is set.
#[inline]
pub(crate) fn compact_extra_words(head: u64) -> usize {
    // Mostly none, which is faster to check than to count.
    match head >> FLAG_SHIFT & ((1 << FLAG_BITS) - 1) {
        0 => 0,
        flags => flags.count_ones() as usize,
    }
}

/// Words that follow `head`, whichever its encoding is.
#[inline]
pub(crate) fn extra_words(head: u64) -> usize {
    if is_wide_prefix(head) {
        1 + (head >> WIDE_LEN_SHIFT) as usize % (1 << 20)
    } else {
        compact_extra_words(head)
    }
}

/// True of the first word of a wide event.
pub(crate) fn is_wide_prefix(head: u64) -> bool {
    head & 63 == WIDE
}

/// The words of each event in turn, up to one that is cut off. Nothing is decoded.
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
    /// True where the arguments in the head's sub bits fit; else only [`CompactRow::encode_wide`] will do.
    fn fits(&self) -> bool;
    /// Whether the row has a code address.
    const HAS_CODE: bool;
    /// True where the event's code address is not in its slot: its module may be new.
    fn has_new_code(&self, state: &State) -> bool;
    /// The event's code address; 0 where the row has none.
    fn code(&self) -> u64;
    /// Stores head and unpredicted arguments and returns the number of words. `ticks` is below 2^38, and
    /// [`CompactRow::fits`]; other values are cut off. `KNOWN_CODE` says that [`CompactRow::has_new_code`] was asked
    /// and is false.
    fn encode<const KNOWN_CODE: bool>(
        self,
        state: &mut State,
        ticks: u64,
        out: &mut [u64; MAX_COMPACT_WORDS],
    ) -> usize;
    /// True where every argument, the code address too, is as predicted: the head is all that is stored.
    fn is_predicted(&self, state: &State) -> bool;
    /// The event's only word, where it [`CompactRow::is_predicted`]; otherwise as [`CompactRow::encode`].
    fn encode_predicted(self, state: &mut State, ticks: u64) -> u64;
    /// True where every argument but the code address is as predicted.
    fn is_predicted_but_for_code(&self, state: &State) -> bool;
    /// The event's two words, where it [`CompactRow::is_predicted_but_for_code`] and [`CompactRow::has_new_code`]; otherwise as
    /// [`CompactRow::encode`].
    fn encode_new_code(self, state: &mut State, ticks: u64) -> [u64; 2];
    /// Stores the event in its wide form, which holds any value; `None`, and nothing learnt, where `out` is too
    /// short. [`MAX_COMPACT_WORDS`] + 4 words suffice for any row.
    fn encode_wide(self, state: &mut State, ticks: u64, out: &mut [u64]) -> Option<usize>;
}

/// A row of the table that has only the wide encoding.
pub trait WideRow {
    /// Stores the event; `None` where it does not fit `out`.
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
    /// The argument's type, as `Field::TYPE` has it.
    pub type_name: &'static str,
    /// How its group is predicted; `None` for an argument in the head's sub bits, and in a wide row.
    pub predictor: Option<&'static str>,
    /// The argument's group: those of one number share a word, or the sub bits.
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
    /// The callback's number, or one of ours from 256 on.
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

/// The specification's spelling of an argument that is a keyword of Rust.
pub(super) fn argument_name(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// Stores a wide event whose arguments `put` writes.
pub(super) fn wide(out: &mut [u64], ticks: u64, tag: u64, put: impl FnOnce(&mut Words<'_>)) -> Option<usize> {
    let (front, rest) = out.split_at_mut_checked(2)?;
    let mut words = Words::new(rest);
    put(&mut words);
    let len = words.finish().filter(|len| *len <= MAX_WIDE_WORDS)?;
    front[0] = WIDE | (len as u64) << WIDE_LEN_SHIFT | ticks << TICK_SHIFT;
    front[1] = tag;
    Some(2 + len)
}

/// Stores `row` in its compact form where it fits, else in its wide form.
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

/// Why words are no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The event ends beyond the last word.
    Truncated,
    /// A compact event of a newer format; the rest of the chunk cannot be decoded.
    UnknownKind(u8),
    /// A wide event whose arguments do not add up; it can be skipped.
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
