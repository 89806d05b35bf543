//! Problems with trace buffers and records, and losses by tracing. All of it is counted, none of it ends the program.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Turns a row `Problem "words"` into a variant and its words.
macro_rules! problems {
    ($($(#[$doc:meta])* $Problem:ident $text:literal;)*) => {
        /// Something that a runtime or device did with its buffers and records.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Problem { $($(#[$doc])* $Problem,)* }

        impl Problem {
            const ALL: &[Problem] = &[$(Problem::$Problem),*];

            /// The problem in words; how often it came follows.
            pub fn text(self) -> &'static str {
                match self { $(Problem::$Problem => $text,)* }
            }
        }
    };
}

problems! {
    /// The pool's limit was passed, the hard limit not.
    ExtraBuffer "buffers in excess of the pool's limit";
    /// The limit of all buffers together was reached.
    NoBuffer "buffer requests that were refused because too many threads and devices use buffers; their records are lost";
    /// It may also have come back twice.
    UnknownBuffer "completions of buffers that the device did not use";
    /// The rest lies outside of the buffer.
    TooManyBytes "buffer completions that report more bytes than the buffer can hold";
    /// `ompt_get_record_ompt`, `_native` or `_abstract`.
    NullRecord "records that were null pointers";
    /// Its pointer leads to where no memory is.
    UnreadableRecord "records whose memory cannot be read";
    /// Neither standard nor native.
    InvalidRecord "records of an invalid type";
    /// The cursor did not move, or went on further than the buffer has room for records.
    EndlessBuffer "buffers whose cursor did not reach the end";
    /// Counted by CUPTI.
    Dropped "records that CUPTI dropped because it ran out of space";
    /// CUDA's device is none that OpenMP has worked on.
    OfNoDevice "records of devices that OpenMP has not used";
    /// Not wrong, but what tracing costs.
    Overhead "interruptions of the program by CUPTI and the driver";
    /// Their sum.
    OverheadMicroseconds "microseconds that these interruptions took";
}

/// How often each [`Problem`] came, and how many records were taken.
#[derive(Debug, Default)]
pub struct Counts {
    records: AtomicU64,
    completions: AtomicU64,
    problems: [AtomicU64; Problem::ALL.len()],
}

impl Counts {
    /// Counts a problem that came so often; true where it is the first of its kind.
    pub fn add(&self, problem: Problem, times: u64) -> bool {
        // Relaxed: only the number counts.
        times > 0 && self.problems[problem as usize].fetch_add(times, Ordering::Relaxed) == 0
    }

    /// Counts a completion that brought this many records.
    pub fn completed(&self, records: u64) {
        // Relaxed: only the number counts.
        self.completions.fetch_add(1, Ordering::Relaxed);
        self.brought(records);
    }

    /// Counts records that came without a completion of the device's own.
    pub fn brought(&self, records: u64) {
        // Relaxed: only the number counts.
        self.records.fetch_add(records, Ordering::Relaxed);
    }

    /// The counts, in words.
    pub fn describe(&self) -> BTreeMap<String, u64> {
        let problems = Problem::ALL.iter().map(|problem| (problem.text(), &self.problems[*problem as usize]));
        [("records", &self.records), ("completions", &self.completions)]
            .into_iter()
            .chain(problems)
            .map(|(text, count)| (text.to_owned(), count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}
