//! Whether a trace has samples, and how many.

use omptrace_trace_format::{Event, Reader};

/// How many samples a process has, and how many were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleSums {
    /// Samples.
    pub samples: u64,
    /// The CPU time that they represent.
    pub weight_ns: u64,
    /// Samples that the tracer lost.
    pub lost: u64,
    /// The CPU time that these represented.
    pub lost_ns: u64,
}

/// Why a trace has no samples; `None` where it has some.
pub fn why_no_samples(reader: &Reader) -> Option<String> {
    let has_samples = |stream| {
        let first = reader.events(stream).next();
        first.is_some_and(|first| matches!(first.event, Event::SampleStream(_)))
    };
    if reader.streams().iter().any(has_samples) {
        return None;
    }
    Some(match &reader.metadata().sampling {
        None => "samples were not requested while recording".to_owned(),
        Some(sampling) if sampling.problems.is_empty() => {
            "no thread used enough CPU time for a sample".to_owned()
        }
        Some(sampling) => sampling.problems.join("; "),
    })
}
