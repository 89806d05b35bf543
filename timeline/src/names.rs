//! The names of constructs, and their places in the program.
//!
//! Names are Score-P's, since Scalasca and Vampir users know them: `!$omp parallel @jacobi.c:41`. The place comes from
//! `codeptr_ra` and the module that is loaded at that address at the event's time. A table of [`omptrace_symbols`] turns
//! the two into words.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_trace_format::event::Module;
use omptrace_trace_format::field::{Address, ModuleChange};

use crate::sink::{Category, Item, Position, Region, RegionId, Sink, Source};
use omptrace_symbols::fast_map::RecentMap;
use omptrace_symbols::{Symbol, Table};

/// The kind of a region or an instant, without its place. Numbers are those of the OMPT enumerations, known or not.
// The tag has 32 bits, as many as the kind inside. A smaller tag would be copied together with the padding and a part of the
// kind. A load of the kind soon after would wait for both stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Construct {
    /// The process's initial task, or one of a league's.
    InitialTask,
    /// A member's part of a parallel region.
    ImplicitTask,
    /// A parallel region, on the thread that encounters it.
    Parallel,
    /// From the begin of a parallel region to the begin of a member's implicit task.
    ParallelWakeUp,
    /// A teams region, on the thread that encounters it.
    Teams,
    /// Like [`Construct::ParallelWakeUp`], of a league.
    TeamsWakeUp,
    /// A thread of no team waits for work.
    Idle,
    /// A worksharing region.
    Work(ompt::ompt_work_t),
    /// A barrier, taskwait or taskgroup.
    SyncRegion(ompt::ompt_sync_region_t),
    /// Waiting there.
    SyncRegionWait(ompt::ompt_sync_region_t),
    /// A reduction.
    Reduction,
    /// A masked region.
    Masked,
    /// An explicit task.
    Task,
    /// An explicit task that is untied.
    UntiedTask,
    /// A target task.
    TargetTask,
    /// The task of a taskwait with dependences.
    TaskwaitTask,
    /// The event of a detachable task was fulfilled.
    TaskFulfill,
    /// A task was created in a runtime that does not report when tasks run.
    TaskCreated,
    /// A task was completed there.
    TaskCompleted,
    /// Waiting for a lock, critical, atomic or ordered region.
    MutexWait(ompt::ompt_mutex_t),
    /// Being in a critical, atomic or ordered region.
    MutexHold(ompt::ompt_mutex_t),
    /// A mutex was released that was not reported to be acquired.
    MutexReleased(ompt::ompt_mutex_t),
    /// A lock is made.
    MutexInit(ompt::ompt_mutex_t),
    /// A lock is destroyed.
    MutexDestroy(ompt::ompt_mutex_t),
    /// A nested lock is set once more, or unset but kept.
    NestLockAgain(ompt::ompt_scope_endpoint_t),
    /// A target region or directive.
    Target(ompt::ompt_target_t),
    /// A data operation of a device.
    TargetDataOp(ompt::ompt_target_data_op_t),
    /// A kernel is submitted.
    TargetSubmit,
    /// Data is mapped.
    TargetMap,
    /// Something happens to a device.
    Device(DeviceEvent),
    /// Iterations, a section or a task are handed out.
    Dispatch(ompt::ompt_dispatch_t),
    /// Iterations of a loop, from when a thread gets them to when it gets the next.
    Chunk,
    /// A dependence of a doacross loop.
    Doacross,
    /// The thread's state at that moment.
    ThreadState(ompt::ompt_state_t),
    /// An event that only one runtime has.
    CollectorEvent,
    /// A flush.
    Flush,
    /// A cancellation.
    Cancel,
    /// A command of the user's to the tool.
    ControlTool,
    /// An error directive.
    Error,
    /// A phase that the user named.
    Phase,
    /// The thread wrote its own events.
    BufferFlush,
    /// The thread could run, and others had its processor.
    Preempted,
    /// Events were lost.
    Lost,
    /// An event of a newer tracer.
    Unknown,
}

/// An event of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceEvent {
    /// It was made ready.
    Initialize,
    /// It is no longer used.
    Finalize,
    /// Code was loaded.
    Load,
    /// Code was unloaded.
    Unload,
}

