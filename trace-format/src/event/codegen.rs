//! The macro that turns each row of the table into a struct with an encoder and a decoder, and into a variant of the
//! enum [`Event`].

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

/// Whether the head arguments fit into the sub bits.
macro_rules! fits_sub {
    ($row:expr;) => {
        true
    };
    ($row:expr; $a:ident) => {
        $row.$a.word() < 1 << SUB_BITS
    };
    ($row:expr; $endpoint:ident $kind:ident) => {
        // One comparison checks both arguments: the kind has the bits that the endpoint leaves.
        $row.$endpoint.word() | $row.$kind.word() >> (SUB_BITS - 2 * ENDPOINT_BITS) < 1 << ENDPOINT_BITS
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
        let ($a, $b) = (<$t>::from_word($word >> 32), <$u>::from_word($word & 0xffff_ffff));
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

/// Turns each row into a struct with its encoder, and all rows into the enum [`Event`] with its decoder:
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
                const HAS_CODE: bool = false $(|| <$p>::IS_CODE)*;

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
                            // Stored unconditionally; `len` decides whether the word counts. A branch here would be
                            // mispredicted.
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

                #[inline(always)]
                #[allow(unused_variables)]
                fn is_predicted_but_for_code(&self, state: &State) -> bool {
                    let slot = 0 $(| <$p>::slot(pack_group!(self; $($f)+)))*;
                    let surprises = 0 $(| match <$p>::IS_CODE {
                        true => 0,
                        false => pack_group!(self; $($f)+) ^ <$p>::predict(state, slot),
                    })*;
                    surprises == 0
                }

                #[inline(always)]
                #[allow(unused_assignments, unused_variables)]
                fn encode_new_code(self, state: &mut State, ticks: u64) -> [u64; 2] {
                    let slot = 0 $(| <$p>::slot(pack_group!(self; $($f)+)))*;
                    let (mut flag, mut bit) = (0, FLAG_SHIFT + FLAG_BITS);
                    $(
                        bit -= 1;
                        let word = pack_group!(self; $($f)+);
                        if <$p>::IS_CODE {
                            flag = 1 << bit;
                            <$p>::update(state, slot, word);
                        } else {
                            <$p>::confirm(state, slot, word);
                        }
                    )*
                    let sub = pack_sub!(self; $($sf)*) << SUB_SHIFT;
                    let head = ($kind | sub | (slot as u64) << SLOT_SHIFT | flag) + (ticks << TICK_SHIFT);
                    [head, self.code()]
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
                /// Inverse of `encode`: the event and the number of words it took; `None` if words are missing.
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
                    // Flags for arguments that this version does not know are followed by words, too.
                    let unused = head >> FLAG_SHIFT & ((1 << (bit - FLAG_SHIFT)) - 1);
                    if unused != 0 {
                        len += unused.count_ones() as usize;
                        words.get(len - 1)?;
                    }
                    Some(($Row { $($sf,)* $($($f,)+)* }, len))
                }

                /// Inverse of `encode_wide`, applied to the words after the first two; `None` if words are missing.
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
            // Boxed because wide events are rare and large, while the compact rows, which most of a trace consists of,
            // are moved about a lot.
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

            /// The number of the event's callback; events of ours have numbers from 256 on.
            pub fn number(&self) -> u16 {
                match self {
                    $(Event::$Row(_) => $cnumber,)*
                    $(Event::$Wide(_) => $wnumber,)*
                    Event::Unknown(unknown) => unknown.number,
                }
            }

            /// The event's code addresses: `codeptr_ra`, and the address of the section that a `dispatch` event starts;
            /// 0 for those it lacks.
            #[inline]
            pub fn codes(&self) -> [u64; 2] {
                let section = match self {
                    Event::Dispatch(e) if e.kind == ompt_sys::ompt_dispatch_section => e.instance.0,
                    _ => 0,
                };
                [self.code(), section]
            }

            /// The event's code address (`codeptr_ra`); 0 if the event has none.
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

            /// Test tool: an event of row `row`, made of the numbers that `random` returns. In a compact row, half of
            /// the groups have the word that `state` predicts.
            #[doc(hidden)]
            #[allow(unused_variables)]
            pub fn generate(row: usize, state: &State, random: &mut dyn FnMut() -> u64) -> Event<'static> {
                let mut index = 0;
                $(
                    if row % Self::ROWS == index {
                        let slot = random() as usize % SLOTS;
                        // Mostly values that fit into a compact event.
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

            /// Test tool: an event of row `row`; `words` returns the words of the argument with the given name.
            #[doc(hidden)]
            #[allow(unused_variables)]
            pub fn of_arguments(row: usize, words: &mut dyn FnMut(&'static str) -> Vec<u64>) -> Event<'static> {
                let mut index = 0;
                $(
                    if row == index {
                        $(let $sf = <$st>::from_word(words(argument_name(stringify!($sf)))[0]);)*
                        $($(let $f = <$t>::from_word(words(argument_name(stringify!($f)))[0]);)+)*
                        return $Row { $($sf,)* $($($f,)+)* }.into();
                    }
                    index += 1;
                )*
                $(
                    if row == index {
                        $(
                            let $wf = words(argument_name(stringify!($wf)));
                            let $wf = WideField::take(&mut &$wf[..]).expect("the words of this argument");
                        )*
                        return $Wide { $($wf,)* }.into();
                    }
                    index += 1;
                )*
                let _ = index;
                unreachable!("row is below the number of rows")
            }

            /// Number of rows of the table.
            pub const ROWS: usize = count!($($Row)*) + count!($($Wide)*);
        }

        impl<'a> Event<'a> {
            /// Stores the event in its shortest encoding; `None` if `out` is too short. The tracer's hot path does the
            /// same without the `match`.
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

        /// Decodes the event at the start of `words` into `event` and returns the number of words it took. Decoding in
        /// place matters: moving an event costs as much as decoding it.
        ///
        /// # Errors
        /// See [`DecodeError`]; the caller can skip a bad event only if its length is known.
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
