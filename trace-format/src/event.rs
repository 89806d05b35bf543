//! The event table: **one row per event**; encoder, decoder, names, schema, `dump` and test generators come from it.
//!
//! Times and arguments become 64-bit words. There are two encodings.
//!
//! # Compact
//!
//! For the rows that programs are full of. One word, and a further word for each argument that was not predicted
//! ([`crate::predict`]):
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
//! A group is one argument of 64 bits or two of 32. `sub` holds the arguments that tell variants of the event apart:
//! one of up to 6 bits, or an endpoint (2 bits) and a kind (4 bits).
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
//! The number of an event is that of its callback (OpenMP 5.2, 19.4.2.4, `ompt_callbacks_t`); from 256 on are ours, and
//! those of callbacks that OpenMP no longer has.

use ompt_sys::{
    ompt_callbacks_t, ompt_cancel_flag_t, ompt_dispatch_t, ompt_frame_flag_t, ompt_mutex_t,
    ompt_parallel_flag_t, ompt_record_native_t, ompt_scope_endpoint_t, ompt_severity_t,
    ompt_state_t, ompt_sync_region_t, ompt_target_data_op_t, ompt_target_t, ompt_task_flag_t,
    ompt_task_status_t, ompt_thread_t, ompt_work_t,
};

use crate::field::{
    Address, Bytes, DependenceList, Field, Id, ModuleChange, MonitoringChange, Numbers, Register,
    Seconds, Text, Ticks, Value, WideField, Words,
};
use crate::predict::*;

/// The most words that a compact event takes.
pub const MAX_COMPACT_WORDS: usize = 1 + FLAG_BITS as usize;
/// Bits of an event's time: a chunk ends before its base lies 2^38 ticks back.
pub const TICK_BITS: u32 = 38;
/// The prefix of wide events.
const WIDE: u64 = 63;
/// The most words that a wide event has behind its first two.
pub const MAX_WIDE_WORDS: usize = (1 << 20) - 1;

/// Bits for the head arguments, of which an endpoint in front of a kind takes the lowest.
const SUB_BITS: u32 = 6;
const ENDPOINT_BITS: u32 = 2;
const FLAG_BITS: u32 = 7;
const SUB_SHIFT: u32 = 6;
const SLOT_SHIFT: u32 = 12;
const FLAG_SHIFT: u32 = 19;
pub(crate) const TICK_SHIFT: u32 = 64 - TICK_BITS;
const WIDE_LEN_SHIFT: u32 = 6;

// The picture above, and room for the sub-kind, for every code slot, and for the length of a wide event.
const _: () = assert!(FLAG_SHIFT + FLAG_BITS == TICK_SHIFT && TICK_SHIFT + TICK_BITS == 64);
const _: () = assert!(SUB_BITS == SLOT_SHIFT - SUB_SHIFT && WIDE < 1 << SUB_SHIFT);
const _: () = assert!(SLOTS == 1 << (FLAG_SHIFT - SLOT_SHIFT));
const _: () = assert!(MAX_WIDE_WORDS + 1 == 1 << (TICK_SHIFT - WIDE_LEN_SHIFT));
const _: () = assert!(MAX_COMPACT_WORDS == 8);

