//! The power that the machine took while a process ran, by what `omptrace record` has read: counters beside those of threads.

use omptrace_trace_format::Reader;

use crate::emitter::Stage;
use crate::sink::Ns;

/// Shows the power of each zone, from each reading to the next, on a timeline on which the session starts at `start`.
pub(crate) fn show(stage: &mut Stage<'_>, reader: &Reader, start: Ns) {
    let record = reader.metadata().record.as_ref();
    let zero = reader.clock().start_raw_ns();
    if !stage.wants_counts || zero == 0 {
        return;
    }
    let on_timeline = |raw_ns: u64| {
        let ns = i64::try_from(i128::from(raw_ns) - i128::from(zero)).unwrap_or(0);
        start.saturating_add(ns).max(0)
    };
    for energy in record.into_iter().flat_map(|record| &record.energy) {
        let powers: Vec<(Ns, i64)> = energy
            .powers_mw()
            .map(|(raw_ns, mw)| (on_timeline(raw_ns), mw))
            .collect();
        let Some((last, _)) = energy.readings.last().filter(|_| !powers.is_empty()) else {
            continue;
        };
        if !powers.is_sorted_by_key(|(time, _)| *time) {
            continue;
        }
        let counter = stage.counter(format!("power of {}, estimated", energy.zone), "mW");
        for (time, mw) in powers {
            stage.count(counter, time, mw);
        }
        stage.count(counter, on_timeline(*last), 0);
    }
}
