//! Whether the traced process is still there.

use std::fs;
use std::path::Path;

use crate::metadata::Metadata;

/// True where the process that writes the trace runs on this machine.
///
/// Process ids are used again, so that the id alone proves nothing: the process must have started when the metadata
/// says, on this host. Without that metadata it must have the spool mapped.
pub(crate) fn is_running(pid: u32, metadata: &Metadata, spool: Option<&Path>) -> bool {
    let Some(started) = started(pid) else {
        return false;
    };
    match &metadata.process {
        Some(process) if process.started != 0 => {
            let same_host = metadata.machine.as_ref().is_none_or(|machine| {
                fs::read_to_string("/proc/sys/kernel/hostname")
                    .map_or(true, |host| host.trim_end() == machine.host)
            });
            process.started == started && same_host
        }
        _ => spool.is_some_and(|spool| has_mapped(pid, spool)),
    }
}

/// When process `pid` started (field 22 of `/proc/PID/stat`); `None` for a zombie too, which writes no more.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name in brackets, may hold blanks and brackets.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

fn has_mapped(pid: u32, spool: &Path) -> bool {
    let spool = spool.to_string_lossy();
    fs::read_to_string(format!("/proc/{pid}/maps"))
        .is_ok_and(|maps| maps.lines().any(|line| line.ends_with(&*spool)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Process;

    fn check(started: u64, running: bool) {
        let process = Process {
            started,
            ..Process::default()
        };
        let metadata = Metadata {
            process: Some(process),
            ..Metadata::default()
        };
        assert_eq!(is_running(std::process::id(), &metadata, None), running);
    }

    #[test]
    fn knows_itself_and_no_namesake() {
        let now = started(std::process::id()).expect("this process runs");
        check(now, true);
        check(now + 1, false);
    }

    #[test]
    fn without_metadata_the_spool_must_be_mapped() {
        let pid = std::process::id();
        let program = std::env::current_exe().unwrap();
        assert!(is_running(pid, &Metadata::default(), Some(&program)));
        assert!(!is_running(
            pid,
            &Metadata::default(),
            Some(Path::new("/no/such/spool"))
        ));
    }
}