/// Words that follow the head of a compact event: one per flag that is set.
#[inline]
pub(crate) fn compact_extra_words(head: u64) -> usize {
    // Mostly none, which is told sooner than their number.
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
fn push_group(
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
    /// What the event tells, with its source.
    pub doc: &'static str,
    /// Arguments in the head's sub bits, then (for compact rows) each group, in order.
    pub arguments: Vec<ArgumentSchema>,
}

/// The sub bits of a row's head arguments.
macro_rules! pack_sub {
    ($row:expr;) => {
        0
    };
    ($row:expr; $a:ident) => {
        $row.$a.word()
    };
    ($row:expr; $endpoint:ident $kind:ident) => {
        $row.$endpoint.word() | $row.$kind.word() << ENDPOINT_BITS
    };
}

/// Whether they fit.
macro_rules! fits_sub {
    ($row:expr;) => {
        true
    };
    ($row:expr; $a:ident) => {
        $row.$a.word() < 1 << SUB_BITS
    };
    ($row:expr; $endpoint:ident $kind:ident) => {
        // Both in one comparison: the kind has the bits that the endpoint leaves.
        $row.$endpoint.word() | $row.$kind.word() >> (SUB_BITS - 2 * ENDPOINT_BITS)
            < 1 << ENDPOINT_BITS
    };
}

/// The word of a group: one argument, or two of 32 bits.
macro_rules! pack_group {
    ($row:expr; $a:ident) => {
        $row.$a.word()
    };
    ($row:expr; $a:ident $b:ident) => {
        $row.$a.word() << 32 | $row.$b.word() & 0xffff_ffff
    };
}

/// `let` bindings for the arguments of a group's word.
macro_rules! unpack_group {
    ($word:expr; $a:ident: $t:ty) => {
        let $a = <$t>::from_word($word);
    };
    ($word:expr; $a:ident: $t:ty, $b:ident: $u:ty) => {
        let ($a, $b) = (
            <$t>::from_word($word >> 32),
            <$u>::from_word($word & 0xffff_ffff),
        );
    };
}

/// `let` bindings for head arguments, from the head's 6 bits.
macro_rules! bind_sub {
    ($sub:expr;) => {};
    ($sub:expr; $a:ident: $t:ty) => {
        let $a = <$t>::from_word($sub);
    };
    ($sub:expr; $a:ident: $t:ty, $b:ident: $u:ty) => {
        let ($a, $b) = (<$t>::from_word($sub & 3), <$u>::from_word($sub >> 2));
    };
}

/// Number of names.
macro_rules! count {
    ($($x:tt)*) => { <[&str]>::len(&[$(stringify!($x)),*]) };
}

/// Makes of each row a struct with its encoder, and of all rows the enum [`Event`] with its decoder:
///
/// ```text
/// compact { 23 SyncRegion = 23 "sync_region" (endpoint: E, kind: K) { [task_data: Id] = Last<Task>, ... } }
///           kind struct  number name          head arguments          group of arguments = predictor
/// wide    { ControlTool<'a> = 11 "control_tool" { command: u64, text: Text<'a>, ... } }
/// ```
macro_rules! events {
    (
        compact { $(
            $(#[doc = $cdoc:literal])+
            $kind:literal $Row:ident = $cnumber:literal $cname:literal
            ( $($sf:ident : $st:ty),* ) { $( [ $($f:ident : $t:ty),+ ] = $p:ty ),* $(,)? }
        )* }
        wide { $(
            $(#[doc = $wdoc:literal])+
            $Wide:ident $(<$lt:lifetime>)? = $wnumber:literal $wname:literal { $( $wf:ident : $wt:ty ),* $(,)? }
        )* }
    ) => {
        $(
            $(#[doc = $cdoc])+
            #[derive(Clone, Copy, Debug, PartialEq)]
            #[allow(missing_docs, reason = "the arguments are those of the callback in the specification")]
            pub struct $Row { $(pub $sf: $st,)* $($(pub $f: $t,)+)* }

            const _: () = assert!($kind > 0 && $kind < WIDE && count!($([$($f)+])*) <= FLAG_BITS as usize);

            impl CompactRow for $Row {
                const KIND: u8 = $kind;

                #[inline(always)]
                fn fits(&self) -> bool {
                    fits_sub!(self; $($sf)*)
                }

                #[inline(always)]
                #[allow(unused_variables)]
                fn has_new_code(&self, state: &State) -> bool {
                    false $(|| {
                        let word = pack_group!(self; $($f)+);
                        <$p>::IS_CODE && <$p>::predict(state, <$p>::slot(word)) != word
                    })*
                }

                #[inline(always)]
                fn code(&self) -> u64 {
                    0 $(| if <$p>::IS_CODE { pack_group!(self; $($f)+) } else { 0 })*
                }

                #[inline(always)]
                #[allow(unused_mut, unused_variables, unused_assignments)]
                fn encode<const KNOWN_CODE: bool>(
                    self,
                    state: &mut State,
                    ticks: u64,
                    out: &mut [u64; MAX_COMPACT_WORDS],
                ) -> usize {
                    let slot = 0 $(| <$p>::slot(pack_group!(self; $($f)+)))*;
                    let (mut len, mut flags, mut unused) = (1, 0, FLAG_BITS);
                    $({
                        let mut surprise = 0;
                        if !(KNOWN_CODE && <$p>::IS_CODE) {
                            let word = pack_group!(self; $($f)+);
                            surprise = u64::from(word != <$p>::predict(state, slot));
                            <$p>::update(state, slot, word);
                            // Stored in any case; the length says whether it counts. No branch, no misprediction.
                            out[len] = word;
                            len += surprise as usize;
                        }
                        flags = flags << 1 | surprise;
                        unused -= 1;
                    })*
                    let sub = pack_sub!(self; $($sf)*) << SUB_SHIFT;
                    out[0] = ($kind | sub | (slot as u64) << SLOT_SHIFT | flags << (FLAG_SHIFT + unused))
                        + (ticks << TICK_SHIFT);
                    len
                }

                #[inline(always)]
                #[allow(unused_variables)]
                fn is_predicted(&self, state: &State) -> bool {
                    let slot = 0 $(| <$p>::slot(pack_group!(self; $($f)+)))*;
                    let surprises = 0 $(| pack_group!(self; $($f)+) ^ <$p>::predict(state, slot))*;
                    surprises == 0
                }

                #[inline(always)]
                fn encode_predicted(self, state: &mut State, ticks: u64) -> u64 {
                    let slot = 0 $(| <$p>::slot(pack_group!(self; $($f)+)))*;
                    $(<$p>::confirm(state, slot, pack_group!(self; $($f)+));)*
                    let sub = pack_sub!(self; $($sf)*) << SUB_SHIFT;
                    ($kind | sub | (slot as u64) << SLOT_SHIFT) + (ticks << TICK_SHIFT)
                }

                #[allow(unused_variables)]
                fn encode_wide(self, state: &mut State, ticks: u64, out: &mut [u64]) -> Option<usize> {
                    let len = wide(out, ticks, $cnumber | $kind << 32, |words| {
                        $(words.push(self.$sf.word());)*
                        $(words.push(pack_group!(self; $($f)+));)*
                    })?;
                    let slot = 0 $(| <$p>::slot(pack_group!(self; $($f)+)))*;
                    $(<$p>::update(state, slot, pack_group!(self; $($f)+));)*
                    Some(len)
                }
            }

            impl $Row {
                /// The mirror of `encode`: the event and the words it took, `None` where words are missing.
                #[inline(always)]
                #[allow(unused_mut, unused_variables, unused_assignments)]
                fn decode(words: &[u64], state: &mut State) -> Option<(Self, usize)> {
                    let head = *words.first()?;
                    let sub = head >> SUB_SHIFT & 63;
                    let slot = (head >> SLOT_SHIFT) as usize & (SLOTS - 1);
                    let (mut len, mut bit) = (1, FLAG_SHIFT + FLAG_BITS);
                    bind_sub!(sub; $($sf: $st),*);
                    $(
                        bit -= 1;
                        let word = if head >> bit & 1 == 1 {
                            len += 1;
                            *words.get(len - 1)?
                        } else {
                            <$p>::predict(state, slot)
                        };
                        <$p>::update(state, slot, word);
                        unpack_group!(word; $($f: $t),+);
                    )*
                    // Flags that this version has no arguments for: their words follow all the same.
                    let unused = head >> FLAG_SHIFT & ((1 << (bit - FLAG_SHIFT)) - 1);
                    if unused != 0 {
                        len += unused.count_ones() as usize;
                        words.get(len - 1)?;
                    }
                    Some(($Row { $($sf,)* $($($f,)+)* }, len))
                }

                /// The mirror of `encode_wide`, from the words behind the first two.
                #[allow(unused_mut, unused_variables, unused_assignments)]
                fn decode_wide(words: &[u64], state: &mut State) -> Option<Self> {
                    let mut words = words.iter().copied();
                    $(let $sf = <$st>::from_word(words.next()?);)*
                    let row = { $(
                        let word = words.next()?;
                        unpack_group!(word; $($f: $t),+);
                    )* $Row { $($sf,)* $($($f,)+)* } };
                    let slot = 0 $(| <$p>::slot(pack_group!(row; $($f)+)))*;
                    $(<$p>::update(state, slot, pack_group!(row; $($f)+));)*
                    Some(row)
                }
            }
        )*
        $(
            $(#[doc = $wdoc])+
            #[derive(Clone, Debug, PartialEq)]
            #[allow(missing_docs, reason = "the arguments are those of the callback in the specification")]
            pub struct $Wide $(<$lt>)? { $(pub $wf: $wt,)* }

            impl $(<$lt>)? WideRow for $Wide $(<$lt>)? {
                #[allow(unused_variables)]
                fn encode(&self, ticks: u64, out: &mut [u64]) -> Option<usize> {
                    wide(out, ticks, $wnumber, |words| { $(self.$wf.put(words);)* })
                }

                fn code(&self) -> u64 {
                    0 $(| if stringify!($wf) == "codeptr_ra" { self.$wf.single_word() } else { 0 })*
                }

                fn arguments() -> Vec<ArgumentSchema> {
                    let mut arguments = Vec::new();
                    $(push_group(&mut arguments, None, &[(stringify!($wf), <$wt as WideField>::WIDE_TYPE)]);)*
                    arguments
                }
            }
        )*

        /// Any event of the table.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant is the row of its name")]
        pub enum Event<'a> {
            $($Row($Row),)*
            // Rare, and large: a trace is mostly compact rows, which are moved about a lot.
            $($Wide(Box<$Wide $(<$lt>)?>),)*
            /// An event of a newer tracer.
            Unknown(Box<UnknownEvent<'a>>),
        }

        $(impl From<$Row> for Event<'_> { fn from(row: $Row) -> Self { Event::$Row(row) } })*
        $(impl<'a> From<$Wide $(<$lt>)?> for Event<'a> { fn from(row: $Wide $(<$lt>)?) -> Self { Event::$Wide(Box::new(row)) } })*

        impl Event<'_> {
            /// The event's name: OMPT's without `ompt_callback_`, or ours with `omptrace_`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Event::$Row(_) => $cname,)*
                    $(Event::$Wide(_) => $wname,)*
                    Event::Unknown(_) => "omptrace_unknown",
                }
            }

            /// The number of the event's callback, or ours from 256 on.
            pub fn number(&self) -> u16 {
                match self {
                    $(Event::$Row(_) => $cnumber,)*
                    $(Event::$Wide(_) => $wnumber,)*
                    Event::Unknown(unknown) => unknown.number,
                }
            }

            /// The event's code address (`codeptr_ra`); 0 where it has none.
            #[inline]
            pub fn code(&self) -> u64 {
                match self {
                    $(Event::$Row(row) => row.code(),)*
                    $(Event::$Wide(row) => row.code(),)*
                    Event::Unknown(_) => 0,
                }
            }

            /// Calls `f` with the name and value of each argument.
            #[allow(unused_variables)]
            pub fn visit(&self, f: &mut dyn FnMut(&'static str, Value<'_>)) {
                match self {
                    $(Event::$Row(row) => {
                        $(f(argument_name(stringify!($sf)), row.$sf.value());)*
                        $($(f(argument_name(stringify!($f)), row.$f.value());)+)*
                    })*
                    $(Event::$Wide(row) => {
                        $(f(argument_name(stringify!($wf)), row.$wf.wide_value());)*
                    })*
                    Event::Unknown(unknown) => {
                        f("number", Value::Uint(unknown.number.into()));
                        f("words", Value::Numbers(&unknown.words));
                    }
                }
            }

            /// Test tool: an event of row `row`, made of the numbers that `random` gives. Of the groups of a compact
            /// row, half have the word that `state` predicts.
            #[doc(hidden)]
            #[allow(unused_variables)]
            pub fn generate(row: usize, state: &State, random: &mut dyn FnMut() -> u64) -> Event<'static> {
                let mut index = 0;
                $(
                    if row % Self::ROWS == index {
                        let slot = random() as usize % SLOTS;
                        // Mostly what a compact event holds.
                        $(let $sf = <$st>::from_word(match random() % 8 {
                            0 => random() >> (random() % 64),
                            _ => random() % 4,
                        });)*
                        $(
                            let word = match random() % 4 {
                                0 => random(),
                                1 => random() >> (random() % 64),
                                _ => <$p>::predict(state, slot),
                            };
                            unpack_group!(word; $($f: $t),+);
                        )*
                        return $Row { $($sf,)* $($($f,)+)* }.into();
                    }
                    index += 1;
                )*
                $(
                    if row % Self::ROWS == index {
                        return $Wide { $($wf: WideField::generate(random),)* }.into();
                    }
                    index += 1;
                )*
                let _ = index;
                unreachable!("row is below the number of rows")
            }

            /// Rows of the table.
            pub const ROWS: usize = count!($($Row)*) + count!($($Wide)*);
        }

        impl<'a> Event<'a> {
            /// Stores the event in the shortest form that holds it; `None` where `out` is too short. The tracer's
            /// hot path does the same without the `match`.
            pub fn encode(&self, state: &mut State, ticks: u64, out: &mut [u64]) -> Option<usize> {
                match self {
                    $(Event::$Row(row) => encode_compact(*row, state, ticks, out),)*
                    $(Event::$Wide(row) => row.encode(ticks, out),)*
                    Event::Unknown(unknown) => {
                        wide(out, ticks, unknown.number.into(), |words| {
                            unknown.words.iter().for_each(|word| words.push(*word));
                        })
                    }
                }
            }
        }

        /// Decodes the event at the start of `words` in place of `event`; gives the words that it took. Each row is
        /// stored where it stays: to move an event that was stored just now costs as much as to decode it.
        ///
        /// # Errors
        /// See [`DecodeError`]; the caller can skip a bad event only where its length is known.
        #[inline]
        pub(crate) fn decode_into(
            event: &mut Event<'static>,
            words: &[u64],
            state: &mut State,
        ) -> Result<usize, DecodeError> {
            let head = *words.first().ok_or(DecodeError::Truncated)?;
            match head & 63 {
                $($kind => match $Row::decode(words, state) {
                    Some((row, len)) => {
                        *event = Event::$Row(row);
                        Ok(len)
                    }
                    None => Err(DecodeError::Truncated),
                },)*
                WIDE => {
                    let (wide, len) = decode_wide(words, state)?;
                    *event = wide;
                    Ok(len)
                }
                kind => Err(DecodeError::UnknownKind(kind as u8)),
            }
        }

        #[cold]
        fn decode_wide(words: &[u64], state: &mut State) -> Result<(Event<'static>, usize), DecodeError> {
            let len = 1 + extra_words(words[0]);
            let all = words.get(..len).ok_or(DecodeError::Truncated)?;
            let (tag, mut arguments) = (all[1], &all[2..]);
            let event = match (tag & 0xffff, tag >> 32 & 63) {
                $(($cnumber, $kind) => $Row::decode_wide(arguments, state).map(Event::$Row),)*
                $(($wnumber, 0) => {
                    (|| Some($Wide { $($wf: WideField::take(&mut arguments)?,)* }.into()))()
                })*
                (number, _) => Some(Event::Unknown(Box::new(UnknownEvent {
                    number: number as u16,
                    words: arguments.to_vec().into(),
                }))),
            };
            event.map(|event| (event, len)).ok_or(DecodeError::BadArguments { len })
        }

        /// The whole table, in the order of its rows.
        pub fn schema() -> Vec<EventSchema> {
            vec![
                $(EventSchema {
                    number: $cnumber, kind: $kind, name: $cname, doc: concat!($($cdoc, "\n"),+),
                    arguments: {
                        let mut arguments = Vec::new();
                        push_group(&mut arguments, None, &[$((stringify!($sf), <$st as Field>::TYPE)),*]);
                        $(push_group(
                            &mut arguments,
                            Some(stringify!($p)),
                            &[$((stringify!($f), <$t as Field>::TYPE)),+],
                        );)*
                        arguments
                    },
                },)*
                $(EventSchema {
                    number: $wnumber, kind: 0, name: $wname, doc: concat!($($wdoc, "\n"),+),
                    arguments: $Wide::arguments(),
                },)*
            ]
        }
    };
}

/// The specification's spelling of an argument that is a keyword of Rust.
fn argument_name(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// Stores a wide event whose arguments `put` writes.
fn wide(out: &mut [u64], ticks: u64, tag: u64, put: impl FnOnce(&mut Words<'_>)) -> Option<usize> {
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

/// What stands where an event is going to be decoded: the end of no known thread.
impl Default for Event<'_> {
    fn default() -> Self {
        Event::ThreadEnd(ThreadEnd {
            thread_data: Id::UNSET,
        })
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

events! {
    compact {
        /// A thread begins to run OpenMP code (OpenMP 5.2, 19.5.2.1).
        1 ThreadBegin = 1 "thread_begin" (thread_type: ompt_thread_t) { [thread_data: Id] = Last<Thread> }
        /// A thread ends (19.5.2.2).
        2 ThreadEnd = 2 "thread_end" () { [thread_data: Id] = Last<Thread> }
        /// A parallel or teams region begins (19.5.2.3). The frame is `encountering_task_frame`'s content.
        3 ParallelBegin = 3 "parallel_begin" () {
            [encountering_task_data: Id] = Last<(Task, Outer)>,
            [exit_frame: Address] = Here<0>,
            [enter_frame: Address] = Here<1>,
            [exit_frame_flags: ompt_frame_flag_t, enter_frame_flags: ompt_frame_flag_t] = Last<FrameFlags>,
            [parallel_data: Id] = NextId<Parallel>,
            [requested_parallelism: u32, flags: ompt_parallel_flag_t] = Last<Team>,
            [codeptr_ra: Address] = Code,
        }
        /// A parallel or teams region ends (19.5.2.4).
        4 ParallelEnd = 4 "parallel_end" () {
            [parallel_data: Id] = Last<Parallel>,
            [encountering_task_data: Id] = Last<(Outer, Task)>,
            [flags: ompt_parallel_flag_t] = Here<2>,
            [codeptr_ra: Address] = Code,
        }
        /// An explicit, target or initial task is created (19.5.2.7). The frame is `encountering_task_frame`'s content.
        5 TaskCreate = 5 "task_create" (has_dependences: u32) {
            [encountering_task_data: Id] = Last<Task>,
            [exit_frame: Address] = Frame<0>,
            [enter_frame: Address] = Frame<1>,
            [exit_frame_flags: ompt_frame_flag_t, enter_frame_flags: ompt_frame_flag_t] = Last<FrameFlags>,
            [new_task_data: Id] = NextId,
            [flags: ompt_task_flag_t] = Last<TaskFlags>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread suspends one task and runs another (19.5.2.10); completions have a row of their own.
        6 TaskSchedule = 6 "task_schedule" (prior_task_status: ompt_task_status_t) {
            [prior_task_data: Id] = Suspend,
            [next_task_data: Id] = Newest<Task>,
        }
        /// `task_schedule` with the status `ompt_task_complete`: the prior task is done, and mostly the one suspended
        /// last runs again.
        41 TaskComplete = 6 "task_schedule" (prior_task_status: ompt_task_status_t) {
            [prior_task_data: Id] = Last<Task>,
            [next_task_data: Id] = Resume,
        }
        /// An implicit or initial task begins (19.5.2.11).
        7 ImplicitTaskBegin = 7 "implicit_task" (endpoint: ompt_scope_endpoint_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = NextId<Task>,
            [actual_parallelism: u32, index: u32] = Last<Member>,
            [flags: ompt_task_flag_t] = Last<ImplicitFlags>,
        }
        /// An implicit or initial task ends: `implicit_task` with any other endpoint.
        40 ImplicitTaskEnd = 7 "implicit_task" (endpoint: ompt_scope_endpoint_t) {
            [parallel_data: Id] = Null,
            [task_data: Id] = Last<Task>,
            [actual_parallelism: u32, index: u32] = Last<Member>,
            [flags: ompt_task_flag_t] = Last<ImplicitFlags>,
        }
        /// A thread waits in a synchronization region (19.5.2.14).
        16 SyncRegionWait = 16 "sync_region_wait" (endpoint: ompt_scope_endpoint_t, kind: ompt_sync_region_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A lock, critical, atomic or ordered region is released (19.5.2.15).
        17 MutexReleased = 17 "mutex_released" (kind: ompt_mutex_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A dependence that was not resolved when the sink task was created (19.5.2.9).
        19 TaskDependence = 19 "task_dependence" () {
            [src_task_data: Id] = Last<()>,
            [sink_task_data: Id] = Last<Sink>,
        }
        /// A worksharing, single, taskloop, distribute or scope region (19.5.2.5).
        20 Work = 20 "work" (endpoint: ompt_scope_endpoint_t, work_type: ompt_work_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [count: u64] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A masked region on the thread that executes it (19.5.2.12).
        21 Masked = 21 "masked" (endpoint: ompt_scope_endpoint_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A barrier, taskwait or taskgroup region (19.5.2.13).
        23 SyncRegion = 23 "sync_region" (endpoint: ompt_scope_endpoint_t, kind: ompt_sync_region_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A lock is initialized (19.5.2.14).
        24 LockInit = 24 "lock_init" (kind: ompt_mutex_t) {
            [hint: u32, r#impl: u32] = Last<Mutex>,
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A lock is destroyed (19.5.2.15).
        25 LockDestroy = 25 "lock_destroy" (kind: ompt_mutex_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread begins to wait for a lock, critical, atomic or ordered region (19.5.2.14).
        26 MutexAcquire = 26 "mutex_acquire" (kind: ompt_mutex_t) {
            [hint: u32, r#impl: u32] = Last<Mutex>,
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// The wait is over (19.5.2.15).
        27 MutexAcquired = 27 "mutex_acquired" (kind: ompt_mutex_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A nested lock that the task already owns is set or unset (19.5.2.16).
        28 NestLock = 28 "nest_lock" (endpoint: ompt_scope_endpoint_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A flush region (19.5.2.17); recorded only when asked for.
        29 Flush = 29 "flush" () {
            [thread_data: Id] = Last<Thread>,
            [codeptr_ra: Address] = Code,
        }
        /// A cancellation is activated, detected, or discards a task (19.5.2.18).
        30 Cancel = 30 "cancel" () {
            [task_data: Id] = Last<Task>,
            [flags: ompt_cancel_flag_t] = Last<CancelFlags>,
            [codeptr_ra: Address] = Code,
        }
        /// A reduction (19.5.2.13).
        31 Reduction = 31 "reduction" (endpoint: ompt_scope_endpoint_t, kind: ompt_sync_region_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread begins a section or a chunk of iterations (19.5.2.6). Of the three kinds of chunks the chunk itself
        /// is kept (`ompt_dispatch_chunk_t`: `start`, `iterations`), since `instance` points to a slot that is reused.
        32 Dispatch = 32 "dispatch" (kind: ompt_dispatch_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [instance: Address] = Last<Instance>,
            [start: u64] = Last<ChunkStart>,
            [iterations: u64] = Last<ChunkIterations>,
        }
    }
    wide {
        /// A target region, old form (OpenMP 5.2, 19.5.2.26).
        Target = 8 "target" {
            kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: i32, task_data: Id,
            target_id: Address, codeptr_ra: Address,
        }
        /// A data operation, old form (19.5.2.25). Some of Intel's runtimes put an endpoint in front, which shifts
        /// every argument by one and adds `tenth_argument`; elsewhere that holds nothing of meaning.
        TargetDataOp = 9 "target_data_op" {
            target_id: Address, host_op_id: Address, optype: Register<ompt_target_data_op_t>, src_addr: Address,
            src_device_num: Register<i32>, dest_addr: Address, dest_device_num: Register<i32>, bytes: u64,
            codeptr_ra: Address, tenth_argument: Address,
        }
        /// A kernel is submitted, old form (19.5.2.28).
        TargetSubmit = 10 "target_submit" { target_id: Address, host_op_id: Address, requested_num_teams: u32 }
        /// The program called `omp_control_tool` (19.5.2.29). `text` is the string at `arg` for commands 64 and 65.
        ControlTool<'a> = 11 "control_tool" {
            command: u64, modifier: u64, arg: Address, text: Text<'a>, codeptr_ra: Address,
        }
        /// A device is initialized (19.5.2.19).
        DeviceInitialize<'a> = 12 "device_initialize" {
            device_num: i32, r#type: Text<'a>, device: Address, lookup: Address, documentation: Text<'a>,
        }
        /// A device is finalized (19.5.2.20).
        DeviceFinalize = 13 "device_finalize" { device_num: i32 }
        /// Code is loaded onto a device (19.5.2.21).
        DeviceLoad<'a> = 14 "device_load" {
            device_num: i32, filename: Text<'a>, offset_in_file: i64, vma_in_file: Address, bytes: u64,
            host_addr: Address, device_addr: Address, module_id: u64,
        }
        /// Code is unloaded from a device (19.5.2.22).
        DeviceUnload = 15 "device_unload" { device_num: i32, module_id: u64 }
        /// Dependences of a task, or of a doacross iteration (19.5.2.8). `ndeps` is the runtime's number, also where
        /// `deps` is a null pointer or was cut to what a chunk holds.
        Dependences<'a> = 18 "dependences" { task_data: Id, deps: DependenceList<'a>, ndeps: i32 }
        /// Mappings of a target construct, old form (19.5.2.27).
        TargetMap<'a> = 22 "target_map" {
            target_id: Address, nitems: u32, host_addr: Numbers<'a>, device_addr: Numbers<'a>, bytes: Numbers<'a>,
            mapping_flags: Numbers<'a>, codeptr_ra: Address,
        }
        /// A target region (19.5.2.26).
        TargetEmi = 33 "target_emi" {
            kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: i32, task_data: Id,
            target_task_data: Id, target_data: Id, codeptr_ra: Address,
        }
        /// A data operation of a target region or an API call (19.5.2.25). `host_op_id` is the content after the
        /// tool has set it.
        TargetDataOpEmi = 34 "target_data_op_emi" {
            endpoint: ompt_scope_endpoint_t, target_task_data: Id, target_data: Id, host_op_id: Id,
            optype: ompt_target_data_op_t, src_addr: Address, src_device_num: i32, dest_addr: Address,
            dest_device_num: i32, bytes: u64, codeptr_ra: Address,
        }
        /// A kernel is submitted (19.5.2.28).
        TargetSubmitEmi = 35 "target_submit_emi" {
            endpoint: ompt_scope_endpoint_t, target_data: Id, host_op_id: Id, requested_num_teams: u32,
        }
        /// Mappings of a target construct (19.5.2.27).
        TargetMapEmi<'a> = 36 "target_map_emi" {
            target_data: Id, nitems: u32, host_addr: Numbers<'a>, device_addr: Numbers<'a>, bytes: Numbers<'a>,
            mapping_flags: Numbers<'a>, codeptr_ra: Address,
        }
        /// An `error` directive (19.5.2.30).
        Error<'a> = 37 "error" { severity: ompt_severity_t, message: Text<'a>, length: u64, codeptr_ra: Address }

        /// A thread that belongs to no team waits for work: a callback of TR4 and TR6 (`ompt_callback_idle`,
        /// numbers 29 and 31 there; OpenMP 5.0 gave the latter to `reduction`).
        Idle = 268 "idle" { endpoint: ompt_scope_endpoint_t }

        /// What the runtime says that the thread does, and what it waits for where that is a wait for a mutex (19.6.1.12,
        /// `ompt_get_state`): asked at the begin and end of implicit tasks and waits for mutexes.
        ThreadState = 269 "omptrace_thread_state" { state: ompt_state_t, wait_id: Address }

        /// A thread waits for a mutex that another one holds: two events of the Collector API of 2007 (`LKWT`, `CTWT`, `ODWT`,
        /// `ATWT`), which tells neither that a mutex was free nor that it is released. `wait_id` only where the runtime tells
        /// it.
        MutexWait = 270 "mutex_wait" { endpoint: ompt_scope_endpoint_t, kind: ompt_mutex_t, wait_id: Address }
        /// A thread is in an ordered region: two events of the Collector API (`ORDERED`).
        Ordered = 271 "ordered" { endpoint: ompt_scope_endpoint_t, parallel_data: Id }
        /// The region around a parallel region that begins (Collector API, `OMP_REQ_PARENT_PRID`); 0 for none.
        ParentRegion = 272 "omptrace_parent_region" { parallel_data: Id, parent_parallel_data: Id }
        /// An event that only this runtime has (Collector API, from `OMP_EVENT_THR_RESERVED_IMPL` on).
        CollectorEvent = 273 "collector_event" { number: u32, parallel_data: Id }

        /// The operating system's view of the stream's thread.
        ThreadInfo<'a> = 257 "omptrace_thread_info" { os_tid: i32, name: Text<'a> }
        /// A module (program or shared library) that holds a code address, valid from this time on.
        Module<'a> = 258 "omptrace_module" {
            change: ModuleChange, path: Text<'a>, build_id: Text<'a>, load_address: Address, start: Address,
            end: Address, file_size: u64, modified_ns: u64,
        }
        /// The thread wrote its own chunk since no free one was left; `begin` is when it began, the event's time when
        /// it had ended.
        BufferFlush = 259 "omptrace_buffer_flush" { begin: Ticks, bytes: u64 }
        /// Recording was switched.
        Monitoring = 260 "omptrace_monitoring" { change: MonitoringChange }
        /// Events of this stream that were not recorded, all after `begin` and before the event's time.
        Lost = 261 "omptrace_lost" { begin: Ticks, events: u64 }
        /// The stream is no thread's: it holds what came out of a device's trace buffers, in the order of delivery.
        DeviceStream = 262 "omptrace_device_stream" { device_num: i32 }
        /// A record of a device in the standard format (19.4.3.4, `ompt_record_ompt_t`), raw. `device_num` is what the
        /// runtime told at delivery, times are the device's, `record` is the union's member that belongs to `type`, as
        /// it lay in memory.
        DeviceRecord<'a> = 263 "omptrace_device_record" {
            device_num: i32, r#type: ompt_callbacks_t, time: u64, thread_id: Address, target_id: Address,
            record: Numbers<'a>,
        }
        /// A record of a device in its own format, as far as a tool that does not know the device can understand it
        /// (19.4.3.3, `ompt_record_abstract_t`). Times are the device's.
        DeviceNativeRecord<'a> = 264 "omptrace_device_native_record" {
            device_num: i32, host_op_id: Address, rclass: ompt_record_native_t, r#type: Text<'a>, start_time: u64,
            end_time: u64, hwid: Address,
        }
        /// The device's clock (19.6.2.2), read between two readings of the session's.
        DeviceClock = 265 "omptrace_device_clock" { device_num: i32, before: Ticks, device_time: u64, after: Ticks }
        /// What the runtime makes of a time on the device's clock (19.6.2.3): seconds as `omp_get_wtime` counts them.
        DeviceTranslation = 266 "omptrace_device_translation" { device_num: i32, device_time: u64, seconds: Seconds }
        /// A part of the image that `device_load` told of, from `offset` on. Equal images are kept once.
        DeviceImage<'a> = 267 "omptrace_device_image" {
            device_num: i32, module_id: u64, offset: u64, bytes: Bytes<'a>,
        }
    }
}
