//! Details of events: each argument of the timeline is an attribute of the same name.

use std::hash::Hasher;

use super::buffer::{Buffer, Out};
use super::encoding::{AttributeRef, Field, StringRef, TypedValue};
use super::records::{ATTRIBUTE_LIST, Attribute};
use super::strings::Strings;
use crate::fast_map::Fold;
use crate::sink::{Argument, Value};

/// More than any event of the timeline has.
const MOST_ATTRIBUTES: usize = 16;
/// What they take: each a number, a type and a value, behind the record's number and length and their count.
const MOST_LIST_BYTES: usize = 2 + 2 + MOST_ATTRIBUTES * (5 + 1 + 9);
const _: () = assert!(MOST_LIST_BYTES < 2 + 0xff);
/// Places for the names that were met last; a power of two, several times what there are.
const PLACES: usize = 256;

/// The attributes of an archive, and the list that is being made.
pub(super) struct Attributes {
    definitions: Vec<Attribute>,
    /// By [`Named::place`].
    names: Vec<Named>,
    list: Buffer,
}

/// An attribute under a name and the type that it has; a name may have several.
#[derive(Clone, Copy, Default)]
struct Named {
    name: &'static str,
    value_type: u8,
    /// Its number and its type, as lists have them in front of the value.
    head: [u8; 8],
    len: usize,
}

impl Named {
    /// Texts at one address are equal.
    #[inline]
    fn is(&self, name: &'static str, value_type: u8) -> bool {
        std::ptr::eq(self.name, name) && self.value_type == value_type
    }

    /// Where an attribute is looked for; others may have the same place.
    #[inline]
    fn place(name: &'static str, value_type: u8) -> usize {
        let mut hash = Fold::default();
        hash.write_u64(name.as_ptr().addr() as u64 ^ u64::from(value_type) << 56);
        hash.finish() as usize % PLACES
    }
}

impl Attributes {
    pub(super) fn new() -> Attributes {
        Attributes {
            definitions: Vec::new(),
            names: vec![Named::default(); PLACES],
            list: Buffer::new(MOST_LIST_BYTES),
        }
    }

    /// The record in front of an event that has these arguments.
    #[inline]
    pub(super) fn list(&mut self, strings: &mut Strings, arguments: &[Argument<'_>]) -> &[u8] {
        self.list.clear();
        debug_assert!(arguments.len() <= MOST_ATTRIBUTES);
        let arguments = &arguments[..arguments.len().min(MOST_ATTRIBUTES)];
        if !arguments.is_empty() {
            self.begin(arguments.len());
            for argument in arguments {
                let value = match argument.value {
                    // Most are numbers.
                    Value::Uint(number) | Value::Hex(number) => {
                        self.put_head(strings, argument.name, TypedValue::UINT64);
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
        self.list.bytes()
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
        self.list.bytes()
    }

    fn begin(&mut self, len: usize) {
        self.list.store([ATTRIBUTE_LIST, 0], 2);
        (len as u32).put(&mut self.list);
    }

    fn put(&mut self, strings: &mut Strings, name: &'static str, value: TypedValue) {
        self.put_head(strings, name, value.type_number());
        value.put_value(&mut self.list);
    }

    fn end(&mut self) {
        let len = self.list.len() - 2;
        self.list.bytes_mut()[1] = len as u8;
    }

    /// Appends the number and the type of an attribute.
    #[inline]
    fn put_head(&mut self, strings: &mut Strings, name: &'static str, value_type: u8) {
        let place = Named::place(name, value_type);
        if !self.names[place].is(name, value_type) {
            self.names[place] = self.define(strings, name, value_type);
        }
        let named = &self.names[place];
        self.list.store(named.head, named.len);
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
        bytes.push(value_type);
        let mut head = [0; 8];
        head[..bytes.len()].copy_from_slice(&bytes);
        Named {
            name,
            value_type,
            head,
            len: bytes.len(),
        }
    }

    pub(super) fn definitions(&self) -> &[Attribute] {
        &self.definitions
    }
}
