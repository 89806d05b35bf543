//! Collects the code addresses of a trace, by module.
//!
//! An address is collected for each module that was ever loaded there, not only for the one that was loaded at the time
//! of the event. So streams can be read in parallel and in any order. Superfluous addresses do no harm.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::hash::BuildHasherDefault;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use omptrace_trace_format::{Event, Reader, Stream};

use crate::Instance;
use crate::directive::Directive;
use crate::fast_map::Fold;
use crate::parallel::in_parallel;

/// Addresses within one module, each with the directive for which the program calls the runtime. They are addresses of
/// calls: one less than the return addresses.
pub(super) type CodeAddresses = Vec<(u64, Option<Directive>)>;

/// Binary logarithm of the size of the table of recent addresses, which avoids lookups in the set.
const RECENT_BITS: u32 = 8;

#[derive(Default)]
struct Seen {
    /// Where each module was loaded: path as bytes, which need not be UTF-8, start and end.
    modules: BTreeSet<(Instance, Vec<u8>, u64, u64)>,
    return_addresses: HashMap<u64, Option<Directive>, BuildHasherDefault<Fold>>,
    /// Addresses on stacks.
    of_stacks: HashSet<u64, BuildHasherDefault<Fold>>,
}

impl Seen {
    fn in_stream(reader: &Reader, stream: &Stream) -> Seen {
        let mut seen = Seen::default();
        // Most events have one of a few addresses, for which a table is faster than the set.
        let mut recent = [(0, None); 1 << RECENT_BITS];
        for record in reader.events(stream) {
            if let Event::Module(module) = &record.event {
                let path = module.path.0.as_deref().unwrap_or_default().to_vec();
                let (start, end) = (module.start.0, module.end.0);
                seen.modules.insert((Instance::of(module), path, start, end));
            }
            let [code, section] = record.event.codes();
            for known in [(code, Directive::of(&record.event)), (section, Some(Directive::Section))] {
                let slot = known.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS);
                if known.0 != 0 && recent[slot as usize] != known {
                    recent[slot as usize] = known;
                    seen.add(known);
                }
            }
            if let Some(stack) = record.event.stack() {
                seen.of_stacks.extend(stack.return_addresses());
            }
        }
        seen
    }

    /// Adds an address of an event. If there are several directives at one address, the outermost is used.
    fn add(&mut self, (code, directive): (u64, Option<Directive>)) {
        let known = self.return_addresses.entry(code).or_default();
        *known = known.iter().copied().chain(directive).min();
    }

    fn and(mut self, other: Seen) -> Seen {
        self.modules.extend(other.modules);
        for known in other.return_addresses {
            self.add(known);
        }
        self.of_stacks.extend(other.of_stacks);
        self
    }
}

/// A module, and its addresses in the trace.
pub(super) struct ModuleCode {
    pub(super) instance: Instance,
    pub(super) path: PathBuf,
    /// Sorted.
    pub(super) addresses: CodeAddresses,
    /// Some addresses come from events, not only from stacks.
    pub(super) has_constructs: bool,
}

/// The code addresses of a trace.
pub(super) struct Collected {
    /// Every module that holds a code address.
    pub(super) modules: Vec<ModuleCode>,
    /// Addresses on stacks outside of all modules, sorted.
    pub(super) in_no_module: Vec<u64>,
}

/// Collects the code addresses of the trace by module.
pub(super) fn code(reader: &Reader) -> Collected {
    let streams = reader.streams().iter().collect();
    let seen = in_parallel(streams, |stream| Seen::in_stream(reader, stream))
        .into_iter()
        .fold(Seen::default(), Seen::and);
    let call = |(address, directive): (u64, _)| Some((address.checked_sub(1)?, directive));
    let mut of_events: CodeAddresses = seen.return_addresses.into_iter().filter_map(call).collect();
    of_events.sort_unstable();
    let of_stacks = seen.of_stacks.into_iter().map(|address| (address, None));
    let mut of_stacks: CodeAddresses = of_stacks.filter_map(call).collect();
    of_stacks.sort_unstable();
    let ranges: Vec<(u64, u64)> = seen.modules.iter().map(|module| (module.2, module.3)).collect();
    let is_in_module = |call: &u64| ranges.iter().any(|(start, end)| (*start..*end).contains(call));
    let in_no_module = of_stacks.iter().map(|(call, _)| *call).filter(|call| !is_in_module(call)).collect();
    let mut by_module: BTreeMap<(Instance, PathBuf), (CodeAddresses, bool)> = BTreeMap::new();
    for (instance, path, start, end) in seen.modules {
        for (addresses, are_of_events) in [(&of_events, true), (&of_stacks, false)] {
            let first = addresses.partition_point(|(address, _)| *address < start);
            let count = addresses[first..].partition_point(|(address, _)| *address < end);
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
        // The purpose of calls on stacks is unknown.
        addresses.sort_by_key(|(address, directive)| (*address, directive.is_none(), *directive));
        addresses.dedup_by_key(|(address, _)| *address);
        ModuleCode { instance, path, addresses, has_constructs }
    };
    Collected { modules: modules.map(code).collect(), in_no_module }
}
