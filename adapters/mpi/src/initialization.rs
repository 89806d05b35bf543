//! Reports at the initialization of MPI: the library, the rank of the process in its job, the first communicators, and
//! the sizes of predefined datatypes.

use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use std::alloc::{GlobalAlloc, Layout};

use interpose::memory::KernelMemory;

use crate::call::{Call, Context};
use crate::family::{Interface, library};
use crate::next::{Pmpi, defined_in_front, symbol, text_to, to};
use crate::object::{self, HAS_WORLD};
use crate::row::Kind;

static GET_LIBRARY_VERSION: Pmpi = Pmpi::of(c"PMPI_Get_library_version");
static GET_VERSION: Pmpi = Pmpi::of(c"PMPI_Get_version");
static QUERY_THREAD: Pmpi = Pmpi::of(c"PMPI_Query_thread");

/// Makes all these reports. A session that is created after `MPI_Init` adds nothing to them, and its report would replace
/// the rank and the thread level by nothing.
#[inline(never)]
pub(crate) fn describe(context: &Context, call: &Call) {
    interpose::plant_fault!();
    let is_world = call.row.kind != Kind::SessionInit;
    // Relaxed: communicators are created later in the program's own order.
    let had_world = HAS_WORLD.fetch_or(is_world, Ordering::Relaxed);
    if had_world && !is_world {
        return;
    }
    let world = context.family.world;
    // SAFETY: by the caller's promise, here and below.
    let place = if is_world { unsafe { object::rank_and_size(world) } } else { None };
    let mut text = Text::new();
    // The text holds as much as is known and fits.
    // SAFETY: MPI is initialized, here and below.
    let _ = unsafe { write(&mut text, context, call, place) };
    if let Some(text) = text.c_str() {
        (context.tracer.describe)(text.as_ptr());
    }
    if is_world && !had_world {
        // SAFETY: the library's constants.
        unsafe {
            object::new_communicator(context, world, 0);
            object::new_communicator(context, context.family.own, 0);
        }
    }
    // SAFETY: as above.
    unsafe { tell_datatypes(context) };
}

/// # Safety
/// The call has initialized MPI.
unsafe fn write(to: &mut Text, context: &Context, call: &Call, place: Option<(i32, i32)>) -> fmt::Result {
    let (mut major, mut minor) = (0_i32, 0_i32);
    // SAFETY: by the caller's promise, here and below.
    unsafe { GET_VERSION.succeeds([crate::next::to(&mut major), crate::next::to(&mut minor), 0, 0, 0]) };
    to.write_str("{\"library\":")?;
    // SAFETY: as above.
    unsafe { to.write_answer(&GET_LIBRARY_VERSION) }?;
    to.write_str(",\"path\":")?;
    to.write_string(library().map_or(b"", CStr::to_bytes))?;
    write!(to, ",\"family\":\"{}\",\"version\":[{major},{minor}]", context.family.name())?;
    if let Some((rank, size)) = place {
        write!(to, ",\"rank\":{rank},\"size\":{size}")?;
    }
    // SAFETY: as above.
    unsafe { write_thread_level(to, context, call) }?;
    if let Some(path) = hidden_by() {
        to.write_str(",\"hidden_by\":")?;
        to.write_string(path.to_bytes())?;
    }
    to.write_str("}")
}

/// The file that defines one of the most common functions before this library in the search order, as another tool or
/// the program itself may do. Calls from there bypass this library if they use the other name (`PMPI_Send`).
fn hidden_by() -> Option<&'static CStr> {
    const USUAL: [&CStr; 12] = [
        c"MPI_Send",
        c"MPI_Recv",
        c"MPI_Isend",
        c"MPI_Irecv",
        c"MPI_Wait",
        c"MPI_Waitall",
        c"MPI_Sendrecv",
        c"MPI_Barrier",
        c"MPI_Bcast",
        c"MPI_Reduce",
        c"MPI_Allreduce",
        c"MPI_Alltoall",
    ];
    USUAL.into_iter().find_map(defined_in_front)
}

/// # Safety
/// The call has initialized MPI.
unsafe fn write_thread_level(to: &mut Text, context: &Context, call: &Call) -> fmt::Result {
    const REQUIRED: u8 = 2;
    let required = match call.row.kind {
        Kind::Init => context.family.thread_levels[0],
        Kind::InitThread => call.integer(REQUIRED),
        // The level is in an info object.
        _ => return Ok(()),
    };
    let mut provided = -1_i32;
    // SAFETY: by the caller's promise.
    unsafe { QUERY_THREAD.succeeds([crate::next::to(&mut provided), 0, 0, 0, 0]) };
    let [required, provided] = [required, provided].map(|level| context.family.thread_level(level));
    write!(to, ",\"thread_level\":{{\"required\":\"{required}\",\"provided\":\"{provided}\"}}")
}

