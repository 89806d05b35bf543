//! What a trace contains, as lines of text.

use std::fmt::{self, Write as _};

use super::table::time;
use super::threads::serial_position;
use omptrace_analysis::{
    ClockInfo, DeviceInfo, ENDED, Info, MachineInfo, RuntimeInfo, StreamInfo, printable,
};
use omptrace_trace_format::metadata::{Mpi, Sampling};

/// The MPI library, and the rank of the process.
fn mpi_line(mpi: &Mpi) -> String {
    let place = mpi.rank.zip(mpi.size).map(|(rank, size)| format!(", rank {rank} of {size}"));
    let level = mpi.thread_level.get("provided").and_then(|level| level.as_str());
    let level = level.map(|level| format!(", {level}"));
    // Open MPI appends its package and repository.
    let library = mpi.library.split(',').next().unwrap_or_default();
    let library = library.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{library}{}{}", place.unwrap_or_default(), level.unwrap_or_default())
}

/// How the program ended, in words: with the exit status that `record` observed, if the process has ended.
pub fn end_words(info: &Info) -> String {
    let status = info.record.as_ref().and_then(|record| record.exit_status);
    match (&*info.ending, status) {
        (ENDED, Some(status)) => format!("exited with status {status}"),
        // Only the parent process knows whether it exited or died.
        (ENDED, None) => "the program ended, but its exit status is not known".to_owned(),
        (words, Some(status)) => format!("{words}; exit status {status}"),
        (words, None) => words.to_owned(),
    }
}

/// Several lines, each with a label and a value.
pub fn info_text(info: &Info) -> impl fmt::Display {
    InfoText(info)
}

struct InfoText<'a>(&'a Info);

impl fmt::Display for InfoText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InfoText(info) = self;
        let mut lines = Lines(f);
        lines.line("trace", &info.file)?;
        lines.line("program", &info.program.name)?;
        lines.line("command", &info.program.command_line.join(" "))?;
        lines.line("directory", &info.program.directory)?;
        lines.line("machine", &machine_line(&info.machine))?;
        if let Some(clock) = &info.clock {
            lines.line("clock", &clock_line(clock))?;
        }
        lines.line("start", &info.start)?;
        lines.line("duration", &duration_line(info))?;
        if let Some(serial) = &info.serial {
            let parts = [serial.before_ns, serial.between_ns, serial.after_ns];
            let position = serial_position(serial.total_ns, parts, info.duration_ns);
            lines.line("serial", &format!("{}: {position}", time(serial.total_ns)))?;
        }
        if let Some(mpi) = &info.mpi {
            lines.line("MPI", &mpi_line(mpi))?;
        }
        if let Some(note) = &info.mpi_note {
            lines.line("MPI", note)?;
        }
        lines.line("end", &end_words(info))?;
        lines.line("runtime", &runtime_line(&info.runtime))?;
        lines.line("library", &info.runtime.path)?;
        if let Some(record) = &info.record {
            if let Some(library) = &record.libgomp_replaced_by {
                lines.line("libgomp", &format!("replaced by {library}"))?;
            }
            let energy = record.energy.iter().filter_map(|energy| {
                let joules = energy.joules()?;
                Some(format!("{joules:.1} J in {}", energy.zone))
            });
            let energy: Vec<String> = energy.collect();
            if !energy.is_empty() {
                let all = format!("{} (estimate; includes all programs on the machine)", energy.join(", "));
                lines.line("energy", &all)?;
            }
        }
        lines.list("quirks", &info.runtime.quirks)?;
        for (meaning, names) in &info.callbacks {
            lines.line(&format!("callbacks {meaning}"), &names.join(" "))?;
        }
        lines.line("tracer", &info.runtime.tracer)?;
        lines.line("size", &size_line(info))?;
        lines.line("events", &info.events.to_string())?;
        lines.line("lost", &info.lost.to_string())?;
        let counts: Vec<String> =
            info.events_by_name.iter().map(|(name, count)| format!("{count:>12} {name}")).collect();
        lines.list("by name", &counts)?;
        let streams: Vec<String> = info.streams.iter().map(stream_line).collect();
        lines.list("streams", &streams)?;
        for (number, device) in &info.devices {
            lines.list(&format!("device {number}"), &device_lines(device))?;
        }
        if let Some(sampling) = &info.sampling {
            lines.list("samples", &sampling_lines(sampling))?;
        }
        if let Some(counting) = &info.counters {
            lines.list("counters", &counting.lines())?;
        }
        lines.list("messages", &info.messages)?;
        let withheld: Vec<String> =
            info.withheld.iter().map(|(callback, why)| format!("{callback}: {why}")).collect();
        lines.list("withheld", &withheld)?;
        lines.list("findings", &info.findings)
    }
}

/// Writes lines of a label and a value. Leaves out empty values, and keeps each value on a single line, whatever the
/// trace contains.
struct Lines<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Lines<'_, '_> {
    fn line(&mut self, word: &str, text: &str) -> fmt::Result {
        if text.is_empty() { Ok(()) } else { writeln!(self.0, "{:<17} {}", printable(word), printable(text)) }
    }