impl Construct {
    /// Whether it is the handing out of a part of a loop.
    pub fn is_chunk(self) -> bool {
        matches!(
            self,
            Construct::Dispatch(
                ompt::ompt_dispatch_ws_loop_chunk
                    | ompt::ompt_dispatch_taskloop_chunk
                    | ompt::ompt_dispatch_distribute_chunk
            )
        )
    }

    /// Construct's name and category. Enumerators that the specification lacks show as numbers.
    fn describe(self) -> (String, Category) {
        use Category as C;
        let fixed = |name: &str, category| (name.to_owned(), category);
        match self {
            Construct::InitialTask => fixed("initial task", C::ImplicitTask),
            Construct::ImplicitTask => fixed("!$omp implicit task", C::ImplicitTask),
            Construct::Parallel => fixed("!$omp parallel", C::Parallel),
            Construct::ParallelWakeUp => fixed("!$omp parallel (wake-up)", C::Wait),
            Construct::Teams => fixed("!$omp teams", C::Parallel),
            Construct::TeamsWakeUp => fixed("!$omp teams (wake-up)", C::Wait),
            Construct::Idle => fixed("idle", C::Wait),
            Construct::Work(kind) => (work_name(kind), C::Work),
            Construct::SyncRegion(kind) => (sync_region_name(kind), C::Sync),
            Construct::SyncRegionWait(kind) => (sync_region_name(kind) + " wait", C::Wait),
            Construct::Reduction => fixed("!$omp reduction", C::Sync),
            Construct::Masked => fixed("!$omp masked", C::Work),
            Construct::Task => fixed("!$omp task", C::Task),
            Construct::UntiedTask => fixed("!$omp task untied", C::Task),
            Construct::TargetTask => fixed("!$omp target task", C::Task),
            Construct::TaskwaitTask => fixed("!$omp taskwait depend", C::Task),
            Construct::TaskFulfill => fixed("task fulfilled", C::Task),
            // Who tests a lock does not wait for it.
            Construct::MutexWait(kind @ (ompt::ompt_mutex_test_lock | ompt::ompt_mutex_test_nest_lock)) => {
                (mutex_wait_name(kind), C::Mutex)
            }
            Construct::TaskCreated => fixed("task created", C::Task),
            Construct::TaskCompleted => fixed("task completed", C::Task),
            Construct::MutexWait(kind) => (mutex_wait_name(kind), C::Wait),
            Construct::MutexHold(kind) => (mutex_hold_name(kind), C::Mutex),
            Construct::MutexReleased(kind) => (mutex_released_name(kind), C::Mutex),
            Construct::MutexInit(kind) => (lock_routine("omp_init", kind), C::Mutex),
            Construct::MutexDestroy(kind) => (lock_routine("omp_destroy", kind), C::Mutex),
            Construct::NestLockAgain(ompt::ompt_scope_end) => fixed("omp_unset_nest_lock (inner)", C::Mutex),
            Construct::NestLockAgain(_) => fixed("omp_set_nest_lock (inner)", C::Mutex),
            Construct::Target(kind) => (target_name(kind), C::Target),
            Construct::TargetDataOp(kind) => (data_op_name(kind), C::Target),
            Construct::TargetSubmit => fixed("!$omp target submit", C::Target),
            Construct::TargetMap => fixed("!$omp target map", C::Target),
            Construct::Device(DeviceEvent::Initialize) => fixed("device initialize", C::Target),
            Construct::Device(DeviceEvent::Finalize) => fixed("device finalize", C::Target),
            Construct::Device(DeviceEvent::Load) => fixed("device load", C::Target),
            Construct::Device(DeviceEvent::Unload) => fixed("device unload", C::Target),
            Construct::Dispatch(kind) => (format!("dispatch {}", spelled(kind.name(), kind.0)), C::Work),
            Construct::Chunk => fixed("!$omp for chunk", C::Work),
            Construct::Doacross => fixed("!$omp ordered doacross", C::Sync),
            Construct::ThreadState(state) => (state_name(state), C::Omptrace),
            Construct::CollectorEvent => fixed("event of the runtime's own", C::Omptrace),
            Construct::Flush => fixed("!$omp flush", C::Sync),
            Construct::Cancel => fixed("!$omp cancel", C::Sync),
            Construct::ControlTool => fixed("omp_control_tool", C::User),
            Construct::Error => fixed("!$omp error", C::User),
            Construct::Phase => fixed("phase", C::User),
            Construct::BufferFlush => fixed("omptrace buffer flush", C::Omptrace),
            Construct::Preempted => fixed("preempted", C::Omptrace),
            Construct::Lost => fixed("omptrace lost events", C::Omptrace),
            Construct::Unknown => fixed("unknown event", C::Omptrace),
        }
    }
}

