//! Hints at checkpoints for windows of traces that are read from their start.

use omptrace_timeline::may_have_checkpoints;
use omptrace_timeline::model::Ns;
use omptrace_trace_format::Reader;

use crate::output::message;
use crate::output::quoted_path::typed;

/// Bytes of events that take seconds to read.
const MANY_BYTES: u64 = 64 << 20;

/// Explains how windows of the traces can be read faster, if one of the windows starts late.
pub(crate) fn hint_at_checkpoints(window: Option<(Ns, Ns)>, readers: &[&Reader]) {
    if window.is_none_or(|(begin, _)| begin <= 0) {
        return;
    }
    let could_have = |reader: &&&Reader| {
        let (metadata, summary) = (reader.metadata(), reader.summary());
        let is_plain = may_have_checkpoints(metadata) && metadata.devices.is_empty();
        // The analysis that creates a summary creates checkpoints, too.
        is_plain && summary.sealed && summary.summary_bytes == 0 && summary.event_bytes >= MANY_BYTES
    };
    let lacking: Vec<_> = readers.iter().filter(could_have).collect();
    let name = match lacking[..] {
        [] => return,
        [one] => typed(one.path()),
        _ => "TRACE...".to_owned(),
    };
    message::note(&format!(
        "reading {} from the beginning, because only traces with checkpoints can be read from the middle; to add checkpoints, run: omptrace recover {name}",
        message::counted(lacking.len() as u64, "trace")
    ));
}
