//! The next definition of a function (`RTLD_NEXT`), so that other PMPI tools stay in the chain; otherwise the
//! definition in the MPI library, which a Python module may have opened for itself only (`RTLD_LOCAL`).

use core::ffi::{CStr, c_char, c_void};
use core::fmt::{self, Write};
use core::mem::{transmute, zeroed};
use core::sync::atomic::{AtomicUsize, Ordering};

use interpose::elf::{self, Library};
use omptrace_mpi_api::wrappers::{self, SLOTS};

/// The next definition of each symbol; 0 until it is found.
pub(crate) static NEXT: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

/// The address of the next definition.
#[inline(always)]
pub(crate) fn of_slot(slot: usize) -> usize {
    // Relaxed: a thread that finds another value finds the same function.
    match NEXT.get(slot).map_or(0, |next| next.load(Ordering::Relaxed)) {
        0 => find_slot(slot),
        address => address,
    }
}

#[cold]
fn find_slot(slot: usize) -> usize {
    let mut name = Name::new();
    if let Some((function, spelling)) = wrappers::of_slot(slot) {
        // The buffer has room for the longest name.
        let _ = spelling.write(function.name, &mut name);
    }
    let address = match function(&name) {
        0 => missing as *const () as usize,
        address => address,
    };
    if let Some(next) = NEXT.get(slot) {
        next.store(address, Ordering::Relaxed);
    }
    address
}

/// Called if no library has the function: returns an error, `MPI_ERR_OTHER` or a similar one.
extern "C" fn missing() -> u64 {
    15
}

/// A symbol's name.
#[derive(Debug)]
struct Name {
    /// Begins with `P`, which is not part of the symbol.
    text: [u8; 64],
    length: usize,
}

impl Name {
    fn new() -> Name {
        let mut text = [0; 64];
        text[0] = b'P';
        Name { text, length: 1 }
    }

    fn c_str(&self, from: usize) -> &CStr {
        self.text.get(from..).and_then(|text| CStr::from_bytes_until_nul(text).ok()).unwrap_or_default()
    }

    /// The name that programs call.
    fn symbol(&self) -> &CStr {
        self.c_str(1)
    }

    /// The profiling name (`PMPI_...`) that tools call.
    fn profiling(&self) -> &CStr {
        self.c_str(0)
    }
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        // The last byte stays 0.
        if end >= self.text.len() {
            return Err(fmt::Error);
        }
        self.text[self.length..end].copy_from_slice(text.as_bytes());
        if self.length == 1 && text.starts_with('m') {
            self.text[0] = b'p';
        }
        self.length = end;
        Ok(())
    }
}

fn function(name: &Name) -> usize {
    // SAFETY: a constant of the loader.
    let next = unsafe { interpose::symbol(libc::RTLD_NEXT, name.symbol()) } as usize;
    match next {
        address if address != 0 && !is_ours(address) => address,
        _ => match in_mpi_library(name.profiling()) {
            0 => in_mpi_library(name.symbol()),
            address => address,
        },
    }
}

/// Path and start address of the module that contains this address.
pub(crate) fn module(address: usize) -> Option<(&'static CStr, usize)> {
    // SAFETY: an all-zero structure of pointers; `dladdr` accepts any address, and its names exist as long as the
    // module.
    unsafe {
        let mut info: libc::Dl_info = zeroed();
        let is_found =
            libc::dladdr(address as *const c_void, &raw mut info) != 0 && !info.dli_fname.is_null();
        is_found.then(|| (elf::text(info.dli_fname), info.dli_fbase as usize))
    }
}

/// The last component of a path.
pub(crate) fn file_name(path: &CStr) -> &[u8] {
    let path = path.to_bytes();
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    path.get(start..).unwrap_or_default()
}

/// Whether the address is in one of our libraries: `libomptmpi4.so` may follow this library in the search order.
fn is_ours(address: usize) -> bool {
    module(address).is_some_and(|(path, _)| elf::begins_with(file_name(path), b"libomptmpi"))
}

