//! Encoded events are decoded unchanged, for any arguments.

use omptrace_trace_format::codec::{Packer, Unpacker};
use omptrace_trace_format::event::{CompactRow, DecodeError, Event, MAX_COMPACT_WORDS, TICK_BITS, decode};
use omptrace_trace_format::predict::State;
use proptest::prelude::*;

use crate::build::random;

/// Encodes random events, and returns them with their times, their words, and the final state.
fn encoded(seed: u64, count: usize) -> (Vec<(u64, Event<'static>)>, Vec<u64>, State) {
    let mut random = random(seed);
    let mut state = State::new(seed);
    let mut events = Vec::new();
    let mut words = Vec::new();
    let mut out = [0; 512];
    for _ in 0..count {
        let ticks = random() >> (64 - TICK_BITS);
        let event = Event::generate(random() as usize % Event::ROWS, &state, &mut random);
        let len = event.encode(&mut state, ticks, &mut out).expect("the event fits");
        words.extend_from_slice(&out[..len]);
        events.push((ticks, event));
    }
    (events, words, state)
}

/// Encodes the row in each applicable way; all must give the same words and the same state.
fn each_way<R: CompactRow + std::fmt::Debug>(row: R, before: &State) -> (u32, u32) {
    let mut usual = (before.clone(), [0; MAX_COMPACT_WORDS]);
    let len = row.encode::<false>(&mut usual.0, 7, &mut usual.1);
    let usual = (usual.0, usual.1[..len].to_vec());
    let mut ways = (0, 0);
    if row.is_predicted(before) {
        let mut state = before.clone();
        let word = row.encode_predicted(&mut state, 7);
        assert_eq!((state, vec![word]), usual, "{row:?}");
        ways.0 = 1;
    }
    if row.is_predicted_but_for_code(before) && row.has_new_code(before) {
        let mut state = before.clone();
        let words = row.encode_new_code(&mut state, 7);
        assert_eq!((state, words.to_vec()), usual, "{row:?}");
        ways.1 = 1;
    }
    ways
}

#[test]
fn each_way_of_encoding_gives_the_same_words() {
    let mut random = random(3);
    let mut state = State::new(9);
    let (mut predicted, mut of_new_code) = (0, 0);
    for _ in 0..20_000 {
        let event = Event::generate(random() as usize % Event::ROWS, &state, &mut random);
        let ways = match event {
            Event::ParallelBegin(row) if row.fits() => each_way(row, &state),
            Event::ParallelEnd(row) if row.fits() => each_way(row, &state),
            Event::TaskCreate(row) if row.fits() => each_way(row, &state),
            Event::TaskSchedule(row) if row.fits() => each_way(row, &state),
            Event::Work(row) if row.fits() => each_way(row, &state),
            Event::SyncRegion(row) if row.fits() => each_way(row, &state),
            Event::MutexAcquire(row) if row.fits() => each_way(row, &state),
            Event::MutexReleased(row) if row.fits() => each_way(row, &state),
            Event::Cancel(row) if row.fits() => each_way(row, &state),
            _ => (0, 0),
        };
        (predicted, of_new_code) = (predicted + ways.0, of_new_code + ways.1);
        event.encode(&mut state, 7, &mut [0; 512]).expect("the event fits");
    }
    assert!(predicted > 50 && of_new_code > 50, "{predicted} {of_new_code}");
}

proptest! {
    #[test]
    fn decoding_gives_back_what_was_encoded(seed: u64, count in 0usize..200) {
        let (events, words, state) = encoded(seed, count);
        let mut decoder = State::new(seed);
        let mut rest = &words[..];
        for (ticks, event) in events {
            let decoded = decode(rest, &mut decoder).expect("an event");
            prop_assert_eq!(decoded.event, event);
            prop_assert_eq!(decoded.ticks, ticks);
            rest = &rest[decoded.len..];
        }
        prop_assert!(rest.is_empty());
        prop_assert!(decoder == state, "the predictors went different ways");
    }

    #[test]
    fn unpacking_gives_back_what_was_packed(seed: u64, count in 0usize..500) {
        let (_, words, _) = encoded(seed, count);
        let mut packer = Packer::new(1, words.len()).unwrap();
        let packed = packer.pack(&words).expect("whole events");
        prop_assert_eq!(packed.events as usize, count);
        let mut back = Vec::new();
        let events = Unpacker::new().unwrap().unpack(packed.payload, words.len(), &mut back);
        prop_assert_eq!(events, Ok(count as u32));
        prop_assert_eq!(back, words);
    }

    #[test]
    fn any_words_decode_without_panic(words: Vec<u64>) {
        let mut state = State::new(0);
        let mut rest = &words[..];
        while let Some(len) = match decode(rest, &mut state) {
            Ok(decoded) => Some(decoded.len),
            Err(DecodeError::BadArguments { len }) => Some(len),
            Err(_) => None,
        } {
            rest = &rest[len..];
        }
    }

    #[test]
    fn any_words_pack_or_are_refused(words: Vec<u64>) {
        let mut packer = Packer::new(1, 0).unwrap();
        if let Some(packed) = packer.pack(&words) {
            let mut back = Vec::new();
            let unpacked = Unpacker::new().unwrap().unpack(packed.payload, words.len(), &mut back);
            prop_assert!(unpacked.is_ok());
            prop_assert_eq!(back, words);
        }
    }

    #[test]
    fn any_payload_unpacks_without_panic(mut payload: Vec<u8>, seed: u64, flip: usize) {
        let mut unpacker = Unpacker::new().unwrap();
        let mut words = Vec::new();
        let _ = unpacker.unpack(&payload, 1000, &mut words);
        // Slightly damaged payloads get further than random ones.
        let (_, right, _) = encoded(seed, 40);
        payload = Packer::new(1, 0).unwrap().pack(&right).unwrap().payload.to_vec();
        let flip = flip % (payload.len() * 8);
        payload[flip / 8] ^= 1 << (flip % 8);
        let _ = unpacker.unpack(&payload, right.len(), &mut words);
        prop_assert!(words.len() <= right.len());
    }
}

#[test]
fn every_row_is_generated_and_named() {
    let mut random = random(1);
    let state = State::new(0);
    let schema = omptrace_trace_format::event::schema();
    assert_eq!(schema.len(), Event::ROWS);
    for (row, expected) in schema.iter().enumerate() {
        let event = Event::generate(row, &state, &mut random);
        assert_eq!((event.name(), event.number()), (expected.name, expected.number));
        let mut names = Vec::new();
        event.visit(&mut |name, _| names.push(name));
        let expected: Vec<&str> = expected.arguments.iter().map(|a| a.name).collect();
        assert_eq!(names, expected);
    }
}

/// A head's flags tell how many words follow it, even if this version knows fewer arguments.
#[test]
fn words_of_unknown_flags_are_skipped() {
    const FLAGS: u64 = 127 << 19;

    let (_, words, _) = encoded(1, 200);
    for head in words.into_iter().filter(|head| (1..63).contains(&(head & 63))) {
        let event = [head | FLAGS, 0, 0, 0, 0, 0, 0, 0];
        match decode(&event, &mut State::new(0)) {
            Ok(decoded) => assert_eq!(decoded.len, event.len(), "{event:x?}"),
            Err(error) => assert!(matches!(error, DecodeError::UnknownKind(_)), "{error:?}"),
        }
        let cut = decode(&event[..7], &mut State::new(0));
        assert!(cut.is_err(), "{cut:?}");
    }
}
