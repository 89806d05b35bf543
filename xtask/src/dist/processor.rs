//! The processor that a release is for: this machine's, or aarch64 by a cross compiler and qemu.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::emulated::{SYSROOT, TARGET, on_aarch64};
use crate::process::{command, host, root};
use crate::result::Result;

/// The processor of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processor {
    /// That of this machine.
    Host,
    /// 64-bit Arm, whose programs qemu runs.
    Aarch64,
}

impl Processor {
    /// As Rust and its tools name it.
    pub(super) fn target(self) -> Result<String> {
        match self {
            Processor::Host => host(),
            Processor::Aarch64 => Ok(TARGET.to_owned()),
        }
    }

    /// One of the compiler's programs.
    pub(super) fn tool<const N: usize>(self, name: &str, words: [&str; N]) -> Command {
        match self {
            Processor::Host => command(name, words),
            Processor::Aarch64 => command(format!("aarch64-linux-gnu-{name}"), words),
        }
    }

    /// Runs a program of this processor with variables. The caller adds its arguments.
    pub(super) fn run(self, program: &Path, variables: &[(&str, String)]) -> Command {
        let none: [&str; 0] = [];
        match self {
            Processor::Host => {
                let mut command = command(program, none);
                command.envs(variables.iter().map(|(name, value)| (name, value)));
                command
            }
            Processor::Aarch64 => on_aarch64(program, variables),
        }
    }

    /// What the kernel of this machine can run in the place of a program of this processor: a script that calls qemu.
    pub(super) fn command_of(self, program: &Path) -> Result<PathBuf> {
        if self == Processor::Host {
            return Ok(program.to_owned());
        }
        let script = program.with_added_extension("sh");
        let qemu =
            format!("#!/bin/sh\nexec qemu-aarch64-static -L {SYSROOT} '{}' \"$@\"\n", program.display());
        fs::write(&script, qemu)?;
        fs::set_permissions(&script, Permissions::from_mode(0o755))?;
        Ok(script)
    }

    /// Runs a shell's script as on a machine of this processor. The caller adds its arguments.
    pub(super) fn script(self, script: &Path) -> Command {
        let Processor::Aarch64 = self else {
            return command("sh", [script]);
        };
        const AS_THERE: &str =
            "uname() { case $1 in -m) echo aarch64 ;; *) command uname \"$@\" ;; esac; }; . \"$0\"";
        let mut command = command("sh", ["-c", AS_THERE]);
        command.arg(root().join(script));
        command
    }
}
