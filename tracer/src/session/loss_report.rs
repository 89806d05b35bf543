//! Reports in the trace how many events were lost because there was no chunk, and since when. Threads count them themselves
//! (`Stream::lose`).

use std::sync::atomic::Ordering;

use omptrace_trace_format::block::Chunk;
use omptrace_trace_format::event::{Lost, MAX_COMPACT_WORDS, WideRow};
use omptrace_trace_format::field::Ticks;

use crate::os::time::clock;
use crate::recorder::recorder::Recorder;
use crate::session::Session;

impl Session {
    /// Adds a stream's lost events to the session's count, once.
    pub(super) fn count_lost(&self, recorder: &Recorder) -> u64 {
        let lost = recorder.stream.take_lost(Some(&self.spool));
        // Relaxed: only the sum counts.
        self.lost.fetch_add(lost, Ordering::Relaxed);
        lost
    }

    /// Reports the events lost since the start of the stream's last chunk, in another chunk, because its thread has
    /// ended.
    pub(super) fn report_last_lost(&self, recorder: &Recorder) {
        let (stream, lost) = (&recorder.stream, self.count_lost(recorder));
        if lost == 0 {
            return;
        }
        let place = Chunk {
            stream: stream.number.get(),
            sequence: stream.sequence.replace(stream.sequence.get() + 1),
            clock: clock::pair().0,
            first_id: 0,
        };
        let row = Lost { begin: Ticks(stream.lost_since.get()), events: lost };
        let mut words = [0; 2 * MAX_COMPACT_WORDS];
        let len = row.encode(0, &mut words).unwrap_or(0);
        if let Err(error) = self.output.write_words(&place, &words[..len], None) {
            self.fail("write", &error);
        }
    }
}
