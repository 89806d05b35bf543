//! Whether the traced process is still there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::metadata::Metadata;

/// True where the process that writes the trace runs on this machine.
///
/// Process ids are used again, so that the id alone proves nothing: the process must have started when the metadata
/// says, on this host. Without that metadata it must have the spool mapped; so must some process where it has another id than
/// we see, in a container. A container cannot see what runs outside.
pub(crate) fn is_running(pid: u32, metadata: &Metadata, spool: Option<&Path>) -> bool {
    let process = metadata.process.as_ref();
    match process.filter(|process| process.started != 0) {
        Some(process) if is_our_namespace(process.pid_namespace) => {
            let same_host = metadata.machine.as_ref().is_none_or(|machine| {
                fs::read_to_string("/proc/sys/kernel/hostname")
                    .map_or(true, |host| host.trim_end() == machine.host)
            });
            started(pid) == Some(process.started) && same_host
        }
        Some(_) => spool.is_some_and(is_mapped),
        None => spool.is_some_and(|spool| started(pid).is_some() && has_mapped(pid, spool)),
    }
}

fn is_our_namespace(number: u64) -> bool {
    let ours = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
    number == 0 || number == ours
}

/// When process `pid` started (field 22 of `/proc/PID/stat`); `None` for a zombie too, which writes no more.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name in brackets, may hold blanks and brackets.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

/// True where some process has `spool` mapped, which may have another path where it runs.
fn is_mapped(spool: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .any(|pid| started(pid).is_some() && has_mapped(pid, spool))
}

/// By name and inode: the device that is told may be another.
fn has_mapped(pid: u32, spool: &Path) -> bool {
    let (Ok(found), Some(name)) = (fs::metadata(spool), spool.file_name()) else {
        return false;
    };
    let (inode, name) = (
        found.ino().to_string(),
        format!("/{}", name.to_string_lossy()),
    );
    // Addresses, access, offset, device, inode, path.
    let is_spool =
        |line: &str| line.ends_with(&name) && line.split_ascii_whitespace().nth(4) == Some(&inode);
    fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.lines().any(is_spool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Process;

    fn check(started: u64, pid_namespace: u64, spool: Option<&Path>, running: bool) {
        let process = Process {
            started,
            pid_namespace,
            ..Process::default()
        };
        let metadata = Metadata {
            process: Some(process),
            ..Metadata::default()
        };
        assert_eq!(is_running(std::process::id(), &metadata, spool), running);
    }

    #[test]
    fn knows_itself_and_no_namesake() {
        let now = started(std::process::id()).expect("this process runs");
        check(now, 0, None, true);
        check(now + 1, 0, None, false);
    }

    #[test]
    fn in_another_namespace_some_process_must_have_the_spool() {
        let now = started(std::process::id()).expect("this process runs");
        let program = std::env::current_exe().unwrap();
        check(now, 1, None, false);
        check(now + 1, 1, Some(&program), true);
        let folder = tempfile::tempdir().unwrap();
        let namesake = folder.path().join(program.file_name().unwrap());
        fs::write(&namesake, "").unwrap();
        check(now, 1, Some(&namesake), false);
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
