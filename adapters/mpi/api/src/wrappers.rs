//! Generates the source of the wrappers that the preloaded libraries export: one line for each symbol.
//!
//! ```text
//! wrapper!(MPI_Send, 2768);       346 * 8 + Spelling::C
//! wrapper!(mpi_send_, 2770);      346 * 8 + Spelling::Underscore
//! ```
//!
//! Programs test which functions exist (`dlsym`, weak references) and call those that they find. So there are three
//! libraries; an MPI library has either all functions of one of them or none.

use core::fmt::{Result, Write};

use crate::{Class, Function, Version, functions};

/// A preloaded library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `libomptmpi.so`: functions of MPI 3.1.
    Mpi3,
    /// `libomptmpi4.so`: the functions that MPI 4.0 adds.
    Mpi4,
    /// `libomptmpi4c.so`: the variants for large counts.
    LargeCount,
}

/// A binding of a function with the spelling of its symbol.
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

/// Number of slots for each function.
const SPELLINGS: usize = 8;

impl Spelling {
    /// All spellings.
    pub const ALL: [Spelling; 7] = [
        Spelling::C,
        Spelling::LargeCount,
        Spelling::Underscore,
        Spelling::TwoUnderscores,
        Spelling::Lower,
        Spelling::Upper,
        Spelling::F08,
    ];

    /// Whether the spelling is one for Fortran.
    pub fn is_fortran(self) -> bool {
        !matches!(self, Spelling::C | Spelling::LargeCount)
    }

    /// Writes the symbol for the function with this C name.
    ///
    /// # Errors
    /// The errors of `to`.
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

/// The number of a symbol, which combines the function's number and the spelling.
pub fn slot(number: u32, spelling: Spelling) -> usize {
    number as usize * SPELLINGS + spelling as usize
}

/// The function and the spelling for a slot.
pub fn of_slot(slot: usize) -> Option<(&'static Function, Spelling)> {
    let function = crate::function((slot / SPELLINGS) as u32)?;
    Some((function, *Spelling::ALL.get(slot % SPELLINGS)?))
}

/// Number of slots.
pub const SLOTS: usize = (crate::table::FUNCTIONS.len() + 1) * SPELLINGS;

/// Functions of the class `Other` that are wrapped nevertheless, because they define or name objects that other calls
/// use; their calls are not reported.
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
    /// Whether a preloaded library wraps the function. Functions of later versions of the standard neither communicate
    /// nor wait, except those that flush buffers, and few libraries have them.
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

/// Writes the source lines for a library.
///
/// # Errors
/// The errors of `to`.
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
