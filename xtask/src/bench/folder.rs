//! Where benchmarks work.

use std::path::PathBuf;

use crate::process::target;

/// The folder in which everything is built and run.
pub(super) fn folder() -> PathBuf {
    target().join("bench")
}
