//! The three binary interfaces (ABIs) of MPI, and the differences between them.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::alloc::{GlobalAlloc, Layout};

use interpose::elf;
use interpose::memory::KernelMemory;

use crate::fortran::Fortran;
use crate::next::{Pmpi, file_name, module, symbol, to};
use crate::tracer::{peer, tag};

/// The binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    OpenMpi,
    /// MPICH's ABI, which Intel MPI, Cray MPICH, MVAPICH and ParaStation share.
    Mpich,
    /// The ABI of the MPI 5.0 standard.
    Abi,
}

/// Maximum number of words of a status.
pub(crate) const STATUS_WORDS: usize = 4;

/// The constants of the ABI of the library in use.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) interface: Interface,
    /// Mask of the bits of a word that belong to a handle.
    handle_bits: u64,
    any_source: i32,
    any_tag: i32,
    proc_null: i32,
    root: i32,
    /// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE`.
    pub(crate) status_ignore: u64,
    pub(crate) in_place: u64,
    /// Size of a status in bytes. `source`, `tag` etc. are the positions of its fields.
    pub(crate) status_bytes: usize,
    source: usize,
    tag: usize,
    pub(crate) world: u64,
    pub(crate) own: u64,
    pub(crate) comm_null: u64,
    pub(crate) request_null: u64,
    /// The levels of thread support: single, funneled, serialized, multiple.
    pub(crate) thread_levels: [i32; 4],
    pub(crate) fortran: Fortran,
}

/// `MPI_UNDEFINED`, the same in all ABIs.
pub(crate) const UNDEFINED: i32 = -32766;

/// The contents of a status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) peer: i32,
    pub(crate) tag: i32,
    pub(crate) bytes: u64,
}

static GET_COUNT: Pmpi = Pmpi::of(c"PMPI_Get_elements_x");
static TEST_CANCELLED: Pmpi = Pmpi::of(c"PMPI_Test_cancelled");
/// `MPI_BYTE` in the ABI of the standard.
const ABI_BYTE: u64 = 0x247;

impl Family {
    /// A handle that was passed by value.
    #[inline(always)]
    pub(crate) fn handle(&self, word: u64) -> u64 {
        word & self.handle_bits
    }

    /// The handle at an address, or a further one in an array.
    ///
    /// # Safety
    /// There is a handle at this position.
    #[inline(always)]
    pub(crate) unsafe fn handle_at(&self, address: u64, place: usize) -> u64 {
        // SAFETY: by the caller's promise.
        unsafe {
            match self.handle_bits {
                u64::MAX => (address as *const u64).add(place).read(),
                _ => u64::from((address as *const u32).add(place).read()),
            }
        }
    }

    /// `MPI_BYTE`.
    pub(crate) fn byte(&self) -> u64 {
        match self.interface {
            Interface::OpenMpi => symbol(c"ompi_mpi_byte") as u64,
            Interface::Mpich => 0x4c00_010d,
            Interface::Abi => ABI_BYTE,
        }
    }

    /// `MPI_ERRORS_RETURN`, if it is known.
    pub(crate) fn errors_return(&self) -> Option<u64> {
        match self.interface {
            Interface::OpenMpi => {
                Some(symbol(c"ompi_mpi_errors_return") as u64).filter(|handler| *handler != 0)
            }
            Interface::Mpich => Some(0x5400_0001),
            Interface::Abi => None,
        }
    }

    /// Converts a rank to the representation in traces.
    #[inline(always)]
    pub(crate) fn peer(&self, rank: i32) -> i32 {
        match rank {
            rank if rank >= 0 => rank,
            rank if rank == self.any_source => peer::ANY,
            rank if rank == self.proc_null => peer::PROC_NULL,
            rank if rank == self.root => peer::ROOT,
            _ => peer::NONE,
        }
    }

    /// Converts a tag to the representation in traces.
    #[inline(always)]
    pub(crate) fn tag(&self, tag: i32) -> i32 {
        match tag {
            tag if tag >= 0 => tag,
            tag if tag == self.any_tag => tag::ANY,
            _ => tag::NONE,
        }
    }

    /// Reads the status of a completed request.
    ///
    /// # Safety
    /// `status` is the address of a status.
    pub(crate) unsafe fn completed(&self, status: u64) -> Received {
        // SAFETY: by the caller's promise.
        let (received, is_cancelled) = unsafe { self.read(status) };
        Received { peer: if is_cancelled { peer::CANCELLED } else { received.peer }, ..received }
    }

    /// Reads the status of another successful call. Such a call cannot be cancelled, and MPICH leaves the cancelled bit
    /// of its status undefined.
    ///
    /// # Safety
    /// `status` is the address of a status.
    #[inline(always)]
    pub(crate) unsafe fn received(&self, status: u64) -> Received {
        // SAFETY: by the caller's promise.
        unsafe { self.read(status) }.0
    }

    /// The contents of a status, and whether the request was cancelled.
    ///
    /// # Safety
    /// `status` is the address of a status.
    #[inline(always)]
    unsafe fn read(&self, status: u64) -> (Received, bool) {
        let words = status as *const i32;
        // SAFETY: by the caller's promise. Open MPI's fields: source, tag, error, cancelled, number of bytes. MPICH's
        // fields: low half of the number of bytes, its high half with the cancelled bit, source, tag, error.
        let (source, tag, bytes, is_cancelled) = unsafe {
            let (source, tag) = (words.add(self.source).read(), words.add(self.tag).read());
            let (bytes, is_cancelled) = match self.interface {
                Interface::OpenMpi => (words.add(4).cast::<u64>().read_unaligned(), words.add(3).read() != 0),
                Interface::Mpich => {
                    let [low, high] = [words, words.add(1)].map(|word| u64::from(word.cast::<u32>().read()));
                    (high >> 1 << 32 | low, high & 1 != 0)
                }
                Interface::Abi => count_of(status),
            };
            (source, tag, bytes, is_cancelled)
        };
        (Received { peer: self.peer(source), tag: self.tag(tag), bytes }, is_cancelled)
    }

