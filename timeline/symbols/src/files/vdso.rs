//! The vDSO: functions that the Linux kernel maps into each process. It has no file, only a name known to the loader.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::files::loaded_module::file_name;

/// The name of the vDSO without a directory, if `path` means the vDSO. Tracers up to 0.2.0 put the directory of the
/// process in front of it.
pub(crate) fn name(path: &str) -> Option<&str> {
    let names = ["linux-vdso.so.1", "linux-vdso64.so.1", "linux-gate.so.1", "[vdso]"];
    let name = file_name(path);
    names.contains(&name).then_some(name)
}

/// The vDSO of this process. It is the one that was traced if `instance` has the same build id.
pub(crate) fn of_this_process() -> Option<Vec<u8>> {
    /// Guards against an invalid size: the vDSO has two to five pages.
    const MAX_BYTES: u64 = 1 << 20;

    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let range = maps.lines().find_map(|line| line.strip_suffix("[vdso]"))?;
    let (start, end) = range.split(' ').next()?.split_once('-')?;
    let address = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let length = end.checked_sub(start).filter(|length| *length <= MAX_BYTES)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let memory = File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}
