//! Copies of arguments, kept until their item is passed on.

use crate::model::{Argument, Value};

/// A copied value. A text is either copied, too, or `T` refers to its copy.
#[derive(Clone, Debug)]
pub enum KeptValue<T> {
    /// Like [`Value::Uint`].
    Uint(u64),
    /// Like [`Value::Int`].
    Int(i64),
    /// Like [`Value::Hex`].
    Hex(u64),
    /// Like [`Value::Text`].
    Text(T),
}

impl<T> KeptValue<T> {
    /// Copies `value`; `keep` copies a text.
    #[inline]
    pub fn new(value: Value<'_>, keep: impl FnOnce(&str) -> T) -> KeptValue<T> {
        match value {
            Value::Uint(number) => KeptValue::Uint(number),
            Value::Int(number) => KeptValue::Int(number),
            Value::Hex(number) => KeptValue::Hex(number),
            Value::Text(text) => KeptValue::Text(keep(text)),
        }
    }

    /// The value; `text` returns the text for its copy.
    #[inline]
    pub fn value<'a>(&'a self, text: impl FnOnce(&'a T) -> &'a str) -> Value<'a> {
        match self {
            KeptValue::Uint(number) => Value::Uint(*number),
            KeptValue::Int(number) => Value::Int(*number),
            KeptValue::Hex(number) => Value::Hex(*number),
            KeptValue::Text(kept) => Value::Text(text(kept)),
        }
    }
}

/// Copied arguments, including their texts.
#[derive(Clone, Debug)]
pub struct KeptArguments(Vec<(&'static str, KeptValue<Box<str>>)>);

impl KeptArguments {
    /// Copies arguments and their texts.
    pub fn new(arguments: &[Argument<'_>]) -> KeptArguments {
        let keep = |argument: &Argument<'_>| {
            let value = KeptValue::new(argument.value, |text| text.into());
            (argument.name, value)
        };
        KeptArguments(arguments.iter().map(keep).collect())
    }

    /// The arguments.
    pub fn arguments(&self) -> Vec<Argument<'_>> {
        self.0.iter().map(|(name, value)| Argument { name, value: value.value(|text| text) }).collect()
    }
}
