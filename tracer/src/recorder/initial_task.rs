//! The end of an initial task, for which LLVM's runtime may pass invalid pointers.
//!
//! When a thread created by the program ends, the runtime looks up the thread's task and region, and passes them to the
//! callback. With `KMP_GTID_MODE` 0 to 2, it no longer knows the thread by then, so both pointers are undefined.
//! Therefore the pointers of the begin event are kept, and used at the end.

use std::cell::Cell;
use std::ffi::c_uint;
use std::ptr::null_mut;

use ompt_sys::ompt_data_t;
use omptrace_device::memory;

type Data = *mut ompt_data_t;

/// Pointers to the tool's data of the thread's initial task and of its region. All zeros means none.
#[derive(Debug)]
pub(crate) struct InitialTask {
    region: Cell<Data>,
    task: Cell<Data>,
    /// Number of initial tasks within it that have not ended: those of leagues in which the thread takes part.
    of_leagues: Cell<u32>,
}

impl InitialTask {
    pub(crate) const fn new() -> InitialTask {
        InitialTask { region: Cell::new(null_mut()), task: Cell::new(null_mut()), of_leagues: Cell::new(0) }
    }

    /// An initial task with these pointers has begun on the thread. The initial task of a thread created by the program
    /// has number 1 in a team of size 1. In leagues, numbers start at 0.
    pub(crate) fn begins(&self, region: Data, task: Data, actual_parallelism: c_uint, index: c_uint) {
        if (actual_parallelism, index) == (1, 1) {
            self.region.set(region);
            self.task.set(task);
            self.of_leagues.set(0);
        } else if !self.task.get().is_null() {
            self.of_leagues.set(self.of_leagues.get().saturating_add(1));
        }
    }

    /// Whether an end event with these pointers belongs to a task other than the thread's own initial one, so that the
    /// pointers are valid: a task of a league, a task that LLVM 14's workers report with the same flag, or a task whose
    /// begin was not recorded.
    pub(crate) fn is_another(&self, region: Data, task: Data) -> bool {
        let known = self.task.get();
        if known.is_null() || self.of_leagues.get() > 0 && task != known {
            return content(task).is_some();
        }
        // LLVM before 11 reports only the end of leagues' tasks, without data.
        region.is_null() && task != known && content(task) == Some(0)
    }

    /// The valid pointers to the data of the region and the task, given those that the runtime passes at the end.
    pub(crate) fn at_end(&self, region: Data, task: Data) -> [Data; 2] {
        if self.task.get().is_null() || self.is_another(region, task) {
            self.of_leagues.set(self.of_leagues.get().saturating_sub(1));
            return [region, task].map(|data| content(data).map_or(null_mut(), |_| data));
        }
        let known = [self.region.get(), self.task.get()];
        self.forget();
        known
    }

    pub(crate) fn forget(&self) {
        self.region.set(null_mut());
        self.task.set(null_mut());
        self.of_leagues.set(0);
    }
}

/// The value behind the pointer, if it can be read.
fn content(data: Data) -> Option<u64> {
    let mut bytes = [0; size_of::<ompt_data_t>()];
    let is_read = data.is_aligned() && memory::copy(data as usize, &mut bytes);
    is_read.then(|| u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pointers_of_the_begin_are_those_of_the_end() {
        let (mut region, mut task) = (ompt_data_t { value: 1 }, ompt_data_t { value: 2 });
        let known: [Data; 2] = [&raw mut region, &raw mut task];
        let wild: [Data; 2] = [0x1235, 0x1000].map(std::ptr::without_provenance_mut);
        let initial = InitialTask::new();
        assert_eq!(initial.at_end(known[0], known[1]), known);
        assert_eq!(initial.at_end(wild[0], wild[1]), [null_mut(); 2]);
        initial.begins(known[0], known[1], 1, 1);
        assert_eq!(initial.at_end(wild[0], wild[1]), known);
        assert_eq!(initial.at_end(wild[0], known[1]), [null_mut(), known[1]]);
    }

    #[test]
    fn tasks_of_leagues_keep_their_pointers() {
        let (mut data, mut empty) = ([1, 2, 3].map(|value| ompt_data_t { value }), ompt_data_t { value: 0 });
        let [region, outer, inner] = data.each_mut().map(|data| &raw mut *data);
        let initial = InitialTask::new();
        initial.begins(region, outer, 1, 1);
        initial.begins(null_mut(), inner, 1, 0);
        assert_eq!(initial.at_end(null_mut(), inner), [null_mut(), inner]);
        // A task of which only the end is reported.
        let empty = &raw mut empty;
        assert_eq!(initial.at_end(null_mut(), empty), [null_mut(), empty]);
        assert_eq!(initial.at_end(region, outer), [region, outer]);
    }
}
