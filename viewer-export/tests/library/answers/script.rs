//! Writes traces with known times, event by event.

use omptrace_analysis::answers::Answers;

use super::{adds_up, answers_of};

/// A trace that is written line by line, in any order of time. Lines with the same time are sorted by rank.
#[derive(Default)]
pub(super) struct Script {
    pub(super) metadata: Option<&'static str>,
    pub(super) lines: Vec<(u64, u8, usize, String)>,
}

/// Ranks of lines with the same time.
pub(super) const INSIDE: u8 = 0;
const ARRIVE: u8 = 1;
const DEPART: u8 = 2;
pub(super) const JOIN: u8 = 3;
pub(super) const FORK: u8 = 4;
pub(super) const BEGIN: u8 = 5;
pub(super) const FIRST: u8 = 6;

pub(super) const LOOP: &str = "0x1234";
pub(super) const UNIT: u64 = 1_000_000;

impl Script {
    /// `threads` threads; starts the first thread's initial task.
    pub(super) fn new(threads: u64) -> Script {
        let mut script = Script::default();
        for thread in 1..=threads {
            let info = format!("thread_info os_tid={} name=app", 9 + thread);
            script.at(0, INSIDE, thread, &info);
        }
        script.at(0, INSIDE, 1, "thread_begin type=initial");
        let initial = "implicit_task begin parallel=? task=1 team=1 index=1 flags=1";
        script.at(0, INSIDE, 1, initial);
        for thread in 2..=threads {
            script.at(0, INSIDE, thread, "thread_begin type=worker");
        }
        script
    }

    pub(super) fn at(&mut self, time: u64, rank: u8, thread: u64, event: &str) {
        let line = format!("{time} {thread} {event}");
        self.lines.push((time, rank, self.lines.len(), line));
    }

    /// A region from `begin` on, at whose end thread i arrives at `arrivals[i]`. It ends a nanosecond after the last
    /// arrival, because events of one thread with the same time precede those of the next.
    pub(super) fn region(&mut self, begin: u64, code: &str, arrivals: &[u64]) -> u64 {
        self.region_until(begin, code, arrivals, None)
    }

    /// Like [`Script::region`], with tasks that run until `tasks`.
    pub(super) fn region_until(
        &mut self,
        begin: u64,
        code: &str,
        arrivals: &[u64],
        tasks: Option<u64>,
    ) -> u64 {
        let end = arrivals.iter().copied().chain(tasks).max().unwrap_or(begin) + 1;
        let size = arrivals.len();
        let region = format!("parallel=100 task=1 code={code}");
        self.at(begin, FORK, 1, &format!("parallel_begin {region} team={size}"));
        for (index, arrival) in arrivals.iter().enumerate() {
            let (thread, task) = (index as u64 + 1, 101 + index);
            let member = format!("parallel=100 task={task} team={size} index={index}");
            let barrier = format!("kind=barrier_implicit_parallel parallel=100 task={task} code={code}");
            self.at(begin, BEGIN, thread, &format!("implicit_task begin {member}"));
            self.at(*arrival, ARRIVE, thread, &format!("sync_region begin {barrier}"));
            self.at(*arrival, ARRIVE, thread, &format!("sync_region_wait begin {barrier}"));
            self.at(end, DEPART, thread, &format!("sync_region_wait end {barrier}"));
            self.at(end, DEPART, thread, &format!("sync_region end {barrier}"));
            self.at(end, DEPART, thread, &format!("implicit_task end {member}"));
        }
        self.at(end, JOIN, 1, &format!("parallel_end {region}"));
        end
    }

    /// A thread holds a mutex for some time.
    pub(super) fn mutex(&mut self, thread: u64, mutex: &str, [asked, got, released]: [u64; 3]) {
        let rank = |time| if time <= 1 { FIRST } else { INSIDE };
        self.at(asked, rank(asked), thread, &format!("mutex_acquire {mutex}"));
        self.at(got, rank(got), thread, &format!("mutex_acquired {mutex}"));
        self.at(released, INSIDE, thread, &format!("mutex_released {mutex}"));
    }

    pub(super) fn end(mut self, time: u64) -> Answers {
        self.at(time, JOIN, 1, "implicit_task end task=1 flags=1");
        self.at(time, JOIN, 1, "thread_end");
        self.lines.sort();
        let metadata = self.metadata.map(|json| format!("metadata {json}"));
        let lines = self.lines.into_iter().map(|(.., line)| line);
        let lines: Vec<String> = metadata.into_iter().chain(lines).collect();
        let answers = answers_of(&lines.join("\n"));
        adds_up("script", &answers);
        assert_eq!(answers.replay_error_ns, Some(0));
        answers
    }
}
