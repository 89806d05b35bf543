//! The clock that times of events come from, and what an event costs with it: the largest part of that is reading the clock.

use std::fs;

use omptrace_trace_format::Metadata;
use serde::Serialize;

/// Where the kernel names its clock source.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The clock of the traces that are recorded here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RecordingClock {
    /// The tracer's clock: `tsc`, `cntvct`, `rdtime`, `mftb`, or `monotonic` where the CPU's counter cannot be trusted.
    pub(crate) kind: String,
    /// How far apart two times are at least, if they are not the same, in nanoseconds; left out where a nanosecond is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolution_ns: Option<f64>,
    /// The kernel's clock source; left out where it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kernel_source: Option<String>,
    /// What a usual event takes the thread that records it, in nanoseconds, as the tracer measured it; left out where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_ns: Option<f64>,
}

impl RecordingClock {
    /// That of a trace recorded on this machine just now.
    pub(crate) fn of(metadata: &Metadata) -> Option<RecordingClock> {
        let clock = metadata.clock.as_ref()?;
        let source = fs::read_to_string(SOURCE).ok();
        Some(RecordingClock {
            kind: clock.kind.clone(),
            resolution_ns: clock.resolution_ns().filter(|ns| *ns > 1.0).map(|ns| (ns * 10.0).round() / 10.0),
            kernel_source: source.map(|source| source.trim().to_owned()).filter(|source| !source.is_empty()),
            event_ns: metadata.event_cost_ns().map(|ns| (ns * 10.0).round() / 10.0),
        })
    }

    /// In words.
    pub(crate) fn line(&self) -> String {
        let source = self.kernel_source.as_deref().filter(|source| *source != self.kind);
        let clock = match source {
            Some(source) => format!("the clock is {} (the kernel's clock source is {source})", self.kind),
            None => format!("the clock is {}", self.kind),
        };
        let clock = match self.resolution_ns {
            Some(ns) => format!("{clock}, exact to {ns:.0} ns"),
            None => clock,
        };
        match self.event_ns {
            Some(ns) => format!("{clock}; an event costs {ns:.0} ns"),
            None => clock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_source_is_named_where_it_is_another() {
        let of = |kind: &str, source: Option<&str>, event_ns| {
            let kernel_source = source.map(str::to_owned);
            RecordingClock { kind: kind.to_owned(), resolution_ns: None, kernel_source, event_ns }.line()
        };
        assert_eq!(of("tsc", Some("tsc"), Some(12.3)), "the clock is tsc; an event costs 12 ns");
        assert_eq!(
            of("monotonic", Some("acpi_pm"), Some(46.7)),
            "the clock is monotonic (the kernel's clock source is acpi_pm); an event costs 47 ns"
        );
        assert_eq!(of("monotonic", None, None), "the clock is monotonic");
        let arm = RecordingClock {
            kind: "cntvct".to_owned(),
            resolution_ns: Some(40.0),
            kernel_source: None,
            event_ns: Some(9.0),
        };
        assert_eq!(arm.line(), "the clock is cntvct, exact to 40 ns; an event costs 9 ns");
    }
}
