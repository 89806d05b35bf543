//! The end of an initial task, for which LLVM's runtime may pass pointers that lead anywhere.
//!
//! When a thread of the program's own ends, the runtime looks up the thread's task and region, and passes the result
//! on. With `KMP_GTID_MODE` of 0 to 2 it no longer knows the thread by then, so that both pointers have no value. Therefore the
//! pointers of the begin are kept, and taken at the end.

use std::cell::Cell;
use std::ptr::null_mut;

use ompt_sys::ompt_data_t;
use omptrace_device::memory;

use crate::hot::tls;

type Data = *mut ompt_data_t;

/// Where the runtime has the tool's data of the initial task and of its region. All zeros is none.
#[derive(Debug)]
pub(crate) struct InitialTask {
    region: Cell<Data>,
    task: Cell<Data>,
}

impl InitialTask {
    pub(crate) const fn new() -> InitialTask {
        InitialTask {
            region: Cell::new(null_mut()),
            task: Cell::new(null_mut()),
        }
    }

    /// The thread's initial task has begun, with these pointers.
    pub(crate) fn begins(&self, region: Data, task: Data) {
        self.region.set(region);
        self.task.set(task);
    }

    /// The pointers to the data of the region and the task for an end that the runtime reports with these.
    pub(crate) fn at_end(&self, region: Data, task: Data) -> [Data; 2] {
        if !self.task.get().is_null() {
            return [self.region.get(), self.task.get()];
        }
        // The begin was not seen on this thread, as in the child of a fork.
        [region, task].map(|data| match can_be_read(data) {
            true => data,
            false => null_mut(),
        })
    }

    pub(crate) fn forget(&self) {
        self.begins(null_mut(), null_mut());
    }
}

/// What `f` makes of the thread's initial task where there is a second tool. A thread that records nothing has none.
pub(crate) fn of_both<T>(f: impl FnOnce(&InitialTask) -> T) -> T {
    match tls::recorder() {
        recorder if recorder.is_idle() => f(&InitialTask::new()),
        recorder => f(&recorder.stream.initial_of_both),
    }
}

fn can_be_read(data: Data) -> bool {
    data.is_aligned() && memory::copy(data as usize, &mut [0; size_of::<ompt_data_t>()])
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
        initial.begins(known[0], known[1]);
        assert_eq!(initial.at_end(wild[0], wild[1]), known);
        initial.forget();
        assert_eq!(initial.at_end(wild[0], known[1]), [null_mut(), known[1]]);
    }
}
