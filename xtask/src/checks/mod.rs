//! Checks of the whole product: tests, fuzzing, sanitizers, growth, soak.

pub(crate) mod aarch64;
pub(crate) mod compare;
pub(crate) mod fuzz;
pub(crate) mod growth;
pub(crate) mod language;
pub(crate) mod runtimes;
mod sampled;
pub(crate) mod sanitize;
pub(crate) mod soak;
pub(crate) mod test;
