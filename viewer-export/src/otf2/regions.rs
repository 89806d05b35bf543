//! OTF2's form of each construct: Score-P's names, canonical names and roles, on which tools rely.
//!
//! Scalasca identifies constructs by their canonical names, which start with `!$omp` and contain ` @`. Constructs that
//! Score-P does not record (waiting, waking up, chunks of loops) get canonical names without `!$omp`, so that tools do
//! not mistake them for the construct.

use std::collections::{BTreeMap, HashMap};

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{Category, Construct, DeviceWork, Position, Region, Source, split_place};
use omptrace_trace_format::field::CallClass;
use otf2_archive::encoding::StringRef;
use otf2_archive::records::{self, paradigm, role};

use super::options::Enums;
use crate::otf2::definitions::strings::Strings;

/// The form of a region in OTF2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    role: u8,
    /// Score-P's name of the construct, if it differs from the timeline's.
    name: Option<&'static str>,
    /// How the canonical name is made.
    canonical: Canonical,
}

/// How the canonical name is derived from the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Canonical {
    /// The same as the name.
    Name,
    /// The routine's name only, without a place.
    Routine,
    /// Without `!$omp`.
    Unknown,
}

const fn construct(role: u8) -> Shape {
    Shape { role, name: None, canonical: Canonical::Name }
}

const fn called(role: u8, name: &'static str) -> Shape {
    Shape { name: Some(name), ..construct(role) }
}

const fn routine() -> Shape {
    Shape { canonical: Canonical::Routine, ..construct(role::WRAPPER) }
}

/// The form of a construct that Score-P does not know.
const fn unknown(role: u8) -> Shape {
    Shape { canonical: Canonical::Unknown, ..construct(role) }
}

/// The creation of a task.
const TASK_CREATE: Shape = called(role::TASK_CREATE, "!$omp create task");

impl Enums {
    fn shape(self, region: &Region) -> Shape {
        use Construct as C;
        match region.construct {
            // The process's initial task has no place in the program; other initial tasks belong to a league.
            C::InitialTask if region.name.contains(" @") => called(role::PARALLEL, "!$omp teams"),
            C::InitialTask => unknown(role::ARTIFICIAL),
            // Each member is in the parallel region; only the thread that encounters it forks and joins.
            C::ImplicitTask => called(role::PARALLEL, "!$omp parallel"),
            C::Parallel | C::Teams => construct(role::PARALLEL),
            C::ParallelWakeUp | C::TeamsWakeUp | C::SyncRegionWait(_) | C::Idle => unknown(role::ARTIFICIAL),
            C::Work(kind) => construct(work_role(kind)),
            C::SyncRegion(kind) => construct(sync_region_role(kind)),
            C::Reduction => construct(role::COLL_ALL2ONE),
            C::Masked => construct(role::MASTER),
            C::Task | C::TargetTask | C::TaskwaitTask => construct(role::TASK),
            C::UntiedTask => construct(role::TASK_UNTIED),
            // The wait is a part of these regions, as in Score-P.
            C::MutexWait(ompt::ompt_mutex_critical) => called(role::CRITICAL, "!$omp critical"),
            C::MutexWait(ompt::ompt_mutex_atomic) => called(role::ATOMIC, "!$omp atomic"),
            C::MutexWait(ompt::ompt_mutex_ordered) => called(role::ORDERED, "!$omp ordered"),
            C::MutexHold(ompt::ompt_mutex_critical) => called(role::CRITICAL_SBLOCK, "!$omp critical sblock"),
            C::MutexHold(ompt::ompt_mutex_atomic) => called(role::CODE, "!$omp atomic sblock"),
            C::MutexHold(ompt::ompt_mutex_ordered) => called(role::ORDERED_SBLOCK, "!$omp ordered sblock"),
            C::MutexReleased(
                ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic | ompt::ompt_mutex_ordered,
            ) => unknown(role::CODE),
            C::ExternalWait(_) | C::MpiWait(_) => unknown(role::WRAPPER),
            C::MpiCall(function) => {
                Shape { canonical: Canonical::Routine, ..construct(mpi_role(function.class())) }
            }
            C::MutexWait(_) | C::MutexHold(_) | C::MutexInit(_) | C::MutexDestroy(_) => routine(),
            C::MutexReleased(_) => routine(),
            C::NestLockAgain(_) | C::ControlTool => routine(),
            C::Target(_) => construct(role::TASK_WAIT),
            C::TargetDataOp(kind) => construct(data_op_role(kind)),
            C::TargetSubmit | C::TargetMap | C::Device(_) => construct(role::WRAPPER),
            C::Dispatch(ompt::ompt_dispatch_section) => called(role::SECTION, "!$omp section"),
            C::Flush => construct(role::FLUSH),
            C::Cancel => construct(self.cancel_role()),
            C::Dispatch(_) | C::Chunk | C::Doacross | C::Error => unknown(role::CODE),
            C::TaskFulfill | C::TaskCreated | C::TaskCompleted => unknown(role::CODE),
            C::Phase | C::Annotation(_) => construct(role::CODE),
            C::Mark => construct(role::ARTIFICIAL),
            C::ThreadState(_) | C::CollectorEvent | C::BufferFlush | C::Preempted | C::Lost | C::Unknown => {
                construct(role::ARTIFICIAL)
            }
        }
    }

