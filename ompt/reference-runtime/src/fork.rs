//! Forks the process while its threads are playing.

use std::io::{PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use std::sync::Mutex;

use super::device;
use super::report::{PlayedThread, Report, lock};
use super::script::Step;
pub use super::script::{ChildEnd, Fork};
use crate::old::{collector, tr2};

impl Fork {
    /// Forks, and waits for the child; returns what the child's threads played. `take` plays steps.
    pub(super) fn play(&self, take: impl FnOnce(&[Step], &Mutex<PlayedThread>)) -> Vec<PlayedThread> {
        let (mut reader, writer) = std::io::pipe().expect("the process may have two more files");
        // Like the fork handlers of runtimes: takes the locks that the child will need.
        let at_rest = (tr2::at_rest(), collector::at_rest());
        // SAFETY: the child has only this thread; this thread holds the runtime's locks.
        let child = unsafe { libc::fork() };
        drop(at_rest);
        if child == 0 {
            drop(reader);
            self.be_child(writer, take);
        }
        drop(writer);
        assert!(child > 0, "{}", std::io::Error::last_os_error());
        let mut said = Vec::new();
        reader.read_to_end(&mut said).expect("a pipe can be read");
        let mut status = 0;
        // SAFETY: waits for the process that this thread has forked, with a valid pointer.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "how the child ended");
        match self.end {
            ChildEnd::Exit | ChildEnd::QuickExit => {
                vec![serde_json::from_slice(&said).expect("what the child played")]
            }
            ChildEnd::Exec(_) => {
                let report: Report = serde_json::from_slice(&said).expect("a report");
                let rounds = report.rounds.into_iter();
                rounds.flat_map(|round| round.threads).collect()
            }
        }
    }

    fn be_child(&self, mut parent: PipeWriter, take: impl FnOnce(&[Step], &Mutex<PlayedThread>)) -> ! {
        if let Some(entry) = self.searches_again {
            tr2::search_again(entry);
        }
        let log = Mutex::new(PlayedThread::default());
        // SAFETY: only queries the kernel.
        lock(&log).os_tid = unsafe { libc::gettid() };
        take(&self.steps, &log);
        if let ChildEnd::Exec(script) = &self.end {
            let (input, mut script_writer) = std::io::pipe().expect("a pipe");
            let script = serde_json::to_vec(script).expect("a script has no keys but strings");
            script_writer.write_all(&script).expect("a pipe holds so much");
            drop(script_writer);
            let program = std::env::current_exe().expect("this program");
            let error = Command::new(program).stdin(input).stdout(parent).exec();
            panic!("the child executes no program: {error}");
        }
        let played = serde_json::to_vec(&*lock(&log)).expect("it has no keys but strings");
        parent.write_all(&played).expect("the parent reads what the child says");
        drop(parent);
        assert!(!device::child_hangs(), "this child would never end");
        match self.end {
            // SAFETY: only ends the process.
            ChildEnd::QuickExit => unsafe { libc::_exit(0) },
            _ => exit(0),
        }
    }
}
