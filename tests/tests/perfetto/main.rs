//! Perfetto's format, critical paths, less of a timeline, and the way into the UI: of real programs, checked by Perfetto itself.

mod critical_path;
mod export;
mod filter;
mod intervals;
mod pftrace;
mod view;
