//! What is not known of a program's time in MPI.

use omptrace_symbols::Table;
use omptrace_timeline::Ranks;
use omptrace_trace_format::Reader;

/// What is said beside the numbers of such a program.
pub const MPI_NOT_SEEN: &str = "time in MPI calls is not visible and counts as work";

/// Words about what is not known of time in MPI where there are no traces of some ranks.
pub(crate) fn missing_ranks(ranks: &Ranks) -> Option<String> {
    /// Ranks that are named.
    const MOST: usize = 12;

    let missing = ranks.missing();
    let named: Vec<String> = missing.iter().take(MOST).map(u32::to_string).collect();
    let more = if missing.len() > MOST { ", ..." } else { "" };
    (!missing.is_empty()).then(|| {
        format!(
            "which part of MPI calls is a wait is not known: {} of {} ranks are missing ({}{more})",
            missing.len(),
            ranks.size,
            named.join(", ")
        )
    })
}

/// Words about calls that are not in the trace.
pub(crate) fn unseen(reader: &Reader) -> Option<String> {
    let hidden_by = reader.metadata().mpi.as_ref().and_then(|mpi| mpi.hidden_by.as_ref());
    hidden_by.map(|file| calls_hidden_by(file)).or_else(|| is_unseen(reader).then(|| MPI_NOT_SEEN.to_owned()))
}

/// Words about calls that a file hides, which defines functions of MPI as well.
pub fn calls_hidden_by(file: &str) -> String {
    format!("calls of MPI functions that {file} also defines are not visible, because they go to that file")
}

/// Whether the process has a rank, or code of an MPI library is among its modules, and its calls were not recorded.
pub(crate) fn is_unseen(reader: &Reader) -> bool {
    let metadata = reader.metadata();
    if metadata.mpi.is_some() {
        return false;
    }
    metadata.rank().is_some()
        || Table::from_metadata(metadata)
            .is_some_and(|table| table.instances().any(|module| is_mpi(&module.path)))
}

/// Whether the file is one of the libraries of MPICH, Open MPI or Intel MPI, or of those with MPI's own ABI, by its name.
fn is_mpi(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("libmpi").or_else(|| name.strip_prefix("libpmpi"));
    // `libmpir` is a library of numbers.
    let parts = [".", "-", "_", "ch", "cxx", "f", "cf"];
    rest.is_some_and(|rest| parts.iter().any(|part| rest.starts_with(part)))
}

#[cfg(test)]
mod tests {
    use super::is_mpi;

    #[test]
    fn libraries_of_mpi_are_known_by_name() {
        for name in [
            "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4",
            "libmpich.so.12",
            "libmpi_abi.so.0",
            "libmpi_usempif08.so.40",
            "libmpifort.so.12",
            "libmpicxx.so",
            "/site-packages/mpich.libs/libmpi-0f3c.so.12",
        ] {
            assert!(is_mpi(name), "{name}");
        }
        for name in ["libmpir.so.23", "libmpc.so.3", "libm.so.6", "/opt/libmpi/libx.so"] {
            assert!(!is_mpi(name), "{name}");
        }
    }
}
