//! Notes on what is unknown about a program's time in MPI.

use omptrace_symbols::Table;
use omptrace_timeline::Ranks;
use omptrace_trace_format::Reader;

/// The note that is shown with the numbers of a program whose MPI calls were not recorded.
pub const MPI_NOT_SEEN: &str = "MPI calls were not recorded, so the time in MPI calls counts as useful work";

/// A note on MPI time if the traces of some ranks are missing.
pub(crate) fn missing_ranks(ranks: &Ranks) -> Option<String> {
    /// Number of missing ranks that are listed.
    const MOST: usize = 12;

    let missing = ranks.missing();
    let named: Vec<String> = missing.iter().take(MOST).map(u32::to_string).collect();
    let more = if missing.len() > MOST { ", ..." } else { "" };
    (!missing.is_empty()).then(|| {
        format!(
            "waits in MPI calls cannot be distinguished from transfers, because the traces of {} of {} ranks are missing ({}{more})",
            missing.len(),
            ranks.size,
            named.join(", ")
        )
    })
}

/// A note on MPI calls that are not in the trace.
pub(crate) fn unseen(reader: &Reader) -> Option<String> {
    let hidden_by = reader.metadata().mpi.as_ref().and_then(|mpi| mpi.hidden_by.as_ref());
    hidden_by.map(|file| calls_hidden_by(file)).or_else(|| is_unseen(reader).then(|| MPI_NOT_SEEN.to_owned()))
}

/// A note on MPI calls that cannot be recorded because this file defines MPI functions, too.
pub fn calls_hidden_by(file: &str) -> String {
    format!(
        "{file} also defines MPI functions; calls of these functions are not visible, because the program calls the definitions in this file"
    )
}

/// Whether the process has a rank, or an MPI library among its modules, but its MPI calls were not recorded.
pub(crate) fn is_unseen(reader: &Reader) -> bool {
    let metadata = reader.metadata();
    if metadata.mpi.is_some() {
        return false;
    }
    metadata.rank().is_some()
        || Table::from_metadata(metadata)
            .is_some_and(|table| table.instances().any(|module| is_mpi(&module.path)))
}

/// Whether the file name is that of a library of MPICH, Open MPI or Intel MPI, or of the standard MPI ABI.
fn is_mpi(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("libmpi").or_else(|| name.strip_prefix("libpmpi"));
    // `libmpir` is an arithmetic library.
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
