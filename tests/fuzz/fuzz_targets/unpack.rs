//! Any payload can be unpacked, any words decoded; what unpacks, packs again to the same words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use omptrace_trace_format::codec::{Packer, Unpacker};
use omptrace_trace_format::event::{DecodeError, decode};
use omptrace_trace_format::predict::State;

const MAX_WORDS: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let mut words: Vec<u64> = data.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
    decode_all(&words);
    let mut unpacker = Unpacker::new().expect("zstd has memory");
    if unpacker.unpack(data, MAX_WORDS, &mut words).is_ok() {
        decode_all(&words);
        let mut packer = Packer::new(1, 0).expect("zstd has memory");
        let payload = packer.pack(&words).expect("unpacked events are whole").payload;
        let mut again = Vec::new();
        unpacker.unpack(payload, MAX_WORDS, &mut again).expect("our own payload");
        assert_eq!(again, words);
    }
});

fn decode_all(mut words: &[u64]) {
    let mut state = State::new(0);
    loop {
        let len = match decode(words, &mut state) {
            Ok(decoded) => decoded.len,
            Err(DecodeError::BadArguments { len }) => len,
            Err(_) => return,
        };
        words = &words[len..];
    }
}
