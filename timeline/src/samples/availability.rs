//! Whether a trace contains samples, and how many.

use omptrace_trace_format::{Event, Reader};

/// The numbers of samples and of lost samples of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleSums {
    /// Number of samples.
    pub samples: u64,
    /// The CPU time that they represent.
    pub weight_ns: u64,
    /// Number of samples that the tracer lost.
    pub lost: u64,
    /// The CPU time that the lost samples represented.
    pub lost_ns: u64,
}

/// Why a trace contains no samples; `None` if it contains some.
pub fn why_no_samples(reader: &Reader) -> Option<String> {
    let has_samples = |index| {
        let first = reader.first_records(index).first();
        first.is_some_and(|first| matches!(first.event, Event::SampleStream(_)))
    };
    if (0..reader.streams().len()).any(has_samples) {
        return None;
    }
    Some(match &reader.metadata().sampling {
        None => "no samples were requested when the program was recorded".to_owned(),
        Some(sampling) if sampling.problems.is_empty() => {
            "no thread used enough CPU time for even one sample".to_owned()
        }
        Some(sampling) => sampling.problems.join("; "),
    })
}