/// A thread's state in words.
pub(crate) fn state_name(state: ompt::ompt_state_t) -> String {
    format!("state: {}", spelled(state.name(), state.0))
}

/// An enumerator in words: its OMPT name, or its number where it has none.
fn spelled(name: Option<&str>, number: u32) -> String {
    name.map_or_else(|| format!("{number:#x}"), |name| name.replace('_', " "))
}

fn work_name(kind: ompt::ompt_work_t) -> String {
    let name = match kind {
        ompt::ompt_work_loop
        | ompt::ompt_work_loop_static
        | ompt::ompt_work_loop_dynamic
        | ompt::ompt_work_loop_guided
        | ompt::ompt_work_loop_other => "for",
        ompt::ompt_work_single_executor | ompt::ompt_work_single_other => "single",
        _ => return format!("!$omp {}", spelled(kind.name(), kind.0)),
    };
    format!("!$omp {name}")
}

fn sync_region_name(kind: ompt::ompt_sync_region_t) -> String {
    let name = match kind {
        ompt::ompt_sync_region_barrier | ompt::ompt_sync_region_barrier_explicit => "barrier",
        ompt::ompt_sync_region_barrier_implicit
        | ompt::ompt_sync_region_barrier_implicit_workshare
        | ompt::ompt_sync_region_barrier_implicit_parallel => "implicit barrier",
        ompt::ompt_sync_region_barrier_implementation => "implementation barrier",
        ompt::ompt_sync_region_barrier_teams => "implicit barrier (teams)",
        _ => return format!("!$omp {}", spelled(kind.name(), kind.0)),
    };
    format!("!$omp {name}")
}

fn mutex_hold_name(kind: ompt::ompt_mutex_t) -> String {
    format!("!$omp {}", spelled(kind.name(), kind.0))
}

fn mutex_released_name(kind: ompt::ompt_mutex_t) -> String {
    match kind {
        ompt::ompt_mutex_lock | ompt::ompt_mutex_nest_lock => lock_routine("omp_unset", kind),
        _ => mutex_hold_name(kind) + " released",
    }
}

fn mutex_wait_name(kind: ompt::ompt_mutex_t) -> String {
    match kind {
        ompt::ompt_mutex_lock => "omp_set_lock".to_owned(),
        ompt::ompt_mutex_test_lock => "omp_test_lock".to_owned(),
        ompt::ompt_mutex_nest_lock => "omp_set_nest_lock".to_owned(),
        ompt::ompt_mutex_test_nest_lock => "omp_test_nest_lock".to_owned(),
        _ => mutex_hold_name(kind) + " wait",
    }
}

fn lock_routine(verb: &str, kind: ompt::ompt_mutex_t) -> String {
    match kind {
        ompt::ompt_mutex_nest_lock | ompt::ompt_mutex_test_nest_lock => format!("{verb}_nest_lock"),
        _ => format!("{verb}_lock"),
    }
}

fn target_name(kind: ompt::ompt_target_t) -> String {
    match kind {
        ompt::ompt_target => "!$omp target".to_owned(),
        _ => format!("!$omp {}", spelled(kind.name(), kind.0)),
    }
}

fn data_op_name(kind: ompt::ompt_target_data_op_t) -> String {
    format!("!$omp target data {}", spelled(kind.name(), kind.0))
}

/// The begin of OpenMP's constructs in names that Score-P's tools read.
const SENTINEL: &str = "!$omp ";

