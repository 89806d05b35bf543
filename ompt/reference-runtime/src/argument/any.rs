//! Generates arbitrary values of the argument types of callbacks.

use std::fmt::Debug;

use ompt_sys::ompt_dependence_type_t;
use proptest::prelude::*;

use super::{
    Address, Argument, ControlArgument, Data, Dependences, Enum, Frame, FrameContent, Instance, Lookup, New,
    Numbers, OmptEnum, Text,
};

/// Number of slots per thread in a generated script.
pub const GENERATED_SLOTS: u32 = 12;

/// An [`Argument`] whose values can be generated.
pub trait Any: Argument {
    /// Generates any value.
    fn any() -> BoxedStrategy<Self>;
}

/// `type: strategy;` implements [`Any`].
macro_rules! any {
    ($($t:ty: $strategy:expr;)*) => {$(
        impl Any for $t {
            fn any() -> BoxedStrategy<Self> {
                $strategy.boxed()
            }
        }
    )*};
}

any! {
    Address: any_word().prop_map(Address);
    u64: any_word();
    i64: any_word().prop_map(|word| word as i64);
    u32: any_word().prop_map(|word| word as u32);
    i32: any_word().prop_map(|word| word as i32);
    Lookup: prop_oneof![Just(Lookup::Null), Just(Lookup::FindsNothing)];
    Data: prop_oneof![1 => Just(Data::Null), 7 => (0..GENERATED_SLOTS).prop_map(Data::Slot)];
    New: Data::any().prop_map(New);
    Frame: prop_oneof![1 => Just(Frame(None)), 3 => any_frame().prop_map(|frame| Frame(Some(frame)))];
    Text: prop_oneof![
        1 => Just(Text(None)),
        3 => ".{0,20}".prop_map(|text| Text::new(&text.replace('\0', ""))),
        1 => prop::collection::vec(1..=u8::MAX, 0..200).prop_map(|bytes| Text(Some(bytes))),
    ];
    ControlArgument: prop_oneof![
        any_word().prop_map(ControlArgument::Address),
        Text::any().prop_map(ControlArgument::Phase),
    ];
    Instance: prop_oneof![
        any_word().prop_map(Instance::Word),
        (any_word(), any_word()).prop_map(|(start, iterations)| Instance::Chunk { start, iterations }),
    ];
    Dependences: prop_oneof![
        1 => Just(Dependences(None)),
        5 => any_dependences().prop_map(|deps| Dependences(Some(deps))),
    ];
}

impl<T: OmptEnum> Any for Enum<T> {
    fn any() -> BoxedStrategy<Self> {
        let known = (0..T::VALUES.len()).prop_map(|index| T::VALUES[index].1);
        prop_oneof![6 => known, 1 => 0..70_u32, 1 => any::<u32>()].prop_map(Enum::new).boxed()
    }
}

impl<T> Any for Numbers<T>
where
    Numbers<T>: Argument,
    T: Clone + Debug + TryFrom<u64, Error: Debug> + 'static,
{
    fn any() -> BoxedStrategy<Self> {
        // Includes the high bits if the type has them.
        let number = any_word().prop_map(|word| {
            T::try_from(word).unwrap_or_else(|_| T::try_from(word & 0xffff).expect("16 bits fit"))
        });
        let numbers = prop::collection::vec(number, 0..6);
        prop_oneof![1 => Just(Numbers(None)), 5 => numbers.prop_map(|numbers| Numbers(Some(numbers)))].boxed()
    }
}

/// Small numbers, realistic addresses, and arbitrary values.
fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..20_u64,
        4 => 0x5555_5555_0000..0x5555_5555_0100_u64,
        1 => any::<u64>(),
        1 => any::<u32>().prop_map(u64::from),
        1 => Just(u64::MAX),
    ]
}

fn any_frame() -> impl Strategy<Value = FrameContent> {
    (any_word(), any_word(), i32::any(), i32::any()).prop_map(
        |(exit_frame, enter_frame, exit_frame_flags, enter_frame_flags)| FrameContent {
            exit_frame,
            enter_frame,
            exit_frame_flags,
            enter_frame_flags,
        },
    )
}

/// A few dependences, and sometimes more than any program has.
fn any_dependences() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let dependence = || {
        let dependence_type = Enum::<ompt_dependence_type_t>::any();
        (any_word(), dependence_type.prop_map(|number| number.0))
    };
    prop_oneof![
        8 => prop::collection::vec(dependence(), 0..5),
        1 => prop::collection::vec(dependence(), 500..2000),
    ]
}
