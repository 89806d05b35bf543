//! Fortran's handles, which are integers.

use core::ffi::CStr;

use crate::family::{Family, Interface};
use crate::next::Pmpi;
use crate::row::Handle;

/// A function that gives C's handle, and its name in the standard's interface.
#[derive(Debug)]
struct Conversion {
    f2c: Pmpi,
    from_int: Pmpi,
}

const fn conversion(f2c: &'static CStr, from_int: &'static CStr) -> Conversion {
    Conversion { f2c: Pmpi::of(f2c), from_int: Pmpi::of(from_int) }
}

static COMMUNICATORS: Conversion = conversion(c"PMPI_Comm_f2c", c"PMPI_Comm_fromint");
static WINDOWS: Conversion = conversion(c"PMPI_Win_f2c", c"PMPI_Win_fromint");
static FILES: Conversion = conversion(c"PMPI_File_f2c", c"PMPI_File_fromint");
static REQUESTS: Conversion = conversion(c"PMPI_Request_f2c", c"PMPI_Request_fromint");
static MESSAGES: Conversion = conversion(c"PMPI_Message_f2c", c"PMPI_Message_fromint");
static DATATYPES: Conversion = conversion(c"PMPI_Type_f2c", c"PMPI_Type_fromint");

/// Handles of the standard's interface below this are constants, the same in Fortran.
const CONSTANTS: u32 = 4096;

/// C's handle of what Fortran calls by this number.
pub(crate) fn handle(family: &Family, of: Handle, number: i32) -> u64 {
    let conversion = match of {
        Handle::Communicator => &COMMUNICATORS,
        Handle::Window => &WINDOWS,
        Handle::File => &FILES,
        Handle::Request => &REQUESTS,
        Handle::Message => &MESSAGES,
        Handle::Datatype => &DATATYPES,
        Handle::Session | Handle::None => return 0,
    };
    let bits = number as u32;
    let function = match family.interface {
        Interface::Mpich if of != Handle::File => return u64::from(bits),
        Interface::Abi if bits < CONSTANTS => return u64::from(bits),
        Interface::Abi if conversion.from_int.address() != 0 => &conversion.from_int,
        _ => &conversion.f2c,
    };
    // SAFETY: it looks the number up, and gives a null handle where there is none.
    unsafe { function.call([u64::from(bits), 0, 0, 0, 0]) }.unwrap_or(0)
}
