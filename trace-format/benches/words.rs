//! The cost of each processing step of an event: encoding, reading, packing, unpacking. Run by `cargo bench -p
//! omptrace-trace-format`.
//!
//! `cargo xtask bench` measures the cost for traced programs.

mod chunk;

use chunk::{LEVEL, encode, events, read};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use omptrace_trace_format::codec::{Packer, Unpacker};

fn parts(criterion: &mut Criterion) {
    let events = events();
    let mut words = Vec::new();
    encode(&events, &mut words);
    let mut packer = Packer::new(LEVEL, words.len()).expect("a packer");
    let payload = packer.pack(&words).expect("whole events").payload.to_vec();

    let mut group = criterion.benchmark_group("chunk");
    group.throughput(Throughput::Elements(events.len() as u64));
    let mut again = Vec::with_capacity(words.len());
    group.bench_function("encode", |bencher| {
        bencher.iter(|| encode(&events, &mut again));
    });
    group.bench_function("decode", |bencher| bencher.iter(|| read(&words)));
    group.bench_function("pack", |bencher| {
        bencher.iter(|| packer.pack(&words).map(|packed| packed.payload.len()));
    });
    let mut unpacker = Unpacker::new().expect("an unpacker");
    group.bench_function("unpack", |bencher| {
        bencher.iter(|| unpacker.unpack(&payload, words.len(), &mut again));
    });
    group.finish();
}

criterion_group!(benches, parts);
criterion_main!(benches);
