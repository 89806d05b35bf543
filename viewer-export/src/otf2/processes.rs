//! The start and end of a process in the archive: the program's start and end, and the root region of each of its
//! threads.

use otf2_archive::encoding::TypedValue;
use otf2_archive::records::{ProgramBegin, ProgramEnd, role};

use super::Otf2;
use super::tasks::Task;
use crate::otf2::definitions::process_times::ProcessTimes;

/// Stands for an unknown exit status.
const NO_EXIT_STATUS: i64 = i64::MIN;
/// Further arguments of a program are left out, because an event must fit into a chunk.
const MAX_PROGRAM_ARGUMENTS: usize = 10_000;
impl Otf2 {
    /// Writes the first event of a thread, and before that the first event of its process.
    #[cold]
    pub(super) fn begin_thread(&mut self, thread: usize, time: u64) {
        let main = self.first_thread;
        if !self.threads[main].has_begun {
            self.begin_program(main, time);
        }
        if !self.threads[thread].has_begun {
            self.enter_root(thread, time);
        }
        let thread = &mut self.threads[thread];
        thread.is_seen = true;
        // Items that a thread reports late, such as a flush, may start before the events of other threads.
        thread.first = thread.first.min(time);
    }

    fn begin_program(&mut self, main: usize, time: u64) {
        let process = &self.processes[self.threads[main].process];
        let mut words = process.command_line.iter();
        let name = words.next().unwrap_or(&process.name);
        let event = ProgramBegin {
            name: self.strings.number(name),
            arguments: words.take(MAX_PROGRAM_ARGUMENTS).map(|word| self.strings.number(word)).collect(),
        };
        let ids = [
            ("ProcessId", TypedValue::Uint64(process.os_pid.into())),
            ("ThreadId", TypedValue::Uint64(self.threads[main].os_tid.into())),
        ];
        let attributes = self.attributes.values(&mut self.strings, &ids);
        self.threads[main].file.event(time, attributes, &event);
        self.enter_root(main, time);
    }

    fn root(&mut self, thread: usize) -> u32 {
        let process = &self.processes[self.threads[thread].process];
        let program = process.command_line.first().unwrap_or(&process.name);
        let name = program.rsplit('/').next().unwrap_or(program);
        self.regions.own(&mut self.strings, name, role::ARTIFICIAL)
    }

    fn enter_root(&mut self, thread: usize, time: u64) {
        let root = self.root(thread);
        let thread = &mut self.threads[thread];
        (thread.has_begun, thread.first) = (true, time);
        thread.enter(time, &[], root);
    }

    /// Ends a process, after all its threads have ended.
    pub(super) fn end_process(&mut self) {
        if self.processes.is_empty() {
            return;
        }
        let threads = self.first_thread..self.threads.len();
        let mut times = ProcessTimes::default();
        for thread in &mut self.threads[threads.clone()] {
            if thread.has_begun {
                thread.end_pause(u64::MAX);
                times.extend(thread.first);
                times.extend(thread.last);
            }
        }
        self.times.push(times);
        self.teams.next_process();
        self.patch_teams();
        self.tasks.next_process();
        self.locks.clear();
        for index in threads {
            let is_main = index == self.first_thread;
            if self.threads[index].has_begun {
                let root = self.root(index);
                let thread = &mut self.threads[index];
                let end = if is_main { times.last } else { thread.last };
                // A wait whose region never started lasts until now.
                thread.leave_acquired(&mut self.tasks, &mut self.teams, thread.last);
                thread.run(&mut self.tasks, &mut self.teams, thread.last, Task::Implicit(0));
                thread.leave(end, &[], root);
            }
            let thread = &mut self.threads[index];
            if is_main && thread.has_begun {
                let known = self.processes[thread.process].exit_status;
                let exit_status = known.map_or(NO_EXIT_STATUS, i64::from);
                thread.event(times.last, &ProgramEnd { exit_status });
                thread.file.set_first_time(times.first);
            }
            let finished = thread.finish();
            self.keep(finished);
        }
        let finished = self.streams.next_process();
        self.keep(finished);
        self.first_thread = self.threads.len();
    }
}