    fn device_shape(self, work: DeviceWork<&Source>) -> Shape {
        match work {
            DeviceWork::Kernel(_) => called(self.kernel_role(), "!$omp target (kernel execution)"),
            DeviceWork::TransferTo { .. } | DeviceWork::TransferFrom { .. } => construct(role::DATA_TRANSFER),
            DeviceWork::DataOp(kind) => construct(data_op_role(kind)),
            DeviceWork::Native => construct(role::CODE),
        }
    }

    fn paradigm(self, category: Category) -> u8 {
        match category {
            Category::Target => self.target_paradigm(),
            Category::Mpi => paradigm::MPI,
            Category::User => paradigm::USER,
            Category::Omptrace => paradigm::MEASUREMENT_SYSTEM,
            _ => paradigm::OPENMP,
        }
    }
}

/// The role of an MPI function. Which processes a collective operation involves is not known here.
fn mpi_role(class: CallClass) -> u8 {
    match class {
        CallClass::send
        | CallClass::receive
        | CallClass::send_receive
        | CallClass::nonblocking_send
        | CallClass::nonblocking_receive
        | CallClass::start
        | CallClass::wait
        | CallClass::test
        | CallClass::probe => role::POINT2POINT,
        CallClass::collective | CallClass::nonblocking_collective => role::COLL_OTHER,
        CallClass::one_sided => role::RMA,
        CallClass::file => role::FILE_IO,
        _ => role::FUNCTION,
    }
}

fn work_role(kind: ompt::ompt_work_t) -> u8 {
    match kind {
        ompt::ompt_work_sections => role::SECTIONS,
        ompt::ompt_work_single_executor | ompt::ompt_work_single_other => role::SINGLE,
        ompt::ompt_work_workshare => role::WORKSHARE,
        ompt::ompt_work_scope => role::CODE,
        _ => role::LOOP,
    }
}

fn sync_region_role(kind: ompt::ompt_sync_region_t) -> u8 {
    match kind {
        ompt::ompt_sync_region_barrier
        | ompt::ompt_sync_region_barrier_explicit
        | ompt::ompt_sync_region_taskgroup => role::BARRIER,
        ompt::ompt_sync_region_taskwait => role::TASK_WAIT,
        ompt::ompt_sync_region_reduction => role::COLL_ALL2ONE,
        _ => role::IMPLICIT_BARRIER,
    }
}

fn data_op_role(kind: ompt::ompt_target_data_op_t) -> u8 {
    match kind {
        ompt::ompt_target_data_alloc | ompt::ompt_target_data_alloc_async => role::ALLOCATE,
        ompt::ompt_target_data_delete | ompt::ompt_target_data_delete_async => role::DEALLOCATE,
        ompt::ompt_target_data_associate | ompt::ompt_target_data_disassociate => role::WRAPPER,
        _ => role::DATA_TRANSFER,
    }
}

/// The regions of an archive.
pub(super) struct Regions {
    enums: Enums,
    /// The regions of the timeline.
    timeline: Vec<Region>,
    /// The form of each of these regions in the archive.
    known: Vec<Known>,
    definitions: Vec<records::Region>,
    /// The operations of devices, by role and by name on the timeline.
    of_devices: BTreeMap<u8, FastMap<String, u32>>,
    /// Regions with equal names, roles and places are merged.
    by_content: HashMap<(StringRef, u8, StringRef, u32), u32>,
}

/// The parts of a region's definition.
struct Definition<'a> {
    /// The name on the timeline.
    name: &'a str,
    category: Category,
    source: Option<&'a Source>,
    shape: Shape,
}

