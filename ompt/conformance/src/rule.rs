//! The rules of the specification that are checked, and their violations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Declares [`Rule`], [`RULES`] and their texts from one table.
macro_rules! rules {
    ($($name:ident: $section:literal, $text:literal;)*) => {
        /// A rule of the tools interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Rule { $($name),* }

        /// All rules: section of OpenMP 5.2, text.
        const RULES: &[(Rule, &str, &str)] = &[$((Rule::$name, $section, $text)),*];
    };
}

rules! {
    ThreadHasBegun: "19.5.2.1", "events come from threads that have started";
    ThreadBeginsOnce: "19.5.2.1", "each thread starts only once";
    ThreadEndsLast: "19.5.2.2", "before a thread ends, it ends everything that it started";
    ThreadData: "19.6.1.5", "ompt_get_thread_data returns the data that thread_begin received";
    ParallelBegins: "19.5.2.3", "each parallel region ends exactly once, after its start";
    ImplicitTaskHasRegion: "19.5.2.11", "an implicit task begins after its parallel region has begun";
    TaskBegins: "19.5.2.7", "each task ends exactly once, after its creation";
    CurrentTask: "19.6.1.14", "the task of an event is the one that ompt_get_task_info returns as the current task";
    CurrentRegion: "19.6.1.13", "the region of an event is the region that ompt_get_task_info and ompt_get_parallel_info return";
    ThreadNumber: "19.6.1.14", "a thread's number is less than the size of its team";
    PriorTask: "19.5.2.10", "the prior task of task_schedule is the current task";
    EnterFrame: "19.4.4.29", "a task that enters the runtime has an enter frame";
    CodeAddress: "19.5.2", "an event that the program's code causes has a code address";
    CodeOfProgram: "19.5.2", "a code address lies outside of the runtime";
    Nesting: "19.5.2", "the region that began last ends first";
}

static BROKEN: [AtomicU64; RULES.len()] = [const { AtomicU64::new(0) }; RULES.len()];
static EXAMPLES: Mutex<[Option<String>; RULES.len()]> = Mutex::new([const { None }; RULES.len()]);

/// Counts a violation of `rule` unless `kept`; stores the first example.
#[inline]
pub(crate) fn check(rule: Rule, kept: bool, example: impl FnOnce() -> String) {
    // Relaxed: only sums are needed.
    if !kept && BROKEN[rule as usize].fetch_add(1, Ordering::Relaxed) == 0 {
        EXAMPLES.lock().unwrap_or_else(PoisonError::into_inner)[rule as usize] = Some(example());
    }
}

/// The number of violations, and the report's lines.
pub(crate) fn report() -> (u64, String) {
    let examples = EXAMPLES.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut all, mut lines) = (0, String::new());
    for &(rule, section, text) in RULES {
        let count = BROKEN[rule as usize].load(Ordering::Relaxed);
        if count > 0 {
            all += count;
            let example = examples[rule as usize].as_deref().unwrap_or("");
            lines += &format!(
                "violated {count} times: {text} (OpenMP 5.2, section {section}); first violation: {example}\n"
            );
        }
    }
    (all, lines)
}
