//! The CPU's counters for a thread.

use omptrace_settings::counters::MAX_COUNTERS;

use crate::os::perf::Counter;

/// A thread's CPU counters, in the requested order. All zeros means none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers([Counter; MAX_COUNTERS]);

impl Default for Registers {
    fn default() -> Registers {
        Registers::NONE
    }
}

impl Registers {
    /// No counters.
    pub(crate) const NONE: Registers = Registers([Counter::NONE; MAX_COUNTERS]);

    /// Opens the counters with these numbers for the calling thread; `None` if one is unavailable.
    pub(crate) fn of_this_thread(numbers: impl Iterator<Item = u64>) -> Option<Registers> {
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

    /// Reads the counters, on their thread.
    #[inline]
    pub(crate) fn values(&self) -> impl Iterator<Item = Option<u64>> {
        self.0.iter().map(|counter| counter.value())
    }

    /// Closes the counters.
    pub(crate) fn end(self) {
        self.0.into_iter().for_each(Counter::end);
    }
}
