//! The names of constructs, and their places in the program.
//!
//! The names are Score-P's, which Scalasca and Vampir users know: `!$omp parallel @jacobi.c:41`. The place follows from
//! `codeptr_ra` and the module that is loaded at that address at the time of the event. A table of [`omptrace_symbols`]
//! resolves both.

pub(crate) mod construct;
pub(crate) mod folding;

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_symbols::fast_map::RecentMap;
use omptrace_symbols::{Symbol, Table};
use omptrace_trace_format::event::Module;
use omptrace_trace_format::field::{Address, ModuleChange};

use crate::model::{Item, Position, Region, RegionId, Sink, Source};
use crate::names::construct::{Category, Construct};

/// A place in the program.
struct Place {
    /// The text after `@` in names.
    text: String,
    /// Empty if the text is an address.
    source: Source,
}

impl Place {
    /// The place of a construct somewhere inside the code at this place; the construct's own line is unknown.
    fn around(&self) -> Place {
        Place {
            text: self.text.clone(),
            source: Source { position: Position::Inside, ..self.source.clone() },
        }
    }

    /// The place of a call at the line of this place.
    fn of_call(&self) -> Place {
        let position = match self.source.position {
            Position::Inside => Position::At,
            other => other,
        };
        Place { text: self.text.clone(), source: Source { position, ..self.source.clone() } }
    }
}

/// What is known about a construct's code address.
#[derive(Clone, Copy)]
enum Known {
    Region(RegionId),
    /// The address is in the OpenMP runtime, or null, so the region depends on the regions around it.
    Around,
}

/// A construct with its code address, or with the number of the region around it. The key of lookups that occur for
/// each event.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    construct: u64,
    at: u64,
}

impl Key {
    #[inline(always)]
    fn new(construct: Construct, at: u64) -> Key {
        let mut parts = Parts(0);
        construct.hash(&mut parts);
        Key { construct: parts.0, at }
    }
}

impl Hash for Key {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.at ^ self.construct.rotate_left(24));
    }
}

/// A [`Construct`] as one number, its variant followed by its kind. Equal numbers mean equal constructs.
struct Parts(u64);

impl Hasher for Parts {
    #[inline(always)]
    fn write_u32(&mut self, kind: u32) {
        self.0 = self.0 << 32 | u64::from(kind);
    }

