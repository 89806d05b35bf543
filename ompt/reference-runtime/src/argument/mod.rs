//! The types of a callback's arguments: each says how its values are passed to the tool and shown afterwards.
//!
//! [`Data`] and [`New`] point to data that the runtime keeps for the tool. `register` has what is passed as it is, and
//! `memory` what the tool gets a pointer to.

#[cfg(feature = "generate")]
mod any;
mod memory;
mod register;

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

#[cfg(feature = "generate")]
pub use any::{Any, GENERATED_SLOTS};
pub use memory::*;
pub use register::*;

/// A line of the report: the callback's name and arguments, as `omptrace dump --json` has them.
pub type Line = Map<String, Value>;

/// An argument of a [`Call`](super::Call).
pub trait Argument: Clone + Debug + Serialize + DeserializeOwned + 'static {
    /// It, placed in memory where the callback gets a pointer.
    type Placed<'a>: Placed;

    /// Places it in memory.
    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a>;

    /// The highest slot that it names.
    fn highest_slot(&self) -> Option<u32> {
        None
    }

    /// Adds `distance` to the slots that it names, so that threads do not share them.
    fn move_slots(&mut self, _distance: u32) {}
}

/// An argument that lives in memory until the callback has returned.
pub trait Placed {
    /// The content of the register.
    fn word(&self) -> u64;

    /// Adds it to the line, after the callback has returned.
    fn show(&self, name: &str, line: &mut Line);
}

/// A C type that a callback has as a parameter, made of a register's content.
pub trait Parameter {
    /// The parameter in `word`.
    fn from_word(word: u64) -> Self;
}

fn hex(value: u64) -> Value {
    format!("{value:#x}").into()
}

/// The data objects that a round's threads have: slot `n` is one `ompt_data_t`, 0 until the tool writes it.
#[derive(Debug)]
pub struct Slots(Box<[AtomicU64]>);

impl Slots {
    /// `count` slots.
    pub fn new(count: usize) -> Slots {
        Slots((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// Where the tool finds the data.
    pub fn pointer(&self, data: Data) -> *mut ompt_data_t {
        match data {
            Data::Null => std::ptr::null_mut(),
            Data::Slot(slot) => self.0[slot as usize].as_ptr().cast(),
        }
    }

    /// The content of the slot of `data`; 0 for a null pointer.
    pub(super) fn content(&self, data: Data) -> u64 {
        self.value(data).unwrap_or(0)
    }

    /// The value that the tool last stored; `None` for a null pointer. Slots that threads share without [`Sync`] between
    /// them may change at any time.
    ///
    /// [`Sync`]: super::Step::Sync
    fn value(&self, data: Data) -> Option<u64> {
        match data {
            Data::Null => None,
            Data::Slot(slot) => Some(self.0[slot as usize].load(Ordering::Relaxed)),
        }
    }
}

/// A pointer to data that the tool has seen before; shown as it was before the callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// NULL.
    Null,
    /// A pointer to the slot of that number.
    Slot(u32),
}

impl Argument for Data {
    type Placed<'a> = PlacedData;

    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a> {
        PlacedData { pointer: slots.pointer(*self), before: slots.value(*self) }
    }

    fn highest_slot(&self) -> Option<u32> {
        match self {
            Data::Null => None,
            Data::Slot(slot) => Some(*slot),
        }
    }

    fn move_slots(&mut self, distance: u32) {
        if let Data::Slot(slot) = self {
            *slot += distance;
        }
    }
}

/// A [`Data`] that is being passed.
#[derive(Debug)]
pub struct PlacedData {
    pointer: *mut ompt_data_t,
    /// The content of the slot before the callback.
    before: Option<u64>,
}

impl Placed for PlacedData {
    fn word(&self) -> u64 {
        self.pointer as u64
    }

    fn show(&self, name: &str, line: &mut Line) {
        line.insert(name.into(), self.before.map_or(Value::Null, hex));
    }
}

/// A pointer to data that the tool may write in this callback; shown as it is afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct New(pub Data);

impl Argument for New {
    type Placed<'a> = PlacedNew<'a>;

    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a> {
        PlacedNew { slots, data: self.0 }
    }

    fn highest_slot(&self) -> Option<u32> {
        self.0.highest_slot()
    }

    fn move_slots(&mut self, distance: u32) {
        self.0.move_slots(distance);
    }
}

/// A [`New`] that is being passed.
#[derive(Debug)]
pub struct PlacedNew<'a> {
    slots: &'a Slots,
    data: Data,
}

impl Placed for PlacedNew<'_> {
    fn word(&self) -> u64 {
        self.slots.pointer(self.data) as u64
    }

    fn show(&self, name: &str, line: &mut Line) {
        let after = self.slots.value(self.data);
        line.insert(name.into(), after.map_or(Value::Null, hex));
    }
}
