//! Fortran handles, which are integers.

use core::ffi::CStr;

use crate::family::{Family, Interface};
use crate::next::Pmpi;
use crate::row::Handle;

/// A function that converts to a C handle, and its name in the standard's ABI.
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

/// In the standard's ABI, handles below this value are constants with the same value in Fortran.
const CONSTANTS: u32 = 4096;

/// The C handle for a Fortran handle.
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
    // SAFETY: the function looks the number up and returns a null handle if it is unknown.
    unsafe { function.call([u64::from(bits), 0, 0, 0, 0]) }.unwrap_or(0)
}
