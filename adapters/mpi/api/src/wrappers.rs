//! The source of the wrappers that the preloaded libraries export: a line for each symbol.
//!
//! ```text
//! wrapper!(MPI_Send, 2768);       346 * 8 + Spelling::C
//! wrapper!(mpi_send_, 2770);      346 * 8 + Spelling::Underscore
//! ```
//!
//! Programs ask which functions there are (`dlsym`, weak references), and call those that they find. So there are three libraries,
//! each with functions that an MPI library has all of, or none.

use core::fmt::{Result, Write};

use crate::{Class, Function, Version, functions};

/// A library that is preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `libomptmpi.so`: functions of MPI 3.1.
    Mpi3,
    /// `libomptmpi4.so`: what MPI 4.0 adds.
    Mpi4,
    /// `libomptmpi4c.so`: the variants for large counts.
    LargeCount,
}

/// A binding of a function, by how linkers spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Spelling {
    /// `MPI_Send`.
    C = 0,
    /// `MPI_Send_c`.
    LargeCount = 1,
    /// `mpi_send_`, of most Fortran compilers.
    Underscore = 2,
    /// `mpi_send__`.
    TwoUnderscores = 3,
    /// `mpi_send`.
    Lower = 4,
    /// `MPI_SEND`.
    Upper = 5,
    /// `mpi_send_f08_`, of the module `mpi_f08`.
    F08 = 6,
}

/// How many spellings fit.
const SPELLINGS: usize = 8;

impl Spelling {
    /// All of them.
    pub const ALL: [Spelling; 7] = [
        Spelling::C,
        Spelling::LargeCount,
        Spelling::Underscore,
        Spelling::TwoUnderscores,
        Spelling::Lower,
        Spelling::Upper,
        Spelling::F08,
    ];

    /// Whether it is Fortran's.
    pub fn is_fortran(self) -> bool {
        !matches!(self, Spelling::C | Spelling::LargeCount)
    }

    /// Writes the symbol of the function of this name.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(self, name: &str, to: &mut impl Write) -> Result {
        let mut letters = name.chars();
        letters.try_for_each(|letter| {
            to.write_char(match self {
                Spelling::C | Spelling::LargeCount => letter,
                Spelling::Upper => letter.to_ascii_uppercase(),
                _ => letter.to_ascii_lowercase(),
            })
        })?;
        to.write_str(match self {
            Spelling::C | Spelling::Lower | Spelling::Upper => "",
            Spelling::LargeCount => "_c",
            Spelling::Underscore => "_",
            Spelling::TwoUnderscores => "__",
            Spelling::F08 => "_f08_",
        })
    }
}

/// The number of a symbol: that of the function, and the spelling.
pub fn slot(number: u32, spelling: Spelling) -> usize {
    number as usize * SPELLINGS + spelling as usize
}

/// The function and the spelling of a slot.
pub fn of_slot(slot: usize) -> Option<(&'static Function, Spelling)> {
    let function = crate::function((slot / SPELLINGS) as u32)?;
    Some((function, *Spelling::ALL.get(slot % SPELLINGS)?))
}

/// How many slots there are.
pub const SLOTS: usize = (crate::table::FUNCTIONS.len() + 1) * SPELLINGS;

/// Functions that only define or name what others use; their calls are not reported.
const WATCHED: [&str; 9] = [
    "MPI_Comm_set_name",
    "MPI_Pcontrol",
    "MPI_Type_commit",
    "MPI_Type_create_f90_complex",
    "MPI_Type_create_f90_integer",
    "MPI_Type_create_f90_real",
    "MPI_Type_dup",
    "MPI_Type_free",
    "MPI_Win_set_name",
];

impl Function {
    /// Whether a preloaded library wraps it. What later versions of the standard add neither communicates nor waits, but for flushing
    /// buffers, and fewer libraries have it.
    pub fn is_wrapped(&self) -> bool {
        let matters = self.class != Class::Other || WATCHED.contains(&self.name);
        matters && self.version <= Version::V4_0
    }

    fn is_spelled(&self, spelling: Spelling) -> bool {
        match spelling {
            Spelling::C => true,
            Spelling::LargeCount => self.has_large_count(),
            _ => self.is_fortran(),
        }
    }

    fn library(&self, spelling: Spelling) -> Library {
        match (spelling, self.version) {
            (Spelling::LargeCount, _) => Library::LargeCount,
            (_, Version::V3_1) => Library::Mpi3,
            _ => Library::Mpi4,
        }
    }
}

/// Writes the lines of a library.
///
/// # Errors
/// Those of `to`.
pub fn write(library: Library, to: &mut impl Write) -> Result {
    for (number, function) in functions().filter(|(_, function)| function.is_wrapped()) {
        let spellings = Spelling::ALL.into_iter().filter(|spelling| function.is_spelled(*spelling));
        for spelling in spellings.filter(|spelling| function.library(*spelling) == library) {
            to.write_str("wrapper!(")?;
            spelling.write(function.name, to)?;
            writeln!(to, ", {});", slot(number, spelling))?;
        }
    }
    Ok(())
}
