//! The processor's counters of a thread.

use omptrace_settings::counters::MAX_COUNTERS;

use crate::os::perf::Counter;

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

    /// Their values, on their thread.
    #[inline]
    pub(crate) fn values(&self) -> impl Iterator<Item = Option<u64>> {
        self.0.iter().map(|counter| counter.value())
    }

    /// Ends them.
    pub(crate) fn end(self) {
        self.0.into_iter().for_each(Counter::end);
    }
}
