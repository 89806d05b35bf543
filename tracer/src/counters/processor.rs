//! The processor's counters of a thread.

use std::fs;

use omptrace_settings::counters::MAX_COUNTERS;

use crate::os::perf::{Counter, Refusal};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// A thread's counters of the processor, in the order in which they were asked for. All zeros is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers([Counter; MAX_COUNTERS]);

impl Default for Registers {
    fn default() -> Registers {
        Registers::NONE
    }
}

impl Registers {
    /// None.
    pub(crate) const NONE: Registers = Registers([Counter::NONE; MAX_COUNTERS]);

    /// Those of these numbers, for the calling thread; `None` where one cannot be had.
    pub(super) fn of_this_thread(numbers: impl Iterator<Item = u64>) -> Option<Registers> {
        let mut registers = Registers::NONE;
        for (counter, number) in registers.0.iter_mut().zip(numbers) {
            match Counter::on_this_thread(number) {
                Ok(new) => *counter = new,
                Err(_) => {
                    registers.end();
                    return None;
                }
            }
        }
        Some(registers)
    }

    /// Their values, on their thread.
    #[inline]
    pub(super) fn values(&self) -> impl Iterator<Item = Option<u64>> {
        self.0.iter().map(|counter| counter.value())
    }

    /// Ends them.
    pub(super) fn end(self) {
        self.0.into_iter().for_each(Counter::end);
    }
}

/// The counters that the calling thread has got for a try.
#[derive(Debug, Default)]
pub(super) struct Trial(Vec<Counter>);

impl Trial {
    /// Why the thread cannot have the counter of this number, too; `None` where it can.
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
            "the system lets no program read the processor's counters (/sys/devices/cpu/rdpmc)".to_owned()
        }
        Refusal::Busy => {
            "no register of the processor is free for it: ask for fewer, or end other tools".to_owned()
        }
        Refusal::System(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
                "the processor shows no such counter here, as in most virtual machines".to_owned()
            }
            Some(libc::EACCES | libc::EPERM) => match fs::read_to_string(PARANOID) {
                Ok(level) => format!(
                    "not allowed: a container's seccomp filter, or {PARANOID}, which is {}",
                    level.trim()
                ),
                Err(_) => "not allowed".to_owned(),
            },
            Some(libc::ENOSYS) => "the system has no perf_event_open".to_owned(),
            _ => format!("the system refuses: {error}"),
        },
    }
}
