//! Which release of GCC a libgomp comes from, and whether it looks for tools itself.

use core::ffi::{CStr, c_int, c_void};
use core::slice;

/// The newest release first: a function that it brought, and the version that a tool gets.
const RELEASES: &[(&CStr, &CStr)] = &[
    (
        c"GOMP_barrier_ext",
        c"libgomp of GCC 17 or later through libomptgomp",
    ),
    (
        c"omp_target_memset",
        c"libgomp of GCC 16 through libomptgomp",
    ),
    (c"GOMP_interop", c"libgomp of GCC 15 through libomptgomp"),
    (
        c"GOMP_target_map_indirect_ptr",
        c"libgomp of GCC 14 through libomptgomp",
    ),
    (
        c"GOMP_taskwait_depend_nowait",
        c"libgomp of GCC 13 through libomptgomp",
    ),
    (
        c"GOMP_scope_start",
        c"libgomp of GCC 12 through libomptgomp",
    ),
    (c"GOMP_alloc", c"libgomp of GCC 11 through libomptgomp"),
    (
        c"GOMP_teams_reg",
        c"libgomp of GCC 9 or 10 through libomptgomp",
    ),
    (
        c"GOMP_taskloop",
        c"libgomp of GCC 6 to 8 through libomptgomp",
    ),
    (
        c"GOMP_offload_register",
        c"libgomp of GCC 5 through libomptgomp",
    ),
    (c"GOMP_parallel", c"libgomp of GCC 4.9 through libomptgomp"),
    (
        c"GOMP_taskyield",
        c"libgomp of GCC 4.7 or 4.8 through libomptgomp",
    ),
    (
        c"GOMP_task",
        c"libgomp of GCC 4.4 to 4.6 through libomptgomp",
    ),
];

/// The version where no libgomp is known yet, or it is older than all of [`RELEASES`].
pub(crate) const UNKNOWN: &CStr = c"libgomp through libomptgomp";

/// The version by the functions that a libgomp has. Its file rarely says more: distributions remove the compiler's notes.
pub(crate) fn of(has: impl Fn(&CStr) -> bool) -> &'static CStr {
    let newest = RELEASES.iter().find(|(function, _)| has(function));
    newest.map_or(UNKNOWN, |(_, version)| version)
}

/// The state of a `scan`: what it looks for, and what it found.
struct Scan {
    /// An address in the library.
    inside: usize,
    has_name: bool,
}

/// Whether the library at `inside` looks for a tool itself: it has the name of the function that every tool defines
/// (OpenMP 5.2, 19.3.1).
pub(crate) fn looks_for_tools(inside: *const c_void) -> bool {
    let mut wanted = Scan {
        inside: inside as usize,
        has_name: false,
    };
    // SAFETY: `scan` gets a pointer to a `Scan`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(scan), (&raw mut wanted).cast()) };
    wanted.has_name
}

unsafe extern "C" fn scan(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
    // SAFETY: the loader passes its own description of a library, and `looks_for_tools` a `Scan`.
    let (info, wanted) = unsafe { (&*info, &mut *wanted.cast::<Scan>()) };
    // SAFETY: the loader's program headers, as many as it says.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let place = |header: &libc::Elf64_Phdr| {
        let begin = info.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
        begin..begin.wrapping_add(header.p_filesz as usize)
    };
    let mut loaded = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD);
    if !loaded
        .clone()
        .any(|header| place(header).contains(&wanted.inside))
    {
        return 0;
    }
    const NAME: &CStr = c"ompt_start_tool";
    wanted.has_name = loaded.any(|header| {
        let bytes = place(header);
        let is_constant = header.p_flags & (libc::PF_R | libc::PF_W) == libc::PF_R;
        // SAFETY: a segment that is loaded, may be read and is not written.
        is_constant
            && unsafe {
                let name = NAME.to_bytes();
                !libc::memmem(
                    bytes.start as *const c_void,
                    bytes.len(),
                    name.as_ptr().cast(),
                    name.len(),
                )
                .is_null()
            }
    });
    1
}
