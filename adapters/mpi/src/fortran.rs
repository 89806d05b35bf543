//! Addresses with a special meaning as arguments in Fortran.

use core::ffi::CStr;

use crate::next::symbol;

/// Variables of the standard's ABI that hold the addresses that mean "ignore the status".
const IGNORED_IN: [&CStr; 4] =
    [c"MPI_F_STATUS_IGNORE", c"MPI_F_STATUSES_IGNORE", c"MPI_F08_STATUS_IGNORE", c"MPI_F08_STATUSES_IGNORE"];
/// Open MPI's variables whose addresses mean "ignore the status", in the spellings of compilers.
const IGNORED_AT: [&CStr; 8] = [
    c"mpi_fortran_status_ignore_",
    c"mpi_fortran_statuses_ignore_",
    c"mpi_fortran_status_ignore",
    c"mpi_fortran_statuses_ignore",
    c"mpi_fortran_status_ignore__",
    c"mpi_fortran_statuses_ignore__",
    c"MPI_FORTRAN_STATUS_IGNORE",
    c"MPI_FORTRAN_STATUSES_IGNORE",
];
/// Variables whose addresses mean `MPI_IN_PLACE`. MPICH uses the second integer of a common block.
const IN_PLACE_AT: [(&CStr, usize); 7] = [
    (c"mpi_fortran_in_place_", 0),
    (c"mpi_fortran_in_place", 0),
    (c"mpi_fortran_in_place__", 0),
    (c"MPI_FORTRAN_IN_PLACE", 0),
    (c"mpipriv1_", 4),
    (c"mpipriv1__", 4),
    (c"MPIR_F08_MPI_IN_PLACE", 0),
];

/// The special addresses; 0 if the library has none.
#[derive(Debug)]
pub(crate) struct Fortran {
    ignored_in: [usize; IGNORED_IN.len()],
    ignored_at: [usize; IGNORED_AT.len()],
    in_place_at: [usize; IN_PLACE_AT.len()],
}

impl Fortran {
    pub(crate) fn find() -> Fortran {
        Fortran {
            ignored_in: IGNORED_IN.map(symbol),
            ignored_at: IGNORED_AT.map(symbol),
            in_place_at: IN_PLACE_AT.map(|(name, offset)| match symbol(name) {
                0 => 0,
                address => address + offset,
            }),
        }
    }

    /// Whether this argument means that no status is wanted.
    pub(crate) fn is_ignored(&self, status: u64) -> bool {
        let holds = |variable: &usize| {
            // SAFETY: a pointer variable of the library, which is set when MPI is initialized.
            *variable != 0 && unsafe { (*variable as *const u64).read() } == status
        };
        self.ignored_at.contains(&(status as usize)) || self.ignored_in.iter().any(holds)
    }

    /// Whether this argument means `MPI_IN_PLACE`.
    pub(crate) fn is_in_place(&self, buffer: u64) -> bool {
        buffer != 0 && self.in_place_at.contains(&(buffer as usize))
    }
}
