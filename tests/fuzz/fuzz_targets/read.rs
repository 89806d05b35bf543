//! Any file can be read, with any spool: no panic, no endless loop, no memory beyond the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(reader) = omptrace_fuzz::open(data) else {
        return;
    };
    for stream in reader.streams() {
        let mut events = reader.events(stream);
        for record in &mut events {
            reader.clock().ns(record.ticks);
            record.event.visit(&mut |_, _| ());
        }
        events.take_diagnostics();
    }
});