/// Text that is written without an allocator. If the text does not fit, it is discarded as a whole.
#[derive(Debug)]
struct Text {
    bytes: [u8; 2048],
    length: usize,
    is_cut: bool,
}

impl Text {
    fn new() -> Text {
        Text { bytes: [0; 2048], length: 0, is_cut: false }
    }

    fn c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).ok().filter(|_| !self.is_cut)
    }

    /// Writes a JSON string. Bytes other than ASCII text become question marks.
    fn write_string(&mut self, text: &[u8]) -> fmt::Result {
        self.write_char('"')?;
        for byte in text {
            match byte {
                b'"' | b'\\' => write!(self, "\\{}", char::from(*byte))?,
                b' '..=b'~' => self.write_char(char::from(*byte))?,
                b'\t' => self.write_char(' ')?,
                _ => self.write_char('?')?,
            }
        }
        self.write_char('"')
    }

    /// Writes the first line of a text of the library. The function takes the addresses of the text and of its length.
    ///
    /// # Safety
    /// `function` is such a function and may be called.
    unsafe fn write_answer(&mut self, function: &Pmpi) -> fmt::Result {
        /// Size of the buffer. `MPI_MAX_LIBRARY_VERSION_STRING` is 8192 at most.
        const ROOM: usize = 1 << 14;
        /// Maximum length that is written.
        const MOST: usize = 300;
        let Ok(layout) = Layout::array::<c_char>(ROOM) else { return Err(fmt::Error) };
        // SAFETY: the layout's size is not 0; by the caller's promise.
        unsafe {
            let room = KernelMemory.alloc_zeroed(layout).cast::<c_char>();
            if room.is_null() {
                return Err(fmt::Error);
            }
            let mut length = 0_i32;
            function.succeeds([text_to(room), to(&mut length), 0, 0, 0]);
            let bytes = core::slice::from_raw_parts(room.cast::<u8>(), MOST);
            let end = bytes.iter().position(|byte| matches!(byte, 0 | b'\n' | b'\r')).unwrap_or(MOST);
            let written = self.write_string(&bytes[..end]);
            KernelMemory.dealloc(room.cast(), layout);
            written
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        // The last byte stays 0.
        if end >= self.bytes.len() {
            self.is_cut = true;
            return Err(fmt::Error);
        }
        self.bytes[self.length..end].copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Predefined datatypes of Open MPI, by the names of its variables, which begin with `ompi_mpi_`.
const OPEN_MPI: [&CStr; 70] = [
    c"ompi_mpi_char",
    c"ompi_mpi_signed_char",
    c"ompi_mpi_unsigned_char",
    c"ompi_mpi_byte",
    c"ompi_mpi_short",
    c"ompi_mpi_unsigned_short",
    c"ompi_mpi_int",
    c"ompi_mpi_unsigned",
    c"ompi_mpi_long",
    c"ompi_mpi_unsigned_long",
    c"ompi_mpi_long_long_int",
    c"ompi_mpi_unsigned_long_long",
    c"ompi_mpi_float",
    c"ompi_mpi_double",
    c"ompi_mpi_long_double",
    c"ompi_mpi_wchar",
    c"ompi_mpi_packed",
    c"ompi_mpi_c_bool",
    c"ompi_mpi_c_complex",
    c"ompi_mpi_c_float_complex",
    c"ompi_mpi_c_double_complex",
    c"ompi_mpi_c_long_double_complex",
    c"ompi_mpi_cxx_bool",
    c"ompi_mpi_cxx_cplex",
    c"ompi_mpi_cxx_dblcplex",
    c"ompi_mpi_cxx_ldblcplex",
    c"ompi_mpi_int8_t",
    c"ompi_mpi_uint8_t",
    c"ompi_mpi_int16_t",
    c"ompi_mpi_uint16_t",
    c"ompi_mpi_int32_t",
    c"ompi_mpi_uint32_t",
    c"ompi_mpi_int64_t",
    c"ompi_mpi_uint64_t",
    c"ompi_mpi_aint",
    c"ompi_mpi_offset",
    c"ompi_mpi_count",
    c"ompi_mpi_float_int",
    c"ompi_mpi_double_int",
    c"ompi_mpi_long_int",
    c"ompi_mpi_short_int",
    c"ompi_mpi_longdbl_int",
    c"ompi_mpi_2int",
    c"ompi_mpi_2integer",
    c"ompi_mpi_2real",
    c"ompi_mpi_2dblprec",
    c"ompi_mpi_2cplex",
    c"ompi_mpi_2dblcplex",
    c"ompi_mpi_character",
    c"ompi_mpi_logical",
    c"ompi_mpi_logical1",
    c"ompi_mpi_logical2",
    c"ompi_mpi_logical4",
    c"ompi_mpi_logical8",
    c"ompi_mpi_integer",
    c"ompi_mpi_integer1",
    c"ompi_mpi_integer2",
    c"ompi_mpi_integer4",
    c"ompi_mpi_integer8",
    c"ompi_mpi_integer16",
    c"ompi_mpi_real",
    c"ompi_mpi_real2",
    c"ompi_mpi_real4",
    c"ompi_mpi_real8",
    c"ompi_mpi_real16",
    c"ompi_mpi_dblprec",
    c"ompi_mpi_cplex",
    c"ompi_mpi_complex8",
    c"ompi_mpi_complex16",
    c"ompi_mpi_complex32",
];

/// Predefined datatypes of MPICH whose handles contain the size in the second byte: the last two bytes of the handles.
const MPICH: [u16; 64] = [
    0x0101, 0x0118, 0x0102, 0x010d, 0x040e, 0x0203, 0x0204, 0x0405, 0x0406, 0x0807, 0x0808, 0x040a, 0x080b,
    0x100c, 0x0809, 0x0819, 0x010f, 0x0816, 0x081e, 0x1022, 0x041d, 0x041c, 0x081f, 0x041b, 0x0820, 0x0821,
    0x1023, 0x011a, 0x0427, 0x0829, 0x102b, 0x0828, 0x102a, 0x202c, 0x012d, 0x022f, 0x0430, 0x0831, 0x0137,
    0x0238, 0x0439, 0x083a, 0x013b, 0x023c, 0x043d, 0x083e, 0x013f, 0x0840, 0x1041, 0x2042, 0x0246, 0x0843,
    0x0844, 0x0845, 0x0133, 0x0834, 0x1035, 0x2036, 0x0824, 0x1025, 0x2026, 0x0417, 0x0226, 0x1032,
];
/// MPICH's pairs of a number and an `int`: handles and sizes.
const MPICH_PAIRS: [(u64, u64); 5] =
    [(0x8c00_0000, 8), (0x8c00_0001, 12), (0x8c00_0002, 12), (0x8c00_0003, 6), (0x8c00_0004, 20)];

/// Predefined datatypes of the standard's ABI whose sizes are queried from the library.
const ABI: [u64; 44] = [
    0x201, 0x202, 0x203, 0x207, 0x208, 0x209, 0x20a, 0x20b, 0x20c, 0x20d, 0x20e, 0x20f, 0x210, 0x212, 0x214,
    0x216, 0x218, 0x219, 0x21a, 0x21b, 0x21c, 0x21d, 0x21e, 0x220, 0x224, 0x228, 0x229, 0x22a, 0x22b, 0x22c,
    0x22d, 0x230, 0x231, 0x232, 0x238, 0x23c, 0x240, 0x241, 0x243, 0x244, 0x245, 0x247, 0x248, 0x249,
];
/// Predefined datatypes of the standard's ABI whose handles contain the size: a power of two in three bits.
const ABI_SIZED: [u64; 22] = [
    0x250, 0x251, 0x258, 0x259, 0x2c0, 0x2c1, 0x2c8, 0x2c9, 0x2ca, 0x2d0, 0x2d1, 0x2d2, 0x2d3, 0x2d8, 0x2d9,
    0x2da, 0x2db, 0x2e0, 0x2e1, 0x2e2, 0x2e3, 0x2eb,
];

/// # Safety
/// MPI is initialized.
unsafe fn tell_datatypes(context: &Context) {
    match context.family.interface {
        Interface::OpenMpi => {
            let all = OPEN_MPI.into_iter().map(symbol).filter(|address| *address != 0);
            // SAFETY: objects of the library.
            all.for_each(|address| unsafe { object::define_datatype(context, address as u64) });
        }
        Interface::Mpich => {
            let sized = MPICH.map(|bytes| (0x4c00_0000 | u64::from(bytes), u64::from(bytes >> 8)));
            for (datatype, bytes) in sized.into_iter().chain(MPICH_PAIRS) {
                object::tell_datatype(context, datatype, bytes);
            }
        }
        Interface::Abi => {
            // SAFETY: each library with this ABI has these datatypes.
            ABI.iter().for_each(|datatype| unsafe { object::define_datatype(context, *datatype) });
            for datatype in ABI_SIZED {
                object::tell_datatype(context, datatype, 1 << (datatype >> 3 & 7));
            }
        }
    }
}