    #[inline(always)]
    fn write_isize(&mut self, variant: isize) {
        self.write_u32(variant as u32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32((*byte).into());
        }
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The regions of a timeline, interned and named at first use.
#[derive(Clone, Default)]
pub(crate) struct Names {
    /// The symbols of the process.
    symbols: Arc<Table>,
    /// The loaded modules of the process, newest last.
    modules: Vec<Module<'static>>,
    /// The number of changes of `modules`.
    generation: u64,
    /// Regions and places by code address. Cleared when a module is loaded or unloaded.
    by_address: RecentMap<Key, Known>,
    /// Regions without a place of their own, by construct and surrounding region.
    by_surroundings: RecentMap<Key, RegionId>,
    by_name: HashMap<(Category, String, Option<Source>), RegionId>,
    /// The place of each region, if it has one in the program.
    places: Vec<Option<Arc<Place>>>,
    /// The construct of each region.
    constructs: Vec<Construct>,
    /// The label that is added to the places of regions named from now on: an index in `labels`, counted from 1, or 0.
    pub(crate) label: u32,
    /// Names of kernels whose regions are all at the same place in a library.
    labels: Vec<String>,
}

/// Maximum number of labels: as many as fit into a key, next to an address.
const MAX_LABELS: usize = (1 << 16) - 1;

impl Names {
    /// Switches to another process, with these symbols.
    pub(crate) fn next_process(&mut self, symbols: Table) {
        self.symbols = Arc::new(symbols);
        self.by_address.clear();
        self.modules.clear();
        self.generation += 1;
    }

    /// A module was loaded or unloaded, so addresses may have other meanings.
    pub(crate) fn module(&mut self, module: &Module<'static>) {
        self.by_address.clear();
        self.generation += 1;
        self.modules.retain(|old| old.end.0 <= module.start.0 || module.end.0 <= old.start.0);
        if module.change != ModuleChange::unloaded {
            self.modules.push(module.clone());
        }
    }

    /// The region of `construct` at `codeptr_ra`. Runtimes pass an address of their own if the program's call was a
    /// tail call, and for parts of `taskloop` and `cancel`; for the barrier at the end of a worker's parallel region,
    /// they pass none. In these cases, the place is that of the innermost region in `around` that has one.
    #[inline(always)]
    pub(crate) fn region(
        &mut self,
        sink: &mut dyn Sink,
        construct: Construct,
        codeptr_ra: Address,
        around: impl Iterator<Item = RegionId>,
    ) -> RegionId {
        let known = match self.by_address.get(self.key(construct, codeptr_ra)) {
            Some(known) => known,
            None => self.new_address(sink, construct, codeptr_ra),
        };
        match known {
            Known::Region(region) => region,
            Known::Around => self.region_around(sink, construct, codeptr_ra, around),
        }
    }

    /// Code addresses have at most 48 bits.
    #[inline(always)]
    fn key(&self, construct: Construct, codeptr_ra: Address) -> Key {
        Key::new(construct, codeptr_ra.0 ^ u64::from(self.label) << 48)
    }

    /// The number of a label; 0 if there are too many.
    pub(crate) fn label(&mut self, label: &str) -> u32 {
        if let Some(known) = self.labels.iter().position(|known| known == label) {
            return known as u32 + 1;
        }
        if self.labels.len() >= MAX_LABELS {
            return 0;
        }
        self.labels.push(label.to_owned());
        self.labels.len() as u32
    }

    /// The place with the current kernel's label.
    fn labelled(&self, place: Place) -> Place {
        let label = (self.label as usize).checked_sub(1).and_then(|number| self.labels.get(number));
        match label {
            Some(label) => Place {
                text: format!("{} ({label})", place.text),
                source: Source { function: Some(label.clone()), ..place.source },
            },
            None => place,
        }
    }

    #[cold]
    fn new_address(&mut self, sink: &mut dyn Sink, construct: Construct, codeptr_ra: Address) -> Known {
        let is_sync = matches!(construct, Construct::SyncRegion(_) | Construct::SyncRegionWait(_));
        let place = match codeptr_ra {
            Address(0) if is_sync => None,
            Address(0) => Some(None),
            address => self.place(address).map(Some),
        };
        let known = match place {
            Some(place) => {
                let place = place.map(|place| Arc::new(self.labelled(place)));
                Known::Region(self.region_at(sink, construct, place))
            }
            None => Known::Around,
        };
        self.by_address.insert(self.key(construct, codeptr_ra), known);
        known
    }

    /// The region of a construct whose code address is not in the program.
    #[inline(never)]
    fn region_around(
        &mut self,
        sink: &mut dyn Sink,
        construct: Construct,
        codeptr_ra: Address,
        mut around: impl Iterator<Item = RegionId>,
    ) -> RegionId {
        let has_place = |region: &RegionId| self.places[region.0 as usize].is_some();
        let Some(around) = around.find(has_place) else {
            if codeptr_ra == Address(0) {
                return self.region_at(sink, construct, None);
            }
            let name = format!("{} @{}", construct.describe().0, self.symbol_text(codeptr_ra));
            return self.named(sink, construct, name);
        };
        // Part of the key, because the region's place depends on whether the runtime passes an address.
        let key = Key::new(construct, u64::from(around.0) << 1 | u64::from(codeptr_ra.0 > 0));
        if let Some(region) = self.by_surroundings.get(key) {
            return region;
        }
        let mut place = self.places[around.0 as usize].clone();
        let is_elsewhere =
            codeptr_ra != Address(0) && !is_part_of(construct, self.constructs[around.0 as usize]);
        if is_elsewhere {
            place = place.map(|place| Arc::new(place.around()));
        }
        let region = self.region_at(sink, construct, place);
        self.by_surroundings.insert(key, region);
        region
    }

    fn region_at(
        &mut self,
        sink: &mut dyn Sink,
        construct: Construct,
        place: Option<Arc<Place>>,
    ) -> RegionId {
        // The construct is somewhere around the call for which it is reported. A wait is the call itself.
        let place = match construct {
            Construct::ExternalWait(_) | Construct::MpiCall(_) | Construct::MpiWait(_) => {
                place.map(|place| Arc::new(place.of_call()))
            }
            _ => place,
        };
        let (mut name, _) = construct.describe();
        if let Some(place) = &place {
            name = format!("{name} {}@{}", place.source.position.word(), place.text);
        }
        let source = place.as_ref().map(|place| place.source.clone());
        let source = source.filter(Source::is_known);
        let region = self.intern(sink, construct, name, source);
        self.places[region.0 as usize] = place;
        region
    }

    /// The region with this name, which has no code address.
    pub(crate) fn named(&mut self, sink: &mut dyn Sink, construct: Construct, name: String) -> RegionId {
        self.intern(sink, construct, name, None)
    }

    fn intern(
        &mut self,
        sink: &mut dyn Sink,
        construct: Construct,
        name: String,
        source: Option<Source>,
    ) -> RegionId {
        let category = construct.describe().1;
        let id = RegionId(self.by_name.len() as u32);
        let key = (category, name, source);
        if let Some(known) = self.by_name.get(&key) {
            return *known;
        }
        sink.item(&Item::Region(&Region {
            id,
            name: key.1.clone(),
            category,
            construct,
            source: key.2.clone(),
        }));
        self.by_name.insert(key, id);
        self.places.push(None);
        self.constructs.push(construct);
        id
    }

    /// The place of a return address; `None` if it is in the runtime.
    fn place(&self, codeptr_ra: Address) -> Option<Place> {
        let Some(symbol) = self.symbol(codeptr_ra) else {
            return Some(Place { text: format!("{:#x}", codeptr_ra.0), source: Source::default() });
        };
        (!symbol.in_runtime).then(|| Place {
            text: symbol.to_string(),
            source: Source {
                function: symbol.function.map(str::to_owned),
                line: symbol.file.map(str::to_owned).zip(symbol.line),
                position: match (symbol.is_around, symbol.is_near) {
                    (true, _) => Position::Inside,
                    (false, true) => Position::Near,
                    (false, false) => Position::At,
                },
                code: symbol.needs_code().then(|| symbol.code()),
            },
        })
    }

    /// The place of a return address, as far as known: the text after `@` in names, and the source location.
    pub(crate) fn source(&self, codeptr_ra: Address) -> Option<(String, Source)> {
        let place = self.place(codeptr_ra).filter(|_| codeptr_ra != Address(0))?;
        Some((place.text, place.source))
    }

    fn symbol_text(&self, codeptr_ra: Address) -> String {
        self.symbol(codeptr_ra).map_or_else(|| format!("{:#x}", codeptr_ra.0), |symbol| symbol.to_string())
    }

    /// A number that changes whenever addresses may change their meaning.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The function at a return address outside of all modules, generated by the program at run time.
    pub(crate) fn function_made(&self, codeptr_ra: Address) -> Option<&str> {
        self.symbols.function_made(codeptr_ra)
    }

    /// The symbol of a return address; `None` if it is in no module.
    pub(crate) fn symbol(&self, codeptr_ra: Address) -> Option<Symbol<'_>> {
        // A call that does not return may be the last instruction of its module.
        let call = codeptr_ra.0.wrapping_sub(1);
        let holds = |module: &&Module<'_>| (module.start.0..module.end.0).contains(&call);
        let module = self.modules.iter().rev().find(holds)?;
        Some(self.symbols.lookup(module, codeptr_ra))
    }
}

/// Whether a construct whose code address is in the runtime is a part of the construct around it, at the same place.
/// Other constructs are the last call of a function, which may be at any line.
fn is_part_of(construct: Construct, around: Construct) -> bool {
    match construct {
        Construct::Task | Construct::UntiedTask => around == Construct::Work(ompt::ompt_work_taskloop),
        // LLVM starts a taskloop's taskgroup first, and passes its address.
        Construct::Work(ompt::ompt_work_taskloop) => {
            around == Construct::SyncRegion(ompt::ompt_sync_region_taskgroup)
        }
        Construct::SyncRegion(
            ompt::ompt_sync_region_barrier_implicit
            | ompt::ompt_sync_region_barrier_implicit_parallel
            | ompt::ompt_sync_region_barrier_teams,
        ) => true,
        Construct::Parallel
        | Construct::Teams
        | Construct::TargetTask
        | Construct::TaskwaitTask
        | Construct::Work(_)
        | Construct::Masked
        | Construct::SyncRegion(_)
        | Construct::MutexInit(_)
        | Construct::MutexDestroy(_)
        | Construct::NestLockAgain(_)
        | Construct::Target(_)
        | Construct::Flush
        | Construct::Cancel
        | Construct::ControlTool
        | Construct::Error => false,
        Construct::MutexWait(_) | Construct::MutexHold(_) => {
            matches!(around, Construct::MutexWait(_) | Construct::MutexHold(_))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::construct::DeviceEvent;

    #[test]
    fn constructs_have_keys_of_their_own() {
        let kinds = [0, 1, 2, 77, u32::MAX];
        let constructs = kinds.into_iter().flat_map(|kind| {
            [
                Construct::Work(ompt::ompt_work_t(kind)),
                Construct::SyncRegion(ompt::ompt_sync_region_t(kind)),
                Construct::SyncRegionWait(ompt::ompt_sync_region_t(kind)),
                Construct::MutexWait(ompt::ompt_mutex_t(kind)),
                Construct::MutexHold(ompt::ompt_mutex_t(kind)),
                Construct::ThreadState(ompt::ompt_state_t(kind)),
            ]
        });
        let further = [
            Construct::InitialTask,
            Construct::ImplicitTask,
            Construct::Parallel,
            Construct::Device(DeviceEvent::Initialize),
            Construct::Device(DeviceEvent::Unload),
            Construct::Unknown,
        ];
        let mut keys = std::collections::HashSet::new();
        for construct in constructs.chain(further) {
            for at in [0, 0x40_1200] {
                assert!(keys.insert(Key::new(construct, at)), "{construct:?}");
            }
        }
        assert_eq!(keys.len(), 2 * (5 * 6 + 6));
    }
}
