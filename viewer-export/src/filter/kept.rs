//! Calls that are kept to be made later.

use crate::sink::{Argument, Point, RegionId, Sink, Value};

/// A value of an argument, with its text or the place where that is kept.
#[derive(Clone, Debug)]
pub(crate) enum KeptValue<T> {
    Uint(u64),
    Int(i64),
    Hex(u64),
    Text(T),
}

impl<T> KeptValue<T> {
    #[inline]
    pub(crate) fn new(value: Value<'_>, keep: impl FnOnce(&str) -> T) -> KeptValue<T> {
        match value {
            Value::Uint(number) => KeptValue::Uint(number),
            Value::Int(number) => KeptValue::Int(number),
            Value::Hex(number) => KeptValue::Hex(number),
            Value::Text(text) => KeptValue::Text(keep(text)),
        }
    }

    #[inline]
    pub(crate) fn value<'a>(&'a self, text: impl FnOnce(&'a T) -> &'a str) -> Value<'a> {
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
pub(crate) struct KeptEnter {
    pub(crate) at: Point,
    region: RegionId,
    arguments: KeptArguments,
}

impl KeptEnter {
    pub(crate) fn new(at: Point, region: RegionId, arguments: &[Argument<'_>]) -> KeptEnter {
        KeptEnter {
            at,
            region,
            arguments: KeptArguments::new(arguments),
        }
    }

    /// Makes the call [`Sink::enter`].
    pub(crate) fn enter(&self, sink: &mut dyn Sink) {
        sink.enter(self.at, self.region, &self.arguments.arguments());
    }

    /// Makes the call [`Sink::instant`].
    pub(crate) fn instant(&self, sink: &mut dyn Sink) {
        sink.instant(self.at, self.region, &self.arguments.arguments());
    }
}
