//! Problems with trace buffers and records, and losses caused by tracing. They are counted, and none of them ends the
//! program.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Turns a row `Problem "text"` into a variant and its text.
macro_rules! problems {
    ($($(#[$doc:meta])* $Problem:ident $text:literal;)*) => {
        /// A problem with the buffers and records of a runtime or device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Problem { $($(#[$doc])* $Problem,)* }

        impl Problem {
            const ALL: &[Problem] = &[$(Problem::$Problem),*];

            /// The problem's text, to be followed by its count.
            pub fn text(self) -> &'static str {
                match self { $(Problem::$Problem => $text,)* }
            }
        }
    };
}

problems! {
    /// The pool's limit was exceeded, the hard limit was not.
    ExtraBuffer "buffers that were allocated beyond the limit of the buffer pool";
    /// The limit of all buffers together was reached.
    NoBuffer "buffer requests that were refused, because too many threads and devices already have buffers; the records that would have gone into the refused buffers are lost";
    /// The buffer may also have been returned twice.
    UnknownBuffer "buffers that were reported as complete although the device was not using them";
    /// The bytes beyond the buffer are ignored.
    TooManyBytes "buffers that were reported as complete with more bytes than they can hold";
    /// `ompt_get_record_ompt`, `_native` or `_abstract`.
    NullRecord "records that were null pointers";
    /// The record's pointer is invalid.
    UnreadableRecord "records whose memory cannot be read";
    /// Neither standard nor native.
    InvalidRecord "records of an invalid type";
    /// The cursor did not move, or moved more often than the buffer has room for records.
    EndlessBuffer "buffers whose record cursor did not reach the end of the buffer";
    /// Counted by CUPTI.
    Dropped "records that CUPTI dropped because it ran out of space";
    /// The CUDA device is not one that OpenMP has used.
    OfNoDevice "records of devices that OpenMP has not used";
    /// Not an error, but a cost of tracing.
    Overhead "interruptions of the program by CUPTI or the driver";
    /// The total duration of these interruptions.
    OverheadMicroseconds "microseconds for which CUPTI or the driver interrupted the program";
}

/// The count of each [`Problem`], and of the records taken.
#[derive(Debug, Default)]
pub struct Counts {
    records: AtomicU64,
    completions: AtomicU64,
    problems: [AtomicU64; Problem::ALL.len()],
}

impl Counts {
    /// Counts occurrences of a problem; true if they are the first of its kind.
    pub fn add(&self, problem: Problem, times: u64) -> bool {
        // Relaxed: only the number counts.
        times > 0 && self.problems[problem as usize].fetch_add(times, Ordering::Relaxed) == 0
    }

    /// Counts a completion that delivered this many records.
    pub fn completed(&self, records: u64) {
        // Relaxed: only the number counts.
        self.completions.fetch_add(1, Ordering::Relaxed);
        self.brought(records);
    }

    /// Counts records delivered without a completion from the device.
    pub fn brought(&self, records: u64) {
        // Relaxed: only the number counts.
        self.records.fetch_add(records, Ordering::Relaxed);
    }

    /// The counts, by their descriptions.
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
