//! The table of runtimes. To support another runtime, add a row.

use crate::runtime::{Fault, InstallFolder, Runtime, TaskCreation, Vendor};

/// The faults of Intel's runtime, which derives from the same code as LLVM's.
const FAULTS_OF_INTEL: &[Fault] =
    &[Fault::CrashesWithoutFirstThread, Fault::WantsTaskwaitDataEmpty, Fault::WritesBehindDependences];

/// The faults of LLVM's runtime and AMD's, which reports the same version.
const FAULTS_OF_LLVM: &[Fault] = &[
    Fault::CrashesWithoutFirstThread,
    Fault::WantsTaskwaitDataEmpty,
    Fault::WritesBehindDependences,
    Fault::WantsMessageOfError,
    Fault::FlushesBufferOnce,
];

/// Measured with LLVM 19 and two threads that get chunks of 1 to 600 ns: 390 to 480 ns on an idle machine, more on a
/// busy one.
const CHUNK_COST_OF_LIBOMP: u64 = 450;

/// Measured with LLVM 19 in programs whose threads do nothing else between two creations: 60 to 72 ns, and 360 to
/// 5,700 ns with one to three dependences, the more the more tasks and addresses there are.
const TASK_CREATION_OF_LIBOMP: Option<TaskCreation> =
    Some(TaskCreation { plain_ns: 80, with_dependences_ns: 2000 });

/// A runtime about which nothing is known.
const UNKNOWN: Runtime = Runtime {
    vendor: Vendor::Reference,
    name: "",
    libraries: &[],
    parts: &[],
    version: None,
    faults: &[],
    chunk_cost_ns: CHUNK_COST_OF_LIBOMP,
    task_creation: None,
    has_entries_of_libgomp: false,
    folders: &[],
    without_interface: "",
    remedy: "use a newer release of the runtime",
};

const fn folder(root: &'static str, prefix: &'static str, inside: &'static str) -> InstallFolder {
    InstallFolder { root, prefix, inside }
}

/// All runtimes. If a runtime can replace another, the first installed one in this order is used.
pub static RUNTIMES: &[Runtime] = &[
    Runtime {
        vendor: Vendor::Llvm,
        task_creation: TASK_CREATION_OF_LIBOMP,
        name: "LLVM",
        libraries: &["libomp", "libomp5"],
        parts: &["libomptarget"],
        version: Some("LLVM"),
        faults: FAULTS_OF_LLVM,
        has_entries_of_libgomp: true,
        folders: &[
            folder("/usr/lib", "llvm-", "lib"),
            folder("/usr/lib64", "llvm", "lib64"),
            folder("/opt", "rocm", "llvm/lib"),
            folder("/opt/AMD", "aocc-compiler-", "lib"),
        ],
        ..UNKNOWN
    },
    Runtime {
        vendor: Vendor::Intel,
        task_creation: TASK_CREATION_OF_LIBOMP,
        name: "Intel",
        libraries: &["libiomp5"],
        version: Some("Intel"),
        faults: FAULTS_OF_INTEL,
        has_entries_of_libgomp: true,
        folders: &[
            folder("/opt/intel/oneapi/compiler", "", "lib"),
            folder("/opt/intel/oneapi/compiler", "", "linux/compiler/lib/intel64_lin"),
            folder("~/intel/oneapi/compiler", "", "lib"),
            folder("~/intel/oneapi/compiler", "", "linux/compiler/lib/intel64_lin"),
        ],
        remedy: "use a newer runtime: Intel's runtime has provided the tools interface since version 2018.0.3",
        ..UNKNOWN
    },
    Runtime {
        vendor: Vendor::Gnu,
        name: "GCC",
        libraries: &["libgomp"],
        // As reported by `libomptgomp.so`.
        version: Some("libgomp"),
        // Measured with GCC 12 and two threads: 80 to 170 ns.
        chunk_cost_ns: 120,
        without_interface: "; `omptrace record` adds one with libomptgomp.so",
        ..UNKNOWN
    },
    Runtime {
        vendor: Vendor::Nvidia,
        name: "NVIDIA",
        libraries: &["libnvomp"],
        folders: &[folder("/opt/nvidia/hpc_sdk/Linux_%m", "", "compilers/lib")],
        remedy: "link the program with nvc, nvc++ or nvfortran and the option -mp=ompt",
        ..UNKNOWN
    },
    Runtime { vendor: Vendor::Oracle, name: "Oracle", libraries: &["libmtsk"], ..UNKNOWN },
    Runtime { vendor: Vendor::OpenUh, name: "OpenUH", libraries: &["libopenmp"], ..UNKNOWN },
    Runtime {
        vendor: Vendor::Reference,
        name: "omptrace",
        version: Some("omptrace reference runtime"),
        faults: &[],
        ..UNKNOWN
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_the_name_of_their_library() {
        for (name, vendor) in [
            ("libomp.so", Some(Vendor::Llvm)),
            ("libomp.so.5", Some(Vendor::Llvm)),
            ("libomp-19.so.5", Some(Vendor::Llvm)),
            ("libomp5.so", Some(Vendor::Llvm)),
            ("libiomp5.so", Some(Vendor::Intel)),
            ("libgomp.so.1", Some(Vendor::Gnu)),
            ("libgomp-a34b3233.so.1.0.0", Some(Vendor::Gnu)),
            ("libnvomp.so", Some(Vendor::Nvidia)),
            ("libmtsk.so.1", Some(Vendor::Oracle)),
            ("libopenmp.so.1", Some(Vendor::OpenUh)),
            ("libomptarget.so.22.1", None),
            ("libomptrace.so", None),
            ("libompd.so", None),
            ("libgomp-plugin-nvptx.so.1", None),
            ("libc.so.6", None),
        ] {
            let found = Runtime::of_library(name).map(|runtime| runtime.vendor);
            assert_eq!(found, vendor, "{name}");
        }
        assert!(Vendor::Gnu.makes(b"/a/libgomp-a34b3233.so.1.0.0"));
        for path in [&b"/libgomp.so/libomp.so"[..], b"/a/libgomp-plugin-nvptx.so.1", b""] {
            assert!(!Vendor::Gnu.makes(path), "{path:?}");
        }
        assert!(Runtime::has_code_in("libomptarget.rtl.amdgpu.so"));
        assert!(!Runtime::has_code_in("libompfast.so"));
    }

    #[test]
    fn faults_are_known_by_the_version() {
        let faulty = |version| Fault::WritesBehindDependences.is_of(version);
        assert!(faulty("LLVM OMP version: 5.0.20140926"));
        assert!(faulty("Intel(R) OMP version: 5.0.20220222"));
        assert!(!faulty("omptrace reference runtime") && !faulty("another") && !faulty(""));
        let flushes_once = |version| Fault::FlushesBufferOnce.is_of(version);
        assert!(flushes_once("LLVM OMP version: 5.0.20140926"));
        assert!(!flushes_once("Intel(R) OMP version: 5.0.20220222") && !flushes_once("another"));
        assert!(!faulty("libgomp of GCC 12 through libomptgomp"));
    }
}
