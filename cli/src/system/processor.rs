//! The CPU for which this program is built: the names of its loader's directories, and what cannot be recorded on it.

use std::env;

use object::elf::{self, Machine};

/// A CPU.
#[derive(Debug)]
pub(crate) struct Processor {
    /// The machine in ELF headers.
    pub(crate) machine: Machine,
    /// The values of `$LIB` in glibc's 64-bit loaders: Debian's; Red Hat's, SUSE's and glibc's own; Arch's.
    pub(crate) lib: &'static [&'static str],
    /// Whether our libraries contain the code that depends on the CPU.
    is_complete: bool,
}

/// The CPU for which this program is built.
pub(crate) const THIS: Processor = if cfg!(target_arch = "aarch64") {
    Processor { machine: elf::EM_AARCH64, lib: &["lib/aarch64-linux-gnu", "lib64", "lib"], is_complete: true }
} else if cfg!(target_arch = "powerpc64") {
    Processor {
        machine: elf::EM_PPC64,
        lib: &["lib/powerpc64le-linux-gnu", "lib64", "lib"],
        is_complete: false,
    }
} else if cfg!(target_arch = "riscv64") {
    Processor {
        machine: elf::EM_RISCV,
        // glibc's own name includes the calling convention.
        lib: &["lib/riscv64-linux-gnu", "lib64/lp64d", "lib64", "lib"],
        is_complete: false,
    }
} else {
    Processor { machine: elf::EM_X86_64, lib: &["lib/x86_64-linux-gnu", "lib64", "lib"], is_complete: true }
};

impl Processor {
    /// Whether there is an adapter that observes GCC's libgomp.
    pub(crate) fn observes_libgomp(&self) -> bool {
        self.is_complete
    }

    /// What cannot be recorded on this CPU, as a line; `None` if everything can.
    pub(crate) fn limits(&self) -> Option<String> {
        (!self.is_complete).then(|| {
            format!(
                "on {}, GCC's libgomp cannot be observed, and samples, waits outside OpenMP, MPI calls and annotations are not recorded; on x86_64 and aarch64, all of these are supported",
                env::consts::ARCH
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_name_what_is_missing() {
        assert_eq!(THIS.limits().is_none(), THIS.observes_libgomp());
        let incomplete = Processor { is_complete: false, ..THIS };
        let limits = incomplete.limits().unwrap();
        assert!(limits.starts_with(&format!("on {}, GCC's libgomp", env::consts::ARCH)), "{limits}");
    }
}
