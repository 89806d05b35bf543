//! The types of callback arguments: how their values are passed to the tool and shown afterwards.
//!
//! [`Data`] and [`New`] are pointers to data that the runtime keeps for the tool. `register` has arguments passed by
//! value, and `memory` arguments passed as pointers.

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

/// A line of the report: the callback's name and arguments, in the format of `omptrace dump --json`.
pub type Line = Map<String, Value>;

/// An argument of a [`Call`](super::Call).
pub trait Argument: Clone + Debug + Serialize + DeserializeOwned + 'static {
    /// The argument, placed in memory if the callback gets a pointer.
    type Placed<'a>: Placed;

    /// Places the argument in memory.
    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a>;

    /// The highest slot that the argument uses.
    fn highest_slot(&self) -> Option<u32> {
        None
    }

    /// Adds `distance` to the slots that the argument uses, so that threads do not share slots.
    fn move_slots(&mut self, _distance: u32) {}
}

/// An argument that stays in memory until the callback has returned.
pub trait Placed {
    /// The value passed in the register.
    fn word(&self) -> u64;

    /// Adds the argument to the line, after the callback has returned.
    fn show(&self, name: &str, line: &mut Line);
}

/// A C type of a callback parameter, which can be converted from a register's value.
pub trait Parameter {
    /// Converts from a register's value.
    fn from_word(word: u64) -> Self;
}

fn hex(value: u64) -> Value {
    format!("{value:#x}").into()
}

/// The data objects for a round's threads: slot `n` is one `ompt_data_t`, which is 0 until the tool writes it.
#[derive(Debug)]
pub struct Slots(Box<[AtomicU64]>);

impl Slots {
    /// `count` slots.
    pub fn new(count: usize) -> Slots {
        Slots((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// The pointer to pass to the tool.
    pub fn pointer(&self, data: Data) -> *mut ompt_data_t {
        match data {
            Data::Null => std::ptr::null_mut(),
            Data::Slot(slot) => self.0[slot as usize].as_ptr().cast(),
        }
    }

    /// The value in the slot of `data`; 0 for a null pointer.
    pub(super) fn content(&self, data: Data) -> u64 {
        self.value(data).unwrap_or(0)
    }

    /// The value that the tool stored last; `None` for a null pointer. The value of a slot that threads share without
    /// [`Sync`] between them may change at any time.
    ///
    /// [`Sync`]: super::Step::Sync
    fn value(&self, data: Data) -> Option<u64> {
        match data {
            Data::Null => None,
            Data::Slot(slot) => Some(self.0[slot as usize].load(Ordering::Relaxed)),
        }
    }
}

/// A pointer to data that the tool has seen before; shown with its value before the callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// NULL.
    Null,
    /// A pointer to the slot with this number.
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

/// A [`Data`] argument of a call in progress.
#[derive(Debug)]
pub struct PlacedData {
    pointer: *mut ompt_data_t,
    /// The value in the slot before the callback.
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

/// A pointer to data that the tool may write in this callback; shown with its value after the callback.
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

/// A [`New`] argument of a call in progress.
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