/// The file whose function with this name programs find, if it is not one of our libraries.
pub(crate) fn defined_in_front(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: a constant of the loader.
    let found = unsafe { interpose::symbol(libc::RTLD_DEFAULT, name) } as usize;
    let (path, _) = module(found).filter(|_| found != 0)?;
    (!elf::begins_with(file_name(path), b"libomptmpi")).then_some(path)
}

/// The symbol with this name in an MPI library, whatever its scope; 0 if there is none.
fn in_mpi_library(name: &CStr) -> usize {
    let mut found = 0;
    // SAFETY: the C library's function.
    unsafe {
        interpose::modules::each(libc::dl_iterate_phdr, |info, headers| {
            // SAFETY: the library stays loaded during this call.
            let library = Library::of_headers(info.dlpi_addr as usize, headers);
            let of = |name: &CStr| library.as_ref().and_then(|library| library.function(name));
            if of(c"PMPI_Init").is_some() || of(c"pmpi_init_").is_some() {
                found = of(name).unwrap_or(0);
            }
            found != 0
        });
    }
    found
}

/// The address of a function or variable: a definition in the program itself has priority, such as its copies of a
/// library's variables.
pub(crate) fn symbol(name: &CStr) -> usize {
    // SAFETY: a constant of the loader.
    match unsafe { interpose::symbol(libc::RTLD_DEFAULT, name) } as usize {
        0 => in_mpi_library(name),
        address => address,
    }
}

/// A function of the MPI library that this library calls itself.
#[derive(Debug)]
pub(crate) struct Pmpi {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Pmpi {
    pub(crate) const fn of(name: &'static CStr) -> Pmpi {
        Pmpi { name, address: AtomicUsize::new(0) }
    }

    /// Address of the function; 0 if the library has none.
    pub(crate) fn address(&self) -> usize {
        const NOWHERE: usize = 1;
        // Relaxed: as above.
        match self.address.load(Ordering::Relaxed) {
            0 => {
                let address = symbol(self.name);
                self.address.store(if address == 0 { NOWHERE } else { address }, Ordering::Relaxed);
                address
            }
            NOWHERE => 0,
            address => address,
        }
    }

    /// Calls the function; `None` if the library has none. Surplus words are ignored.
    ///
    /// # Safety
    /// See the function.
    pub(crate) unsafe fn call(&self, [a, b, c, d, e]: [u64; 5]) -> Option<u64> {
        // SAFETY: by the caller's promise.
        unsafe { self.call_with([a, b, c, d, e, 0, 0]) }
    }

    /// Like [`Pmpi::call`], with more words.
    ///
    /// # Safety
    /// See the function.
    unsafe fn call_with(&self, [a, b, c, d, e, f, g]: [u64; 7]) -> Option<u64> {
        type Function = unsafe extern "C-unwind" fn(u64, u64, u64, u64, u64, u64, u64) -> u64;
        // SAFETY: 0, or a function whose parameters are all words.
        let function = unsafe { transmute::<usize, Option<Function>>(self.address()) }?;
        // SAFETY: by the caller's promise.
        Some(unsafe { function(a, b, c, d, e, f, g) })
    }

    /// Calls the function; true if it returns success.
    ///
    /// # Safety
    /// See the function.
    pub(crate) unsafe fn succeeds(&self, arguments: [u64; 5]) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { self.call(arguments) }.is_some_and(|result| result as i32 == 0)
    }

    /// Like [`Pmpi::succeeds`], with more words.
    ///
    /// # Safety
    /// See the function.
    pub(crate) unsafe fn succeeds_with(&self, arguments: [u64; 7]) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { self.call_with(arguments) }.is_some_and(|result| result as i32 == 0)
    }
}

/// The address of a variable, as an argument.
pub(crate) fn to<T>(variable: &mut T) -> u64 {
    (&raw mut *variable) as usize as u64
}

/// A string, as an argument.
pub(crate) fn text_to(text: *mut c_char) -> u64 {
    text as usize as u64
}
