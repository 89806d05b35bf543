//! Perfetto's format, less of a timeline, and the way into the UI: of real programs, checked by Perfetto itself.

mod export;
mod filter;
mod intervals;
mod pftrace;
mod view;
