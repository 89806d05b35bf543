//! The advice of `record` and `doctor` for programs that cannot be traced as they are.

/// The command that installs a runtime to replace libgomp.
pub(crate) const INSTALL_LIBOMP: &str = "install LLVM's OpenMP runtime (Debian, Ubuntu: apt install libomp5; Fedora: \
     dnf install libomp; conda: conda install llvm-openmp), or give the path of an installed LLVM or Intel runtime with --libomp";

/// How to give libgomp a tools interface if a program keeps libgomp.
pub(crate) const OBSERVE: &str =
    "record with --libgomp observe: libomptgomp.so then gives libgomp the tools interface that it lacks";

/// How to reach GCC programs that other programs start.
pub(crate) const KEEP_PRELOAD: &str = "LD_PRELOAD contains the libraries that observe libgomp; a launcher or script that changes LD_PRELOAD must keep the old value, or start the program with `omptrace record -- PROGRAM`";

/// How to record a program although LLVM's runtime lacks some of the functions that it calls.
pub(crate) const INSIST: &str = "to trace the program on libgomp itself, record with --libgomp observe. Do not force the replacement with --libgomp replace: the program would run on two runtimes at once, and may crash or give wrong results";
