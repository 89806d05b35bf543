//! Attributes of events: each argument of a timeline item becomes an attribute of the same name.

use omptrace_timeline::model::{Argument, Value};
use otf2_archive::buffer::{Buffer, Out};
use otf2_archive::encoding::{AttributeRef, Field, StringRef, TypedValue};
use otf2_archive::records::{ATTRIBUTE_LIST, Attribute};

use crate::otf2::definitions::strings::Strings;
use crate::writer::interned_text::ByWord;

/// More attributes than any event of the timeline has.
const MAX_ATTRIBUTES: usize = 16;
/// Maximum size of an attribute list: number and length of the record, the count, and for each attribute a number, a
/// type and a value.
const MAX_LIST_BYTES: usize = 2 + 2 + MAX_ATTRIBUTES * (5 + 1 + 9);
const _: () = assert!(MAX_LIST_BYTES < 2 + 0xff);
/// Number of value types, up to the last one that attributes use.
const TYPES: usize = 1 + TypedValue::LOCATION as usize;

/// The attributes of an archive, and the list that is being created.
pub(crate) struct Attributes {
    definitions: Vec<Attribute>,
    /// By the type of the value: several attributes may have the same name.
    heads: Box<ByWord<[Head; TYPES]>>,
    list: Buffer,
}

/// The number and type of an attribute, as they precede the value in lists. Empty if not used yet.
#[derive(Clone, Copy, Default)]
struct Head {
    bytes: [u8; 8],
    len: usize,
}

impl Attributes {
    pub(crate) fn new() -> Attributes {
        Attributes {
            definitions: Vec::new(),
            heads: Box::new(ByWord::new()),
            list: Buffer::new(MAX_LIST_BYTES),
        }
    }

    /// The attribute record for an event with these arguments.
    #[inline(always)]
    pub(crate) fn list(&mut self, strings: &mut Strings, arguments: &[Argument<'_>]) -> &[u8] {
        if arguments.is_empty() {
            return &[];
        }
        self.list_of_some(strings, arguments)
    }

    #[inline(never)]
    fn list_of_some(&mut self, strings: &mut Strings, arguments: &[Argument<'_>]) -> &[u8] {
        debug_assert!(arguments.len() <= MAX_ATTRIBUTES);
        let arguments = &arguments[..arguments.len().min(MAX_ATTRIBUTES)];
        self.begin(arguments.len());
        for argument in arguments {
            let value = match argument.value {
                // Most values are numbers.
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
        self.list.bytes()
    }

    /// Like [`Attributes::list`], for values that are not arguments.
    pub(crate) fn values(&mut self, strings: &mut Strings, values: &[(&'static str, TypedValue)]) -> &[u8] {
        self.begin(values.len());
        for (name, value) in values {
            self.put(strings, name, *value);
        }
        self.end();
        self.list.bytes()
    }

    fn begin(&mut self, len: usize) {
        self.list.clear();
        self.list.store([ATTRIBUTE_LIST, 0], 2);
        (len as u32).put(&mut self.list);
    }

    #[inline(never)]
    fn put(&mut self, strings: &mut Strings, name: &'static str, value: TypedValue) {
        self.put_head(strings, name, value.type_number());
        value.put_value(&mut self.list);
    }

    fn end(&mut self) {
        let len = self.list.len() - 2;
        self.list.bytes_mut()[1] = len as u8;
    }

    /// Appends the number and type of an attribute.
    #[inline(always)]
    fn put_head(&mut self, strings: &mut Strings, name: &'static str, value_type: u8) {
        let heads = self.heads.get(name, || [Head::default(); TYPES]);
        let head = &mut heads[usize::from(value_type)];
        if head.len == 0 {
            *head = head_of(&mut self.definitions, strings, name, value_type);
        }
        self.list.store(head.bytes, head.len);
    }

    pub(crate) fn definitions(&self) -> &[Attribute] {
        &self.definitions
    }
}

/// The number and type of the attribute with this name and type, as they precede the value in lists. Defines the
/// attribute if it is new.
#[cold]
fn head_of(definitions: &mut Vec<Attribute>, strings: &mut Strings, name: &str, value_type: u8) -> Head {
    let text = strings.number(name);
    let is_it = |known: &&Attribute| known.name == text && known.value_type == value_type;
    let known = definitions.iter().find(is_it).map(|known| known.id);
    let id = known.unwrap_or(definitions.len() as u32);
    if known.is_none() {
        definitions.push(Attribute { id, name: text, value_type, description: StringRef(0) });
    }
    let mut head = Vec::new();
    AttributeRef(id).put(&mut head);
    head.push(value_type);
    let mut bytes = [0; 8];
    bytes[..head.len()].copy_from_slice(&head);
    Head { bytes, len: head.len() }
}