    fn list(&mut self, word: &str, items: &[impl fmt::Display]) -> fmt::Result {
        let words = std::iter::once(word).chain(std::iter::repeat(""));
        items.iter().zip(words).try_for_each(|(item, word)| self.line(word, &item.to_string()))
    }
}

fn duration_line(info: &Info) -> String {
    let seconds = |ns: u64| format!("{:.6} s", ns as f64 / 1e9);
    let duration = seconds(info.duration_ns);
    match info.before_tracing_ns {
        Some(before) => {
            format!(
                "{duration} from start to end of the process; tracing began {} after the start",
                seconds(before)
            )
        }
        None => format!(
            "{duration} since tracing began; the trace does not contain the start time of the process"
        ),
    }
}

fn machine_line(machine: &MachineInfo) -> String {
    let mut line = machine.host.clone();
    if !machine.cpu.is_empty() {
        let _ = write!(line, ", {} CPUs, {}", machine.cpus, machine.cpu);
    }
    if !machine.affinity.is_empty() {
        let _ = write!(line, ", process on {}", machine.affinity);
    }
    line
}

fn clock_line(clock: &ClockInfo) -> String {
    let rate = match clock.ticks_per_second {
        rate if rate >= 1e9 => format!("{:.2} GHz", rate / 1e9),
        rate => format!("{:.1} MHz", rate / 1e6),
    };
    // Times are printed in whole nanoseconds, so no better resolution is claimed.
    format!("{}, {rate}: times are exact to {:.0} ns", clock.kind, clock.resolution_ns.max(1.0))
}

fn runtime_line(runtime: &RuntimeInfo) -> String {
    match &runtime.version[..] {
        "" => String::new(),
        version if runtime.omp_version == 0 => {
            format!("{version} (tools interface {})", runtime.dialect)
        }
        version => format!("{version} (OpenMP {}, tools interface {})", runtime.omp_version, runtime.dialect),
    }
}

fn size_line(info: &Info) -> String {
    let size = &info.size;
    let mut line = format!("{} bytes, {:.2} per event", size.file_bytes, size.bytes_per_event);
    if size.spool_bytes > 0 {
        let _ = write!(line, ", spool {} bytes", size.spool_bytes);
    }
    if !size.sealed {
        line += ", not finished";
    }
    line
}

fn sampling_lines(sampling: &Sampling) -> Vec<String> {
    let period = sampling.period_ns as f64 / 1e6;
    let asked = format!("one sample requested per {period} ms of CPU time ({})", sampling.clock);
    let problems = once_each(&sampling.problems);
    std::iter::once(asked).chain(problems).collect()
}

/// Each problem once, in the order of first occurrence, with the number of occurrences: tracers up to 0.2.0 repeat
/// messages.
fn once_each(problems: &[String]) -> Vec<String> {
    let mut counts: Vec<(&String, usize)> = Vec::new();
    for problem in problems {
        match counts.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, count)) => *count += 1,
            None => counts.push((problem, 1)),
        }
    }
    let line = |(problem, count): (&String, usize)| match count {
        1 => problem.clone(),
        count => format!("{problem} ({count} times)"),
    };
    counts.into_iter().map(line).collect()
}

fn device_lines(info: &DeviceInfo) -> Vec<String> {
    let DeviceInfo { device, timeline } = info;
    let records = match &device.records[..] {
        "" => "no trace records".to_owned(),
        format => format!("trace records in {format} format"),
    };
    let kind = if device.r#type.is_empty() { "unknown type" } else { &device.r#type };
    let mut lines = vec![format!("{kind}, {records}")];
    lines.extend(once_each(&device.problems));
    let counts = &device.counts;
    lines.extend(counts.iter().map(|(what, count)| format!("{count:>12} {what}")));
    let shown = [
        (timeline.records, "operations with records from the device"),
        (timeline.host_observed, "operations with timestamps from the host only"),
        (timeline.without_record, "operations without a record, although the device was traced"),
        (timeline.uncorrelated, "records without a matching operation on the host"),
        (timeline.peak_bytes, "bytes of device memory in use at the peak"),
    ];
    let shown = shown.iter().filter(|(count, _)| *count > 0);
    lines.extend(shown.map(|(count, what)| format!("{count:>12} {what}")));
    lines.extend(timeline.clock.map(|clock| clock.to_string()));
    lines
}

fn stream_line(stream: &StreamInfo) -> String {
    let StreamInfo { stream: number, thread, os_tid, events, chunks, .. } = stream;
    let mut line =
        format!("{number:>4} {thread:<20} thread {os_tid:<8} {events:>12} events {chunks:>6} chunks");
    if !stream.os_name.is_empty() {
        let _ = write!(line, "  {}", stream.os_name);
    }
    if stream.missing_chunks > 0 {
        let _ = write!(line, "  {} chunks missing", stream.missing_chunks);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_shown_once() {
        let problems = ["b", "a", "b", "b"].map(str::to_owned);
        assert_eq!(once_each(&problems), ["b (3 times)", "a"]);
    }
}
