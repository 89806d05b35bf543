//! Recognises code of the OpenMP runtime, whose addresses say nothing about the program.
//!
//! Runtimes pass their own addresses if the program's call was a tail call, and for parts of `taskloop` and `cancel`.
//! The construct around has an address in the program.

use omptrace_runtimes::Runtime;

use crate::files::loaded_module::file_name;

/// Whether a path is an OpenMP runtime's library, by its name: `libgomp.so.1`, `libgomp-a34b3233.so.1.0.0` in Python
/// wheels, `libomptarget.rtl.x86_64.so`.
pub fn is_openmp_runtime(path: &str) -> bool {
    Runtime::has_code_in(file_name(path))
}

/// Whether a function belongs to a runtime that is linked into the program.
pub(crate) fn is_runtime_function(name: &str) -> bool {
    ["__kmp", "__tgt_", "GOMP_"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_the_name_of_their_library() {
        for path in [
            "/usr/lib/llvm-19/lib/libomp.so.5",
            "/opt/intel/libiomp5.so",
            "libgomp-a34b3233.so.1.0.0",
            "libomptarget.rtl.amdgpu.so",
            "libomp-19.so.5",
        ] {
            assert!(is_openmp_runtime(path), "{path}");
        }
        for path in ["/home/me/libompfast.so", "libomptrace.so", "app", ""] {
            assert!(!is_openmp_runtime(path), "{path}");
        }
    }

    #[test]
    fn functions_of_a_linked_runtime_are_known_by_name() {
        assert!(is_runtime_function("__kmpc_taskloop"));
        assert!(is_runtime_function("GOMP_parallel"));
        assert!(!is_runtime_function("main"));
    }
}
