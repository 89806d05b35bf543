//! Any trace, alone or beside others, can be converted to every format, in every manner and part, and its events be shown,
//! checked and counted. What is written is what it claims to be.
#![no_main]

use std::io::{self, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use omptrace_analysis::{Info, Stats, check};
use omptrace_fuzz::archive;
use omptrace_fuzz::choice::Choices;
use omptrace_timeline::filter::{ArgumentChoice, Selection};
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{
    ConvertOptions, FORMATS, Format, FormatOptions, convert, convert_split, dump_json, dump_text,
};

fuzz_target!(|data: &[u8]| {
    let Some(reader) = omptrace_fuzz::open(data) else {
        return;
    };
    let mut choices = Choices::of(data);
    // More than a file has shares, now and then.
    let inputs = vec![&reader; choices.one_of([1, 1, 1, 1, 1, 2, 3, 9])];
    let options = options(&mut choices);
    let limit_bytes = choices.one_of([None, None, None, Some(1 << 10)]);
    let threads = choices.one_of([None, None, None, NonZero::new(4)]);
    for format in FORMATS {
        if format.is_folder() {
            archive::is_sound(&inputs, format, &options);
            continue;
        }
        let files = match limit_bytes {
            Some(limit_bytes) => series(&inputs, format, &options, limit_bytes),
            None => vec![converted(&inputs, format, &options)],
        };
        if format.name == "chrome" {
            files.iter().for_each(|file| is_json(file));
        }
        if let (Some(_), None) = (threads, limit_bytes) {
            let options = ConvertOptions { threads, ..options.clone() };
            assert!(files[0] == converted(&inputs, format, &options));
        }
    }
    let (stats, _) = Stats::of(&inputs, &options.symbols);
    serde_json::to_vec(&stats).expect("numbers and texts");
    omptrace_report::stats_tables(&stats, Default::default()).to_string();
    check(&reader);
    let nowhere = || Box::new(io::sink());
    dump_json(&reader, nowhere()).expect("nothing is written");
    dump_text(&reader, nowhere()).expect("nothing is written");
    omptrace_report::info_text(&Info::of(&reader)).to_string();
});

fn options(choices: &mut Choices) -> ConvertOptions {
    use ArgumentChoice::{All, Ids, None as No};
    let begin = 1 << choices.below(32);
    let wide = 1 << choices.below(32);
    let short = 1 << choices.below(16);
    let mut format = FormatOptions::default();
    for option in FORMATS.iter().flat_map(|format| format.options) {
        match option.values {
            [] if choices.one_of([false, false, false, true]) => format.switch_on(option),
            [] => {}
            values => format.set(option, values[choices.below(values.len() as u32) as usize].0),
        }
    }
    ConvertOptions {
        chunks: choices.one_of([false, true]),
        selection: Selection {
            arguments: choices.one_of([All, All, Ids, No]),
            window: choices.one_of([None, None, None, Some((begin, begin + wide))]),
            threads: choices
                .one_of([&[][..], &[], &["1"], &["worker"]])
                .iter()
                .map(|name| name.to_string())
                .collect(),
            min_duration_ns: choices.one_of([0, 0, 0, short]),
            extra_tracks: Vec::new(),
        },
        format,
        threads: NonZero::new(1),
        ..ConvertOptions::default()
    }
}

fn converted(inputs: &[&Reader], format: &Format, options: &ConvertOptions) -> Vec<u8> {
    let out = Memory::default();
    let target = Box::new(out.clone());
    convert(inputs, format, options, target, &mut |_| ()).expect("memory can be written");
    out.take()
}

/// More files of a series find nothing new.
const MAX_FILES: usize = 16;

fn series(
    inputs: &[&Reader],
    format: &'static Format,
    options: &ConvertOptions,
    limit_bytes: u64,
) -> Vec<Vec<u8>> {
    let files: Arc<Mutex<Vec<Memory>>> = Arc::default();
    let series = Arc::clone(&files);
    let next_file = move |_| {
        let mut series = series.lock().expect("no panic");
        if series.len() == MAX_FILES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = Memory::default();
        series.push(file.clone());
        Ok(Box::new(file) as Box<dyn Write + Send>)
    };
    let next_file = Box::new(next_file);
    let result = convert_split(inputs, format, options, limit_bytes, next_file, &mut |_| ());
    if let Err(error) = result {
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    let files = files.lock().expect("no panic");
    files.iter().map(Memory::take).collect()
}

fn is_json(file: &[u8]) {
    let json = serde_json::from_slice::<serde::de::IgnoredAny>(file);
    json.expect("a JSON text");
}

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
