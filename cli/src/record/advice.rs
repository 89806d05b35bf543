//! The advice of `record` and `doctor` for programs that cannot be traced as they are.

/// The command that installs a runtime to replace libgomp.
pub(crate) const INSTALL_LIBOMP: &str = "install LLVM's OpenMP runtime (Debian, Ubuntu: apt install libomp5; Fedora: \
     dnf install libomp; conda: conda install llvm-openmp), or give the path of one with --libomp";

/// How to give libgomp a tools interface if a program keeps libgomp.
pub(crate) const OBSERVE: &str =
    "record with --libgomp observe, so that libomptgomp.so adds a tools interface";

/// How to reach GCC programs that other programs start.
pub(crate) const KEEP_PRELOAD: &str = "LD_PRELOAD lists the libraries that observe libgomp: if a launcher or a script sets or clears it, keep its value, or start the program there with: omptrace record -- PROGRAM";

/// How to record a program although LLVM's runtime lacks some of the functions that it calls.
pub(crate) const INSIST: &str = "to trace the program on libgomp itself, record with --libgomp observe (--libgomp replace forces the replacement, but the program then runs on two runtimes at once, so its results may be wrong, and it may crash)";
