//! Finds out which of the CPU's counters a thread can have.

use std::fs;

use crate::os::perf::{Counter, Refusal};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// Counters that the calling thread has opened tentatively.
#[derive(Debug, Default)]
pub(super) struct Trial(Vec<Counter>);

impl Trial {
    /// Opens another counter by its number; returns the reason if that fails.
    pub(super) fn refusal(&mut self, number: u64) -> Option<String> {
        match Counter::on_this_thread(number) {
            Ok(counter) => {
                self.0.push(counter);
                None
            }
            Err(refusal) => Some(words(refusal)),
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Counter::end);
    }
}

fn words(refusal: Refusal) -> String {
    match refusal {
        Refusal::NotReadable => {
            "the system does not allow programs to read the CPU's counters (see /sys/devices/cpu/rdpmc)".to_owned()
        }
        Refusal::Busy => {
            "all counter registers of the CPU are in use: request fewer counters, or stop other tools that use counters".to_owned()
        }
        Refusal::System(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
                "the CPU does not provide this counter, as is usual in virtual machines".to_owned()
            }
            Some(libc::EACCES | libc::EPERM) => match fs::read_to_string(PARANOID) {
                Ok(level) => format!(
                    "the system does not allow this counter, because of a container's seccomp filter or because {PARANOID} is {}",
                    level.trim()
                ),
                Err(_) => "the system does not allow this counter".to_owned(),
            },
            Some(libc::ENOSYS) => "the system does not support perf_event_open".to_owned(),
            _ => format!("perf_event_open returned an error: {error}"),
        },
    }
}
