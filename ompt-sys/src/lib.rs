//! The OpenMP tools interface (OMPT) of OpenMP 5.2 and 6.0: types, enums, callback and entry-point signatures.
#![no_std]
#![allow(non_camel_case_types, non_upper_case_globals)]

mod enums;

pub use enums::*;
