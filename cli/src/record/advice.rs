//! What `record` and `doctor` advise to do about a program that cannot be traced as it is.

/// The command that installs a runtime that programs for libgomp run on.
pub(crate) const INSTALL_LIBOMP: &str = "install LLVM's OpenMP runtime (Debian, Ubuntu: apt install libomp5; Fedora: \
     dnf install libomp; conda: conda install llvm-openmp), or give the path of one with --libomp";

/// The way to give libgomp a tools interface where a program keeps it.
pub(crate) const OBSERVE: &str =
    "record with --libgomp observe, so that libomptgomp.so adds a tools interface";

/// The way to reach programs that are built by GCC, where they are started by others.
pub(crate) const KEEP_PRELOAD: &str = "LD_PRELOAD lists the libraries that observe libgomp: if a launcher or a script sets or clears it, keep its value, or start the program there with: omptrace record -- PROGRAM";

/// The way to record a program although LLVM's runtime lacks some of what it calls.
pub(crate) const INSIST: &str = "to trace the program on libgomp itself, record with --libgomp observe (--libgomp replace forces the replacement, but the program then runs on two runtimes at once, so its results may be wrong, and it may crash)";
