//! Copies of arguments, kept until their item is passed on.

use crate::model::{Argument, Value};

/// A copied value. A text is either copied, too, or `T` refers to its copy.
#[derive(Clone, Debug)]
pub enum OwnedValue<T> {
    /// Like [`Value::Uint`].
    Uint(u64),
    /// Like [`Value::Int`].
    Int(i64),
    /// Like [`Value::Hex`].
    Hex(u64),
    /// Like [`Value::Text`].
    Text(T),
}

impl<T> OwnedValue<T> {
    /// Copies `value`; `keep` copies a text.
    #[inline]
    pub fn new(value: Value<'_>, keep: impl FnOnce(&str) -> T) -> OwnedValue<T> {
        match value {
            Value::Uint(number) => OwnedValue::Uint(number),
            Value::Int(number) => OwnedValue::Int(number),
            Value::Hex(number) => OwnedValue::Hex(number),
            Value::Text(text) => OwnedValue::Text(keep(text)),
        }
    }

    /// The value; `text` returns the text for its copy.
    #[inline]
    pub fn value<'a>(&'a self, text: impl FnOnce(&'a T) -> &'a str) -> Value<'a> {
        match self {
            OwnedValue::Uint(number) => Value::Uint(*number),
            OwnedValue::Int(number) => Value::Int(*number),
            OwnedValue::Hex(number) => Value::Hex(*number),
            OwnedValue::Text(kept) => Value::Text(text(kept)),
        }
    }
}

/// Copied arguments, including their texts.
#[derive(Clone, Debug)]
pub struct KeptArguments(Vec<(&'static str, OwnedValue<Box<str>>)>);

impl KeptArguments {
    /// Copies arguments and their texts.
    pub fn new(arguments: &[Argument<'_>]) -> KeptArguments {
        let keep = |argument: &Argument<'_>| {
            let value = OwnedValue::new(argument.value, |text| text.into());
            (argument.name, value)
        };
        KeptArguments(arguments.iter().map(keep).collect())
    }

    /// The arguments.
    pub fn arguments(&self) -> Vec<Argument<'_>> {
        self.0.iter().map(|(name, value)| Argument { name, value: value.value(|text| text) }).collect()
    }
}
