//! Any text may be a trace's metadata: what it says is summed up and shown, in every format.
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use omptrace_analysis::{Info, Stats, check};
use omptrace_fuzz::archive;
use omptrace_trace_format::block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, ClockPair, Codec};
use omptrace_trace_format::codec::pack_text;
use omptrace_viewer_export::{ConvertOptions, FORMATS, convert};

fuzz_target!(|data: &[u8]| {
    let packed = pack_text(data, 1);
    let block = match &packed {
        Some(packed) => block(Codec::ZSTD, packed),
        None => block(Codec::RAW, data),
    };
    let Some(reader) = omptrace_fuzz::open(&block) else {
        return;
    };
    serde_json::to_vec(&Info::of(&reader)).expect("no key is anything but a text");
    omptrace_report::info_text(&Info::of(&reader)).to_string();
    check(&reader);
    let inputs = [&reader];
    let options = ConvertOptions::default();
    for format in FORMATS {
        if format.is_folder() {
            archive::is_sound(&inputs, format, &options);
            continue;
        }
        let out = Box::new(io::sink());
        convert(&inputs, format, &options, out, &mut |_| ()).expect("nothing is written");
    }
    let (stats, _) = Stats::of(&inputs, &options.symbols);
    omptrace_report::stats_tables(&stats, Default::default()).to_string();
});

/// A metadata block; its check sums are made right when it is opened.
fn block(codec: Codec, payload: &[u8]) -> Vec<u8> {
    let header = BlockHeader {
        kind: BlockKind::METADATA,
        codec,
        payload_bytes: payload.len() as u32,
        payload_crc: 0,
        stream: 0,
        sequence: 0,
        clock: ClockPair::default(),
        first_id: 0,
        words: 0,
        events: 0,
        session: 0,
    };
    debug_assert_eq!(header.encode().len(), BLOCK_HEADER_BYTES);
    [&header.encode()[..], payload].concat()
}
