//! Calls that are kept to be made later.

use crate::sink::{Argument, Point, RegionId, Sink, Value};

/// A value of an argument, with its text or the place where that is kept.
#[derive(Clone, Debug)]
pub enum KeptValue<T> {
    /// As [`Value::Uint`].
    Uint(u64),
    /// As [`Value::Int`].
    Int(i64),
    /// As [`Value::Hex`].
    Hex(u64),
    /// As [`Value::Text`].
    Text(T),
}

impl<T> KeptValue<T> {
    #[inline]
    /// Keeps `value`; `keep` keeps a text.
    pub fn new(value: Value<'_>, keep: impl FnOnce(&str) -> T) -> KeptValue<T> {
        match value {
            Value::Uint(number) => KeptValue::Uint(number),
            Value::Int(number) => KeptValue::Int(number),
            Value::Hex(number) => KeptValue::Hex(number),
            Value::Text(text) => KeptValue::Text(keep(text)),
        }
    }

    #[inline]
    /// The value; `text` gives what was kept of a text.
    pub fn value<'a>(&'a self, text: impl FnOnce(&'a T) -> &'a str) -> Value<'a> {
        match self {
            KeptValue::Uint(number) => Value::Uint(*number),
            KeptValue::Int(number) => Value::Int(*number),
            KeptValue::Hex(number) => Value::Hex(*number),
            KeptValue::Text(kept) => Value::Text(text(kept)),
        }
    }
}

/// Arguments with their texts.
#[derive(Clone, Debug)]
pub(crate) struct KeptArguments(Vec<(&'static str, KeptValue<Box<str>>)>);

impl KeptArguments {
    pub(crate) fn new(arguments: &[Argument<'_>]) -> KeptArguments {
        let keep = |argument: &Argument<'_>| {
            let value = KeptValue::new(argument.value, |text| text.into());
            (argument.name, value)
        };
        KeptArguments(arguments.iter().map(keep).collect())
    }

    pub(crate) fn arguments(&self) -> Vec<Argument<'_>> {
        self.0
            .iter()
            .map(|(name, value)| Argument {
                name,
                value: value.value(|text| text),
            })
            .collect()
    }
}

/// A region that begins, or an instant.
#[derive(Clone, Debug)]
pub struct KeptEnter {
    /// When and where.
    pub at: Point,
    region: RegionId,
    arguments: KeptArguments,
}

impl KeptEnter {
    /// Keeps an enter with its arguments.
    pub fn new(at: Point, region: RegionId, arguments: &[Argument<'_>]) -> KeptEnter {
        KeptEnter {
            at,
            region,
            arguments: KeptArguments::new(arguments),
        }
    }

    /// Makes the call [`Sink::enter`].
    pub fn enter(&self, sink: &mut dyn Sink) {
        sink.enter(self.at, self.region, &self.arguments.arguments());
    }

    /// Makes the call [`Sink::instant`].
    pub fn instant(&self, sink: &mut dyn Sink) {
        sink.instant(self.at, self.region, &self.arguments.arguments());
    }
}
