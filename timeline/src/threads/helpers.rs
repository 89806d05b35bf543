//! LLVM's hidden helper threads, which run target tasks that no thread waits for.
//!
//! OMPT does not identify them. One of them reports to be an initial thread. The others are workers of a parallel
//! region that it starts from code of the runtime itself, which no thread of a program does as the first thing.

use omptrace_symbols::is_openmp_runtime;
use omptrace_trace_format::Reader;
use omptrace_trace_format::event::{Event, Module};

use crate::model::thread_introduction::ThreadIntroduction;

/// Marks the hidden helpers among `threads`. The `main` thread is not one.
pub(crate) fn mark(reader: &Reader, threads: &mut [ThreadIntroduction], main: Option<usize>) {
    let regions = threads
        .iter()
        .enumerate()
        .filter(|(index, thread)| Some(*index) != main && thread.is_initial())
        .filter_map(|(_, thread)| thread.first_region);
    let regions: Vec<_> = regions.collect();
    let Some(last) = regions.iter().map(|region| region.ticks).max() else {
        return;
    };
    let runtimes = runtimes(reader, last);
    for region in regions {
        let holds = |module: &Module<'_>| (module.start.0..module.end.0).contains(&region.codeptr_ra.0);
        if !runtimes.iter().any(holds) {
            continue;
        }
        for thread in threads.iter_mut() {
            let begins_it = thread.first_region == Some(region);
            let is_member = thread.team.is_some_and(|team| team.region == region.id);
            thread.is_helper |= begins_it || is_member;
        }
    }
}

/// The OpenMP runtimes that were loaded until `last` (in raw ticks).
fn runtimes(reader: &Reader, last: u64) -> Vec<Module<'static>> {
    let until_then = |stream| reader.events(stream).take_while(move |record| record.ticks <= last);
    let runtime = |event| match event {
        Event::Module(module) if is_openmp_runtime(&module.path.lossy()) => Some(*module),
        _ => None,
    };
    reader.streams().iter().flat_map(until_then).filter_map(|record| runtime(record.event)).collect()
}
