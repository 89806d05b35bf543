//! The program `omptrace`, run as its users run it.
//!
//! Nothing here needs an OpenMP runtime or the tracer: programs, runtimes and the tool are made for the test, with the
//! C compiler. The real ones are in the workspace's end-to-end tests.

mod answers;
mod conversions;
mod doctor;
mod earlier_versions;
mod help;
mod hostile_names;
mod json_document;
mod libgomp;
mod manual;
mod old_runtimes;
mod record;
mod support;
mod traces;
