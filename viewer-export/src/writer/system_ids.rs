//! Ids of processes and threads for formats that use the operating system's ids, by which viewers find a process's main
//! thread and match traces of the same session.

use std::collections::BTreeSet;

use omptrace_timeline::model::Process;

/// Our own ids start here. Linux assigns none above 2^22 (`PID_MAX_LIMIT`).
const FIRST_OWN_ID: u32 = (1 << 22) + 1;

/// The ids of a process and its threads: those of the operating system if known and unique.
pub(crate) struct SystemIds {
    os_pid: u32,
    pid: u32,
    /// Whether the main thread is known.
    has_main: bool,
    given: BTreeSet<u32>,
    own: u32,
}

impl SystemIds {
    /// The ids of the process with index `rank` in the file.
    pub(crate) fn new(process: &Process, rank: u32) -> SystemIds {
        let os_pid = process.os_pid;
        let pid = match os_pid {
            1..FIRST_OWN_ID if !process.has_namesake => os_pid,
            _ => FIRST_OWN_ID + rank,
        };
        SystemIds {
            os_pid,
            pid,
            has_main: false,
            // Contains the main thread's id, which no other thread may get.
            given: BTreeSet::from([pid]),
            own: 0,
        }
    }

    /// The id of the process, and of its main thread.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process has its operating system id.
    pub(crate) fn is_systems(&self) -> bool {
        self.pid == self.os_pid
    }

    /// The id of a thread: `os_tid` if possible, and unique.
    pub(crate) fn tid(&mut self, os_tid: u32) -> u32 {
        let is_main = os_tid != 0 && os_tid == self.os_pid;
        // A later thread with the same id is another thread.
        if is_main && !std::mem::replace(&mut self.has_main, true) {
            return self.pid;
        }
        if os_tid != 0 && os_tid < FIRST_OWN_ID && self.given.insert(os_tid) {
            return os_tid;
        }
        self.own_tid()
    }

    /// An id for a track that is not a thread.
    pub(crate) fn own_tid(&mut self) -> u32 {
        loop {
            let id = FIRST_OWN_ID + self.own;
            self.own += 1;
            if self.given.insert(id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(os_pid: u32, has_namesake: bool, rank: u32) -> SystemIds {
        let process = Process { os_pid, has_namesake, ..Process::default() };
        SystemIds::new(&process, rank)
    }

    #[test]
    fn processes_that_share_an_id_are_kept_apart() {
        let given = [ids(4711, false, 0), ids(4711, true, 1), ids(0, false, 2), ids(u32::MAX, false, 3)];
        let own = FIRST_OWN_ID;
        assert_eq!(given.map(|ids| ids.pid()), [4711, own + 1, own + 2, own + 3]);
    }

    #[test]
    fn ids_are_unique() {
        let mut ids = ids(1, false, 0);
        let given = [4711, 0, 4711, u32::MAX].map(|os_tid| ids.tid(os_tid));
        let own = FIRST_OWN_ID;
        assert_eq!(given, [4711, own, own + 1, own + 2]);
    }

    #[test]
    fn the_main_thread_has_the_id_of_its_process_and_no_other_thread_has() {
        let mut known = ids(4711, false, 0);
        assert_eq!([4712, 4711].map(|tid| known.tid(tid)), [4712, 4711]);
        let mut own = ids(4711, true, 0);
        let others = [0, own.pid()].map(|os_tid| own.tid(os_tid));
        assert!(!others.contains(&own.pid()), "{others:?}");
        assert_eq!(own.tid(4711), own.pid());
        assert_ne!(own.tid(4711), own.pid(), "a thread that has the number again");
    }
}