impl Definition<'_> {
    fn record(&self, strings: &mut Strings, enums: Enums) -> records::Region {
        let shape = self.shape;
        let (own, place) = split_place(self.name);
        let own = shape.name.unwrap_or(own);
        let name = format!("{own}{place}");
        let canonical = match shape.canonical {
            Canonical::Name => &name[..],
            Canonical::Routine => own,
            Canonical::Unknown => name.trim_start_matches("!$omp "),
        };
        // A line that is only near the construct would be taken for the construct's own.
        let source = self.source.filter(|source| source.position == Position::At);
        let (file, line) = match source.and_then(Source::own_line) {
            Some((file, line)) => (file, line),
            // Score-P's words for regions without a file; Scalasca searches for the first.
            None => match self.category {
                Category::User | Category::Omptrace => ("", 0),
                Category::Target => ("OMP_TARGET", 0),
                Category::Mpi => ("MPI", 0),
                _ => ("OMP", 0),
            },
        };
        let function = source.and_then(|source| source.function.as_deref());
        records::Region {
            id: 0,
            name: strings.number(&name),
            description: strings.number(function.unwrap_or_default()),
            legacy_type: 0,
            source_file: strings.number(file),
            begin_line: line,
            end_line: 0,
            canonical_name: strings.number(canonical),
            role: shape.role,
            paradigm: enums.paradigm(self.category),
            flags: 0,
        }
    }
}

/// The properties of a region that are needed for each event.
struct Known {
    construct: Construct,
    /// The region's number, once it has been needed.
    number: Option<u32>,
    /// For a task: the number of the region of its creation.
    creation: Option<u32>,
}

impl Regions {
    pub(super) fn new(enums: Enums) -> Regions {
        Regions {
            enums,
            timeline: Vec::new(),
            known: Vec::new(),
            definitions: Vec::new(),
            of_devices: BTreeMap::new(),
            by_content: HashMap::new(),
        }
    }

    /// The next region of the timeline.
    pub(super) fn add(&mut self, region: &Region) {
        self.timeline.push(region.clone());
        self.known.push(Known { construct: region.construct, number: None, creation: None });
    }

    #[inline]
    pub(super) fn construct(&self, region: usize) -> Construct {
        self.known[region].construct
    }

    /// The archive's number of a region of the timeline.
    #[inline]
    pub(super) fn number(&mut self, strings: &mut Strings, region: usize) -> u32 {
        match self.known[region].number {
            Some(number) => number,
            None => {
                let shape = self.enums.shape(&self.timeline[region]);
                let number = self.define(strings, region, shape);
                self.known[region].number = Some(number);
                number
            }
        }
    }

    /// The number of the creation region for tasks with this region.
    pub(super) fn creation(&mut self, strings: &mut Strings, region: usize) -> u32 {
        match self.known[region].creation {
            Some(number) => number,
            None => {
                let number = self.define(strings, region, TASK_CREATE);
                self.known[region].creation = Some(number);
                number
            }
        }
    }

    fn define(&mut self, strings: &mut Strings, region: usize, shape: Shape) -> u32 {
        let region = &self.timeline[region];
        let definition = Definition {
            name: &region.name,
            category: match region.construct {
                // The wait is a part of the call.
                Construct::MpiWait(_) => Category::Mpi,
                _ => region.category,
            },
            source: region.source.as_ref(),
            shape,
        };
        let definition = definition.record(strings, self.enums);
        self.intern(definition)
    }

    /// The number of a device's operation, which is called `name` on the timeline.
    pub(super) fn of_device(&mut self, strings: &mut Strings, name: &str, work: DeviceWork<&Source>) -> u32 {
        let shape = self.enums.device_shape(work);
        let known = self.of_devices.entry(shape.role).or_default();
        if let Some(number) = known.get(name) {
            return *number;
        }
        let definition = Definition {
            name,
            category: Category::Target,
            source: match work {
                DeviceWork::Kernel(source) => Some(source),
                _ => None,
            },
            shape,
        };
        let number = self.intern(definition.record(strings, self.enums));
        let known = self.of_devices.entry(shape.role).or_default();
        known.insert(name.to_owned(), number);
        number
    }

    fn intern(&mut self, definition: records::Region) -> u32 {
        let next = self.definitions.len() as u32;
        let content = (definition.name, definition.role, definition.source_file, definition.begin_line);
        let number = *self.by_content.entry(content).or_insert(next);
        if number == next {
            self.definitions.push(records::Region { id: number, ..definition });
        }
        number
    }

    /// A region that does not exist in the program: around everything that a thread does, or for an event without
    /// duration.
    pub(super) fn own(&mut self, strings: &mut Strings, name: &str, role: u8) -> u32 {
        let name = strings.number(name);
        self.intern(records::Region {
            id: 0,
            name,
            description: StringRef(0),
            legacy_type: 0,
            source_file: StringRef(0),
            begin_line: 0,
            end_line: 0,
            canonical_name: name,
            role,
            paradigm: paradigm::MEASUREMENT_SYSTEM,
            flags: 0,
        })
    }

    pub(super) fn enums(&self) -> Enums {
        self.enums
    }

    pub(super) fn definitions(&self) -> &[records::Region] {
        &self.definitions
    }
}