    /// The name of a level of thread support.
    pub(crate) fn thread_level(&self, level: i32) -> &'static str {
        const NAMES: [&str; 4] =
            ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];
        let place = self.thread_levels.iter().position(|its| *its == level);
        place.and_then(|place| NAMES.get(place)).copied().unwrap_or("unknown")
    }

    /// The ABI's name in traces.
    pub(crate) fn name(&self) -> &'static str {
        match self.interface {
            Interface::OpenMpi => "openmpi",
            Interface::Mpich => "mpich",
            Interface::Abi => "abi",
        }
    }
}

/// Number of bytes, and whether the request was cancelled, for a status whose contents are private to the library.
///
/// # Safety
/// `status` is the address of a status.
unsafe fn count_of(status: u64) -> (u64, bool) {
    let (mut bytes, mut is_cancelled) = (0_i64, 0_i32);
    // SAFETY: by the caller's promise; both functions only read the status.
    unsafe {
        GET_COUNT.succeeds([status, ABI_BYTE, to(&mut bytes), 0, 0]);
        TEST_CANCELLED.succeeds([status, to(&mut is_cancelled), 0, 0, 0]);
    }
    (bytes.max(0) as u64, is_cancelled != 0)
}

/// The family of the library in use; null until it has been determined.
static FAMILY: AtomicPtr<Family> = AtomicPtr::new(null_mut());

/// The family of the library in use; `None` only if there is no memory.
#[inline(always)]
pub(crate) fn family() -> Option<&'static Family> {
    // Acquire; pairs with Release in `find`.
    // SAFETY: null, or never freed.
    unsafe { FAMILY.load(Ordering::Acquire).as_ref() }.or_else(find)
}

static INIT: Pmpi = Pmpi::of(c"PMPI_Init");
static ABI_VERSION: Pmpi = Pmpi::of(c"PMPI_Abi_get_version");

/// Path of the MPI library.
pub(crate) fn library() -> Option<&'static core::ffi::CStr> {
    Some(module(INIT.address())?.0)
}

#[cold]
fn find() -> Option<&'static Family> {
    let layout = Layout::new::<Family>();
    // SAFETY: the layout's size is not 0.
    let made = unsafe { KernelMemory.alloc(layout) }.cast::<Family>();
    if made.is_null() {
        return None;
    }
    // SAFETY: new memory of sufficient size.
    unsafe { made.write(look()) };
    // Release; pairs with Acquire in `family`. Acquire, as there.
    match FAMILY.compare_exchange(null_mut(), made, Ordering::Release, Ordering::Acquire) {
        // SAFETY: never freed.
        Ok(_) => unsafe { made.as_ref() },
        Err(other) => {
            // SAFETY: allocated above, and no other thread knows it.
            unsafe { KernelMemory.dealloc(made.cast(), layout) };
            // SAFETY: as above.
            unsafe { other.as_ref() }
        }
    }
}

fn look() -> Family {
    let is_abi = library().is_some_and(|path| elf::begins_with(file_name(path), b"libmpi_abi"));
    let (mut major, mut minor) = (-1_i32, 0_i32);
    // Libraries with an older ABI have the function, too, and return -1.
    // SAFETY: the function may be called before MPI is initialized.
    let answers = unsafe { ABI_VERSION.succeeds([to(&mut major), to(&mut minor), 0, 0, 0]) };
    let world = symbol(c"ompi_mpi_comm_world") as u64;
    match () {
        () if is_abi || answers && major >= 1 => abi(),
        () if world != 0 => open_mpi(world),
        () => mpich(),
    }
}

fn abi() -> Family {
    Family {
        interface: Interface::Abi,
        handle_bits: u64::MAX,
        any_source: -1,
        any_tag: -2,
        proc_null: -3,
        root: -4,
        status_ignore: 0,
        in_place: 1,
        status_bytes: 32,
        source: 0,
        tag: 1,
        world: 0x101,
        own: 0x102,
        comm_null: 0x100,
        request_null: 0x180,
        thread_levels: [0, 1024, 2048, 4096],
        fortran: Fortran::find(),
    }
}

fn open_mpi(world: u64) -> Family {
    Family {
        interface: Interface::OpenMpi,
        handle_bits: u64::MAX,
        any_source: -1,
        any_tag: -1,
        proc_null: -2,
        root: -4,
        status_ignore: 0,
        in_place: 1,
        status_bytes: 24,
        source: 0,
        tag: 1,
        world,
        own: symbol(c"ompi_mpi_comm_self") as u64,
        comm_null: symbol(c"ompi_mpi_comm_null") as u64,
        request_null: symbol(c"ompi_request_null") as u64,
        thread_levels: [0, 1, 2, 3],
        fortran: Fortran::find(),
    }
}

fn mpich() -> Family {
    Family {
        interface: Interface::Mpich,
        handle_bits: u32::MAX as u64,
        any_source: -2,
        any_tag: -1,
        proc_null: -1,
        root: -3,
        status_ignore: 1,
        in_place: u64::MAX,
        status_bytes: 20,
        source: 2,
        tag: 3,
        world: 0x4400_0000,
        own: 0x4400_0001,
        comm_null: 0x0400_0000,
        request_null: 0x2c00_0000,
        thread_levels: [0, 1, 2, 3],
        fortran: Fortran::find(),
    }
}
