//! Arguments passed by value: numbers, addresses, enumerations.

use std::ffi::{c_char, c_int, c_uint};
use std::fmt::Debug;
use std::marker::PhantomData;

use ompt_sys::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Argument, Line, Parameter, Placed, Slots, hex};
use crate::device::lookup_of;
use crate::dialect::Dialect;

/// `type: |word| value` implements [`Parameter`].
macro_rules! parameters {
    ($($t:ty: |$word:ident| $from:expr;)*) => {$(
        impl Parameter for $t {
            fn from_word($word: u64) -> Self {
                $from
            }
        }
    )*};
}

parameters! {
    u64: |word| word;
    i64: |word| word as i64;
    usize: |word| word as usize;
    c_int: |word| word as c_int;
    c_uint: |word| word as c_uint;
    ompt_data_t: |word| ompt_data_t { value: word };
}

impl<T> Parameter for *const T {
    fn from_word(word: u64) -> Self {
        word as usize as *const T
    }
}

impl<T> Parameter for *mut T {
    fn from_word(word: u64) -> Self {
        word as usize as *mut T
    }
}

impl Parameter for Option<ompt_function_lookup_t> {
    fn from_word(word: u64) -> Self {
        // SAFETY: `Lookup` makes this word from such an option, of the same size.
        unsafe { std::mem::transmute(word as usize) }
    }
}

/// `type: |value| word, shown value;` implements [`Argument`] for a type that is passed by value.
macro_rules! in_registers {
    ($($t:ty: |$x:ident| $word:expr, $shown:expr;)*) => {$(
        impl Argument for $t {
            type Placed<'a> = $t;

            fn place<'a>(&'a self, _: &'a Slots) -> $t {
                *self
            }
        }

        impl Placed for $t {
            fn word(&self) -> u64 {
                let $x = *self;
                $word
            }

            fn show(&self, name: &str, line: &mut Line) {
                let $x = *self;
                line.insert(name.into(), $shown);
            }
        }
    )*};
}

/// An address, or another number shown in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

in_registers! {
    Address: |x| x.0, hex(x.0);
    u64: |x| x, x.into();
    i64: |x| x as u64, x.into();
    u32: |x| x.into(), x.into();
    i32: |x| x as u32 as u64, x.into();
}

/// A type of [`ompt_sys::enums`].
pub trait OmptEnum: Copy + Debug + 'static {
    /// The known values.
    const VALUES: &'static [(&'static str, u32)];

    /// The C type.
    const NAME: &'static str;

    /// The value's name in `omptrace dump`; `None` if that shows the number.
    fn name(value: u32) -> Option<&'static str>;
}

/// A number of the enumeration or flag set `T`.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct Enum<T>(pub u32, #[serde(skip)] PhantomData<T>);

impl<T> Enum<T> {
    /// The number, known or not.
    pub const fn new(number: u32) -> Enum<T> {
        Enum(number, PhantomData)
    }
}

impl<T> Clone for Enum<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Enum<T> {}

impl<T: OmptEnum> Debug for Enum<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match T::name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl<T: OmptEnum> Argument for Enum<T> {
    type Placed<'a> = Enum<T>;

    fn place<'a>(&'a self, _: &'a Slots) -> Enum<T> {
        *self
    }
}

impl<T: OmptEnum> Placed for Enum<T> {
    fn word(&self) -> u64 {
        self.0.into()
    }

    fn show(&self, name: &str, line: &mut Line) {
        let number = Dialect::current().number_of_today(T::NAME, self.0);
        let value = T::name(number).map_or_else(|| hex(number.into()), Value::from);
        line.insert(name.into(), value);
    }
}

/// Implements [`OmptEnum`], with the names returned by the given function, and [`Parameter`] for each type.
macro_rules! ompt_enums {
    ($name_of:expr; $($t:ident)*) => {$(
        impl OmptEnum for $t {
            const VALUES: &'static [(&'static str, u32)] = $t::VALUES;
            const NAME: &'static str = stringify!($t);

            fn name(value: u32) -> Option<&'static str> {
                let name_of: fn($t) -> Option<&'static str> = $name_of;
                name_of($t(value))
            }
        }

        impl Parameter for $t {
            fn from_word(word: u64) -> Self {
                $t(word as u32)
            }
        }
    )*};
}

ompt_enums! { |value| value.name();
    ompt_dependence_type_t ompt_dispatch_t ompt_mutex_t ompt_scope_endpoint_t ompt_severity_t ompt_sync_region_t
    ompt_target_data_op_t ompt_target_t ompt_task_status_t ompt_thread_t ompt_work_t
}

// Sets of flags are shown as numbers.
ompt_enums! { |_| None; ompt_cancel_flag_t ompt_parallel_flag_t ompt_task_flag_t }

/// A device's lookup function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lookup {
    /// NULL: the device cannot be traced.
    Null,
    /// A function that finds nothing.
    FindsNothing,
    /// The lookup function of the script's device with this number.
    Device(u32),
}

unsafe extern "C" fn find_nothing(_: *const c_char) -> Option<ompt_interface_fn_t> {
    None
}

impl Lookup {
    fn address(self) -> u64 {
        match self {
            Lookup::Null => 0,
            Lookup::FindsNothing => find_nothing as ompt_function_lookup_t as usize as u64,
            Lookup::Device(number) => lookup_of(number) as usize as u64,
        }
    }
}

in_registers! {
    Lookup: |x| x.address(), hex(x.address());
}
