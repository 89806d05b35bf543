//! The GCC release of a libgomp, and whether it searches for tools itself.

use core::ffi::CStr;
use core::slice;

use interpose::elf::begins_with;

/// For each release, newest first: a function that it added, and the version that a tool gets.
const RELEASES: &[(&CStr, &CStr)] = &[
    (c"GOMP_barrier_ext", c"libgomp of GCC 17 or later through libomptgomp"),
    (c"omp_target_memset", c"libgomp of GCC 16 through libomptgomp"),
    (c"GOMP_interop", c"libgomp of GCC 15 through libomptgomp"),
    (c"GOMP_target_map_indirect_ptr", c"libgomp of GCC 14 through libomptgomp"),
    (c"GOMP_taskwait_depend_nowait", c"libgomp of GCC 13 through libomptgomp"),
    (c"GOMP_scope_start", c"libgomp of GCC 12 through libomptgomp"),
    (c"GOMP_alloc", c"libgomp of GCC 11 through libomptgomp"),
    (c"GOMP_teams_reg", c"libgomp of GCC 9 or 10 through libomptgomp"),
    (c"GOMP_taskloop", c"libgomp of GCC 6 to 8 through libomptgomp"),
    (c"GOMP_offload_register", c"libgomp of GCC 5 through libomptgomp"),
    (c"GOMP_parallel", c"libgomp of GCC 4.9 through libomptgomp"),
    (c"GOMP_taskyield", c"libgomp of GCC 4.7 or 4.8 through libomptgomp"),
    (c"GOMP_task", c"libgomp of GCC 4.4 to 4.6 through libomptgomp"),
];

/// The version if no libgomp is known yet, or if it is older than all of [`RELEASES`].
pub(crate) const UNKNOWN: &CStr = c"libgomp through libomptgomp";

/// The version, derived from the functions that a libgomp has. Its file rarely tells more: distributions remove the
/// compiler's notes.
pub(crate) fn of(has: impl Fn(&CStr) -> bool) -> &'static CStr {
    let newest = RELEASES.iter().find(|(function, _)| has(function));
    newest.map_or(UNKNOWN, |(_, version)| version)
}

/// Whether a library loaded at `base` searches for a tool itself: its data contain the name of the function that every
/// tool defines (OpenMP 5.2, 19.3.1).
///
/// # Safety
/// The library stays loaded meanwhile.
pub(crate) unsafe fn looks_for_tools(base: usize, headers: &[libc::Elf64_Phdr]) -> bool {
    const NAME: &CStr = c"ompt_start_tool";
    let is_constant = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags & (libc::PF_R | libc::PF_W) == libc::PF_R
    };
    headers.iter().filter(is_constant).any(|header| {
        let begin = base.wrapping_add(header.p_vaddr as usize) as *const u8;
        // SAFETY: a loaded segment that is readable and not written.
        let bytes = unsafe { slice::from_raw_parts(begin, header.p_filesz as usize) };
        let mut places = 0..bytes.len();
        places.any(|place| bytes[place] == b'o' && begins_with(&bytes[place..], NAME.to_bytes()))
    })
}
