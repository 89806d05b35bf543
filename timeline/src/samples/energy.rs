//! The power of the machine while a process ran, as counters, from the readings of `omptrace record`.

use omptrace_trace_format::metadata::Record;

use crate::interpret::item_emitter::Stage;
use crate::model::Ns;
use crate::model::session_clock::SessionClock;

/// Emits the power of each zone between consecutive readings.
pub(crate) fn show(stage: &mut Stage<'_>, record: Option<&Record>, clock: SessionClock<'_>) {
    let zero = clock.map.start_raw_ns();
    if !stage.wants_counts || zero == 0 {
        return;
    }
    let time = |raw_ns: u64| {
        let ns = i128::from(raw_ns) - i128::from(zero);
        clock.on_timeline(i64::try_from(ns).unwrap_or(0))
    };
    for energy in record.into_iter().flat_map(|record| &record.energy) {
        let powers = energy.powers_mw();
        let powers: Vec<(Ns, i64)> = powers.map(|(raw_ns, mw)| (time(raw_ns), mw)).collect();
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
        stage.count(counter, time(*last), 0_i64);
    }
}
