//! The clock of recorded events, and the cost of an event, most of which is reading the clock.

use std::fs;

use omptrace_trace_format::Metadata;
use serde::Serialize;

/// Where the kernel names its clock source.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The clock of traces recorded on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RecordingClock {
    /// The tracer's clock: `tsc`, `cntvct`, `rdtime`, `mftb`, or `monotonic` if the CPU's counter is not reliable.
    pub(crate) kind: String,
    /// The smallest difference between two distinct times, in nanoseconds; left out if it is less than a nanosecond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolution_ns: Option<f64>,
    /// The kernel's clock source; left out if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kernel_source: Option<String>,
    /// The time that a usual event takes the recording thread, in nanoseconds, as measured by the tracer; left out if
    /// not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_ns: Option<f64>,
}

impl RecordingClock {
    /// The clock of a trace that was recorded on this machine just now.
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

    /// The same as text.
    pub(crate) fn line(&self) -> String {
        let source = self.kernel_source.as_deref().filter(|source| *source != self.kind);
        let clock = match source {
            Some(source) => format!("the clock is {} (the kernel's clock source is {source})", self.kind),
            None => format!("the clock is {}", self.kind),
        };
        let clock = match self.resolution_ns {
            Some(ns) => format!("{clock}, with a resolution of {ns:.0} ns"),
            None => clock,
        };
        match self.event_ns {
            Some(ns) => format!("{clock}; recording an event takes {ns:.0} ns"),
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
        assert_eq!(of("tsc", Some("tsc"), Some(12.3)), "the clock is tsc; recording an event takes 12 ns");
        assert_eq!(
            of("monotonic", Some("acpi_pm"), Some(46.7)),
            "the clock is monotonic (the kernel's clock source is acpi_pm); recording an event takes 47 ns"
        );
        assert_eq!(of("monotonic", None, None), "the clock is monotonic");
        let arm = RecordingClock {
            kind: "cntvct".to_owned(),
            resolution_ns: Some(40.0),
            kernel_source: None,
            event_ns: Some(9.0),
        };
        assert_eq!(
            arm.line(),
            "the clock is cntvct, with a resolution of 40 ns; recording an event takes 9 ns"
        );
    }
}
