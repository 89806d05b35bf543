//! Cuts the runtime's frames out of a thread's own stack.
//!
//! ```text
//! innermost                                                             outermost
//! | leaf |  runtime  | body of a task or region |  runtime  | user code | start of the thread |
//!   0          .                 1                   .           2        segments
//! ```
//!
//! The runtime's frames are recognised by their modules. The leaf may belong to the program, or be a C library function
//! that the runtime calls: `ompt_frame_t` tells which.

use std::ops::Range;

use ompt_sys as ompt;
use omptrace_trace_format::event::Sample;

use super::code::{BelongsTo, Code};

/// The parts of a stack between the runtime's frames, innermost first. The first and the last part may be empty.
pub(super) fn segments(codes: &[Code]) -> Vec<Range<usize>> {
    let is_runtime = |index: &usize| codes[*index].belongs_to == BelongsTo::Runtime;
    let mut segments = Vec::new();
    let mut begin = 0;
    while let Some(runtime) = (begin..codes.len()).find(is_runtime) {
        segments.push(begin..runtime);
        let behind = (runtime..codes.len()).find(|index| !is_runtime(index));
        begin = behind.unwrap_or(codes.len());
    }
    segments.push(begin..codes.len());
    segments
}

/// Whether the thread executes code of the program, so that the frames of the first segment belong to the program.
pub(super) fn is_in_program(sample: &Sample<'_>, has_runtime_frames: bool, is_worker: bool) -> bool {
    if !is_worker && !has_runtime_frames {
        return true;
    }
    // The runtime was entered, and has not called the program since.
    let is_entered = sample.enter_frame >= 0;
    let is_left = sample.exit_frame >= 0;
    let is_initial = sample.task_flags.contains(ompt::ompt_task_initial) && !is_worker;
    sample.task_flags.0 != 0 && !is_entered && (is_left || is_initial)
}

/// The segment without its outermost frames, which only start the program or a thread.
pub(super) fn without_start(codes: &[Code], segment: Range<usize>) -> Range<usize> {
    let is_start = |index: &usize| codes[*index].belongs_to == BelongsTo::Libc;
    let starts = segment.clone().rev().take_while(is_start).count();
    segment.start..segment.end - starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FunctionId, StackFrame};

    fn codes(kinds: &str) -> Vec<Code> {
        let code = |kind| Code {
            frame: StackFrame { function: FunctionId(0), line: None },
            begin: 0,
            belongs_to: match kind {
                'r' => BelongsTo::Runtime,
                'c' => BelongsTo::Libc,
                _ => BelongsTo::Program,
            },
            does: None,
        };
        kinds.chars().map(code).collect()
    }

    /// Checks the segments against `expected`, which lists them in order.
    fn check(kinds: &str, expected: &str) {
        let segments = segments(&codes(kinds)).into_iter();
        let segments: Vec<&str> = segments.map(|range| &kinds[range]).collect();
        assert_eq!(segments.join("|"), expected, "{kinds}");
    }

    #[test]
    fn the_runtimes_frames_separate_segments() {
        check("", "");
        check("pp", "pp");
        check("prrp", "p|p");
        check("rprrc", "|p|c");
        check("cr", "c|");
    }

    #[test]
    fn only_outermost_frames_of_the_c_library_start_the_program() {
        let codes = codes("cppcc");
        assert_eq!(without_start(&codes, 0..5), 0..3);
        assert_eq!(without_start(&codes, 3..5), 3..3);
        assert_eq!(without_start(&codes, 0..3), 0..3);
    }
}
