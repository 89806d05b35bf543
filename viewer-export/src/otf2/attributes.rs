//! Details of events: each argument of the timeline is an attribute of the same name.

use super::encoding::{AttributeRef, Field, StringRef, TypedValue};
use super::records::{ATTRIBUTE_LIST, Attribute};
use super::strings::Strings;
use crate::digits;
use crate::sink::{Argument, Value};

/// The attributes of an archive, and the list that is being made.
pub(super) struct Attributes {
    definitions: Vec<Attribute>,
    names: Vec<Named>,
    list: Vec<u8>,
}

/// An attribute under a name and the type that it has; a name may have several.
#[derive(Clone, Copy)]
struct Named {
    name: &'static str,
    value_type: u8,
    /// Its number as lists have it.
    number: [u8; 8],
    len: usize,
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
                    // Most are numbers.
                    Value::Uint(number) | Value::Hex(number) => {
                        self.put_number(strings, argument.name, TypedValue::UINT64);
                        self.list.push(TypedValue::UINT64);
                        number.put(&mut self.list);
                        continue;
                    }
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
        self.put_number(strings, name, value.type_number());
        value.put(&mut self.list);
    }

    fn end(&mut self) {
        let len = self.list.len() - 2;
        // Each takes at most 15 bytes, and no event of the timeline has more than ten.
        debug_assert!(len < 0xff);
        self.list[1] = len as u8;
    }

    /// Appends the number of an attribute.
    #[inline]
    fn put_number(&mut self, strings: &mut Strings, name: &'static str, value_type: u8) {
        // There are few, and texts at one address are equal.
        let is_it =
            |known: &&Named| std::ptr::eq(known.name, name) && known.value_type == value_type;
        let named = match self.names.iter().find(is_it) {
            Some(named) => *named,
            None => self.define(strings, name, value_type),
        };
        digits::push(&mut self.list, named.number, named.len);
    }

    #[cold]
    fn define(&mut self, strings: &mut Strings, name: &'static str, value_type: u8) -> Named {
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
        let mut bytes = Vec::new();
        AttributeRef(id).put(&mut bytes);
        let mut number = [0; 8];
        number[..bytes.len()].copy_from_slice(&bytes);
        let named = Named {
            name,
            value_type,
            number,
            len: bytes.len(),
        };
        self.names.push(named);
        named
    }

    pub(super) fn definitions(&self) -> &[Attribute] {
        &self.definitions
    }
}
