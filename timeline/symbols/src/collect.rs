//! The code addresses of a trace, by the modules that held them.
//!
//! An address is collected for each module that was ever loaded there, not only for the one that was there at the
//! event's time. So streams can be read in parallel and in any order. A name too many costs nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::hash::BuildHasherDefault;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use omptrace_trace_format::{Event, Reader, Stream};

use crate::Instance;
use crate::fast_map::Fold;
use crate::parallel::in_parallel;

/// Addresses within one module, one less than the return addresses: those of the calls.
pub(super) type CodeAddresses = Vec<u64>;

/// Bits of the number of addresses that are known without a look into the set.
const RECENT_BITS: u32 = 8;

#[derive(Default)]
struct Seen {
    /// Where each module lay: its path as it is, which need not be text, start and end.
    modules: BTreeSet<(Instance, Vec<u8>, u64, u64)>,
    return_addresses: HashSet<u64, BuildHasherDefault<Fold>>,
    /// Those of stacks.
    of_stacks: HashSet<u64, BuildHasherDefault<Fold>>,
}

impl Seen {
    fn in_stream(reader: &Reader, stream: &Stream) -> Seen {
        let mut seen = Seen::default();
        // Few addresses make most events, and a table of them is faster than the set.
        let mut recent = [0; 1 << RECENT_BITS];
        for record in reader.events(stream) {
            if let Event::Module(module) = &record.event {
                let path = module.path.0.as_deref().unwrap_or_default().to_vec();
                let (start, end) = (module.start.0, module.end.0);
                seen.modules.insert((Instance::of(module), path, start, end));
            }
            for code in record.event.codes() {
                let slot = code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS);
                if recent[slot as usize] != code {
                    recent[slot as usize] = code;
                    seen.return_addresses.insert(code);
                }
            }
            if let Some(stack) = record.event.stack() {
                seen.of_stacks.extend(stack.return_addresses());
            }
        }
        seen
    }

    fn and(mut self, other: Seen) -> Seen {
        self.modules.extend(other.modules);
        self.return_addresses.extend(other.return_addresses);
        self.of_stacks.extend(other.of_stacks);
        self
    }
}

/// A module, and what of it a trace has.
pub(super) struct ModuleCode {
    pub(super) instance: Instance,
    pub(super) path: PathBuf,
    /// In order.
    pub(super) addresses: CodeAddresses,
    /// Some are of events, not only of stacks.
    pub(super) has_constructs: bool,
}

/// The code of a trace.
pub(super) struct Collected {
    /// Every module that holds a code address.
    pub(super) modules: Vec<ModuleCode>,
    /// Addresses of stacks that no module ever held, in order.
    pub(super) in_no_module: CodeAddresses,
}

/// All code of the trace, by what held it.
pub(super) fn code(reader: &Reader) -> Collected {
    let streams = reader.streams().iter().collect();
    let seen = in_parallel(streams, |stream| Seen::in_stream(reader, stream))
        .into_iter()
        .fold(Seen::default(), Seen::and);
    let calls = |addresses: &HashSet<u64, _>| {
        let calls = addresses.iter().filter_map(|address| address.checked_sub(1));
        let mut calls: CodeAddresses = calls.collect();
        calls.sort_unstable();
        calls
    };
    let of_events = calls(&seen.return_addresses);
    let of_stacks = calls(&seen.of_stacks);
    let ranges: Vec<(u64, u64)> = seen.modules.iter().map(|module| (module.2, module.3)).collect();
    let is_in_module = |call: &u64| ranges.iter().any(|(start, end)| (*start..*end).contains(call));
    let in_no_module = of_stacks.iter().copied().filter(|call| !is_in_module(call)).collect();
    let mut by_module: BTreeMap<(Instance, PathBuf), (CodeAddresses, bool)> = BTreeMap::new();
    for (instance, path, start, end) in seen.modules {
        for (addresses, are_of_events) in [(&of_events, true), (&of_stacks, false)] {
            let first = addresses.partition_point(|address| *address < start);
            let count = addresses[first..].partition_point(|address| *address < end);
            if count > 0 {
                let key = (instance.clone(), OsString::from_vec(path.clone()).into());
                let (all, has_constructs) = by_module.entry(key).or_default();
                all.extend(&addresses[first..first + count]);
                *has_constructs |= are_of_events;
            }
        }
    }
    let modules = by_module.into_iter();
    let code = |((instance, path), (mut addresses, has_constructs)): (_, (CodeAddresses, bool))| {
        addresses.sort_unstable();
        addresses.dedup();
        ModuleCode { instance, path, addresses, has_constructs }
    };
    Collected { modules: modules.map(code).collect(), in_no_module }
}