/// The name of a construct as answers have it, and whether it is an OpenMP directive: without the begin that names have for
/// Score-P's tools.
pub fn plain_name(name: &str) -> (&str, bool) {
    match name.strip_prefix(SENTINEL) {
        Some(directive) => (directive, true),
        None => (name, false),
    }
}

/// A region's name apart: the construct, and where it is, from ` @` or ` inside @` on; empty where that is not known.
pub fn split_place(name: &str) -> (&str, &str) {
    let place = name.find(" inside @").or_else(|| name.find(" @"));
    name.split_at(place.unwrap_or(name.len()))
}

/// A region's name for people: where all is OpenMP, the sentinel says nothing, and a narrow slice has room for nothing else.
pub fn short_name(name: &str) -> &str {
    name.strip_prefix(SENTINEL).unwrap_or(name)
}

/// A place in the program.
struct Place {
    /// The text that follows `@` in names.
    text: String,
    /// Nothing is known where the text is an address.
    source: Source,
}

impl Place {
    /// The place of a construct somewhere inside of what is here: its own line is not known.
    fn around(&self) -> Place {
        Place {
            text: self.text.clone(),
            source: Source { position: Position::Inside, ..self.source.clone() },
        }
    }
}

/// The knowledge of a construct's code address.
#[derive(Clone, Copy)]
enum Known {
    Region(RegionId),
    /// The address is the OpenMP runtime's, or null, so the region depends on what is around.
    Around,
}

/// A construct with its code address, or with the number of the region around it, where one is looked up for each event.
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

/// Takes a [`Construct`] as one number: which it is, then of which kind. Equal numbers are equal constructs.
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

/// The regions of a timeline: interned, named at first use.
#[derive(Clone, Default)]
pub(crate) struct Names {
    /// The symbols of the process.
    symbols: Arc<Table>,
    /// Modules of the process that are loaded now, newest last.
    modules: Vec<Module<'static>>,
    /// Counts how often they have changed.
    generation: u64,
    /// Valid until a module comes or goes.
    by_address: RecentMap<Key, Known>,
    /// Regions without a place of their own, by what is around them.
    by_surroundings: RecentMap<Key, RegionId>,
    by_name: HashMap<(Category, String, Option<Source>), RegionId>,
    /// The place of each region, where it has one in the program.
    places: Vec<Option<Arc<Place>>>,
    /// The construct of each region.
    constructs: Vec<Construct>,
}

impl Names {
    /// From here on, addresses are those of another process, which has these names.
    pub(crate) fn next_process(&mut self, symbols: Table) {
        self.symbols = Arc::new(symbols);
        self.by_address.clear();
        self.modules.clear();
        self.generation += 1;
    }

    /// A module was loaded or unloaded: addresses mean something else from now on.
    pub(crate) fn module(&mut self, module: &Module<'static>) {
        self.by_address.clear();
        self.generation += 1;
        self.modules.retain(|old| old.end.0 <= module.start.0 || module.end.0 <= old.start.0);
        if module.change != ModuleChange::unloaded {
            self.modules.push(module.clone());
        }
    }

    /// The region of `construct` at `codeptr_ra`. Runtimes pass an address of their own where the program's call was a
    /// tail call, and for parts of `taskloop` and `cancel`. They pass none for the barrier that ends a worker's parallel
    /// region. Then the place is that of the first of `around`, the open regions from the innermost, that has one.
    #[inline(always)]
    pub(crate) fn region(
        &mut self,
        sink: &mut dyn Sink,
        construct: Construct,
        codeptr_ra: Address,
        around: impl Iterator<Item = RegionId>,
    ) -> RegionId {
        let known = match self.by_address.get(Key::new(construct, codeptr_ra.0)) {
            Some(known) => known,
            None => self.new_address(sink, construct, codeptr_ra),
        };
        match known {
            Known::Region(region) => region,
            Known::Around => self.region_around(sink, construct, codeptr_ra, around),
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
            Some(place) => Known::Region(self.region_at(sink, construct, place.map(Arc::new))),
            None => Known::Around,
        };
        self.by_address.insert(Key::new(construct, codeptr_ra.0), known);
        known
    }

