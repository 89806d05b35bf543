//! Any trace can be converted to every format, and shown event by event.
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use omptrace_viewer_export::{ConvertOptions, FORMATS, Info, convert, dump_json, dump_text};

fuzz_target!(|data: &[u8]| {
    let Some(reader) = omptrace_fuzz::open(data) else {
        return;
    };
    let nowhere = || Box::new(io::sink());
    for format in FORMATS.iter().filter(|format| !format.is_folder()) {
        convert(
            &[&reader],
            format,
            &ConvertOptions::default(),
            nowhere(),
            &mut |_| (),
        )
        .expect("nothing is written");
    }
    dump_json(&reader, nowhere()).expect("nothing is written");
    dump_text(&reader, nowhere()).expect("nothing is written");
    Info::of(&reader).to_string();
});
