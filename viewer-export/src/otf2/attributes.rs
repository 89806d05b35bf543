//! Details of events: each argument of the timeline is an attribute of the same name.

use super::encoding::{AttributeRef, Field, StringRef, TypedValue};
use super::records::{ATTRIBUTE_LIST, Attribute};
use super::strings::Strings;
use crate::sink::{Argument, Value};

/// The attributes of an archive, and the list that is being made.
pub(super) struct Attributes {
    definitions: Vec<Attribute>,
    /// Each under the type that it has; a name may have several.
    names: Vec<(&'static str, u8, AttributeRef)>,
    list: Vec<u8>,
}

impl Attributes {
    pub(super) fn new() -> Attributes {
        Attributes {
            definitions: Vec::new(),
            names: Vec::new(),
            list: Vec::new(),
        }
    }

    /// The record in front of an event that has these arguments.
    #[inline]
    pub(super) fn list(&mut self, strings: &mut Strings, arguments: &[Argument<'_>]) -> &[u8] {
        self.list.clear();
        if !arguments.is_empty() {
            self.begin(arguments.len());
            for argument in arguments {
                let value = match argument.value {
                    Value::Uint(number) | Value::Hex(number) => TypedValue::Uint64(number),
                    Value::Int(number) => TypedValue::Int64(number),
                    Value::Text(text) => TypedValue::String(strings.number(text)),
                };
                self.put(strings, argument.name, value);
            }
            self.end();
        }
        &self.list
    }

    /// As [`Attributes::list`], of values that are no arguments.
    pub(super) fn values(
        &mut self,
        strings: &mut Strings,
        values: &[(&'static str, TypedValue)],
    ) -> &[u8] {
        self.list.clear();
        self.begin(values.len());
        for (name, value) in values {
            self.put(strings, name, *value);
        }
        self.end();
        &self.list
    }

    fn begin(&mut self, len: usize) {
        self.list.extend([ATTRIBUTE_LIST, 0]);
        (len as u32).put(&mut self.list);
    }

    fn put(&mut self, strings: &mut Strings, name: &'static str, value: TypedValue) {
        self.number(strings, name, value.type_number())
            .put(&mut self.list);
        value.put(&mut self.list);
    }

    fn end(&mut self) {
        let len = self.list.len() - 2;
        // Each takes at most 15 bytes, and no event of the timeline has more than ten.
        debug_assert!(len < 0xff);
        self.list[1] = len as u8;
    }

    #[inline]
    fn number(
        &mut self,
        strings: &mut Strings,
        name: &'static str,
        value_type: u8,
    ) -> AttributeRef {
        // There are few, and texts at one address are equal.
        let is_it = |known: &&(&'static str, u8, AttributeRef)| {
            std::ptr::eq(known.0, name) && known.1 == value_type
        };
        match self.names.iter().find(is_it) {
            Some((_, _, number)) => *number,
            None => self.define(strings, name, value_type),
        }
    }

    #[cold]
    fn define(
        &mut self,
        strings: &mut Strings,
        name: &'static str,
        value_type: u8,
    ) -> AttributeRef {
        let text = strings.number(name);
        let is_it = |known: &&Attribute| known.name == text && known.value_type == value_type;
        let known = self.definitions.iter().find(is_it).map(|known| known.id);
        let id = known.unwrap_or(self.definitions.len() as u32);
        if known.is_none() {
            self.definitions.push(Attribute {
                id,
                name: text,
                value_type,
                description: StringRef(0),
            });
        }
        self.names.push((name, value_type, AttributeRef(id)));
        AttributeRef(id)
    }

    pub(super) fn definitions(&self) -> &[Attribute] {
        &self.definitions
    }
}