    /// The region of a construct whose code address the program does not have.
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
        // Not at the same place, whether or not the runtime passes an address.
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
        let (mut name, _) = construct.describe();
        if let Some(place) = &place {
            let inside = match place.source.position {
                Position::At => "",
                Position::Inside => "inside ",
            };
            name = format!("{name} {inside}@{}", place.text);
        }
        let source = place.as_ref().map(|place| place.source.clone());
        let source = source.filter(Source::is_known);
        let region = self.intern(sink, construct, name, source);
        self.places[region.0 as usize] = place;
        region
    }

    /// The region of that name, which belongs to no code address.
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

    /// The place of a return address; `None` where it is in the runtime.
    fn place(&self, codeptr_ra: Address) -> Option<Place> {
        let Some(symbol) = self.symbol(codeptr_ra) else {
            return Some(Place { text: format!("{:#x}", codeptr_ra.0), source: Source::default() });
        };
        (!symbol.in_runtime).then(|| Place {
            text: symbol.to_string(),
            source: Source {
                function: symbol.function.map(str::to_owned),
                line: symbol.file.map(str::to_owned).zip(symbol.line),
                position: match symbol.is_around {
                    true => Position::Inside,
                    false => Position::At,
                },
            },
        })
    }

    /// The place of a return address, as far as it is known: the text that follows `@` in names, and the place in the
    /// source.
    pub(crate) fn source(&self, codeptr_ra: Address) -> Option<(String, Source)> {
        let place = self.place(codeptr_ra).filter(|_| codeptr_ra != Address(0))?;
        Some((place.text, place.source))
    }

    fn symbol_text(&self, codeptr_ra: Address) -> String {
        self.symbol(codeptr_ra).map_or_else(|| format!("{:#x}", codeptr_ra.0), |symbol| symbol.to_string())
    }

    /// A number that changes when addresses may mean something else.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The function at a return address in no module, which the program made while it ran.
    pub(crate) fn function_made(&self, codeptr_ra: Address) -> Option<&str> {
        self.symbols.function_made(codeptr_ra)
    }

    /// What is known of a return address; `None` where it is in no module.
    pub(crate) fn symbol(&self, codeptr_ra: Address) -> Option<Symbol<'_>> {
        // A call that does not return may be the last of its module.
        let call = codeptr_ra.0.wrapping_sub(1);
        let holds = |module: &&Module<'_>| (module.start.0..module.end.0).contains(&call);
        let module = self.modules.iter().rev().find(holds)?;
        Some(self.symbols.lookup(module, codeptr_ra))
    }
}

/// Whether a construct whose code address is one of the runtime is a part of what is around it, at the same place. Others
/// end a function by a call, and that function may be at any line inside.
fn is_part_of(construct: Construct, around: Construct) -> bool {
    match construct {
        Construct::Task | Construct::UntiedTask => around == Construct::Work(ompt::ompt_work_taskloop),
        // LLVM begins the taskgroup that a taskloop has first, and passes its address.
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

    #[test]
    fn short_names_begin_with_the_construct() {
        assert_eq!(short_name("!$omp parallel @a.c:7"), "parallel @a.c:7");
        assert_eq!(short_name("omp_set_lock @a.c:7"), "omp_set_lock @a.c:7");
    }

    #[test]
    fn enumerators_without_a_name_show_their_number() {
        let name = |construct: Construct| construct.describe().0;
        assert_eq!(name(Construct::Work(ompt::ompt_work_loop_dynamic)), "!$omp for");
        assert_eq!(name(Construct::Work(ompt::ompt_work_scope)), "!$omp scope");
        assert_eq!(name(Construct::Work(ompt::ompt_work_t(77))), "!$omp 0x4d");
        assert_eq!(name(Construct::SyncRegionWait(ompt::ompt_sync_region_taskwait)), "!$omp taskwait wait");
        assert_eq!(name(Construct::MutexWait(ompt::ompt_mutex_critical)), "!$omp critical wait");
        assert_eq!(name(Construct::Target(ompt::ompt_target_enter_data)), "!$omp target enter data");
        assert_eq!(
            name(Construct::TargetDataOp(ompt::ompt_target_data_transfer_to_device)),
            "!$omp target data transfer to device"
        );
    }
}
