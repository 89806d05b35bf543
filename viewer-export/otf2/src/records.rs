//! The records of OTF2, one row per kind, from which writing and reading are derived. Numbers and fields are those of
//! OTF2 3.0, in the order of the file; docs/otf2.md lists the records that we write.

use crate::buffer::Out;
use crate::encoding::*;

/// Turns rows `Name = id { field: Type, ... }` into a struct per row, whose fields are written and read in this order,
/// and an enum of them all.
macro_rules! records {
    ($(#[$enum_doc:meta])* $Any:ident; $($(#[$doc:meta])* $Name:ident = $id:literal { $($field:ident: $Type:ty),* })*) => {
        $(
            #[doc = concat!("OTF2's record `", stringify!($Name), "`.")]
            ///
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Name { $(#[doc = concat!("OTF2's `", stringify!($field), "`.")] pub $field: $Type),* }

            impl Record for $Name {
                const ID: u8 = $id;
                const MAX_BYTES: usize = 2_usize$(.saturating_add(<$Type>::MAX_BYTES))*;

                #[inline]
                #[allow(unused_variables, reason = "some records have no fields")]
                fn put(&self, out: &mut impl Out) {
                    $(self.$field.put(out);)*
                }
            }
        )*

        $(#[$enum_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Any {
            $(#[doc = concat!("[`", stringify!($Name), "`].")] $Name($Name),)*
            /// A record of a later version, by number.
            Unknown(u8),
        }

        #[allow(dead_code, reason = "not all is asked of all tables")]
        impl $Any {
            /// The record with number `id` and these fields; `None` if the fields end too early.
            #[allow(unused_variables, reason = "some records have no fields")]
            pub fn take(id: u8, from: &mut Bytes<'_>) -> Option<$Any> {
                match id {
                    $($id => Some($Any::$Name($Name { $($field: Field::take(from)?),* })),)*
                    _ => Some($Any::Unknown(id)),
                }
            }

            /// The record's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $($Any::$Name(_) => stringify!($Name),)*
                    $Any::Unknown(_) => "unknown record",
                }
            }

            /// Calls `visit` with the definitions to which the record refers.
            #[allow(unused_variables, reason = "some records refer to nothing")]
            pub fn references(&self, visit: &mut dyn FnMut(Kind, u64)) {
                match self {
                    $($Any::$Name(record) => { $(record.$field.references(visit);)* })*
                    $Any::Unknown(_) => {}
                }
            }
        }
    };
}

/// A kind of record that can be written.
pub trait Record {
    /// The number of its kind.
    const ID: u8;
    /// The maximum number of bytes, for records whose length field has one byte.
    const MAX_BYTES: usize;
    /// Appends its fields.
    fn put(&self, out: &mut impl Out);
}

/// Appends a record: its number, its length, its fields.
pub fn put_record<R: Record>(out: &mut Vec<u8>, record: &R) {
    out.extend_from_slice(&[R::ID, 0]);
    let start = out.len();
    record.put(out);
    let len = out.len() - start;
    match u8::try_from(len) {
        Ok(short) if short < 0xff => out[start - 1] = short,
        _ => {
            let bytes = (len as u64).to_le_bytes();
            out[start - 1] = 0xff;
            out.splice(start..start, bytes);
        }
    }
}

/// Ends a chunk other than the last.
pub const END_OF_CHUNK: u8 = 0;
/// Ends the last chunk, after [`END_OF_FILE`].
pub const END_OF_BUFFER: u8 = 1;
/// The last record of a file.
pub const END_OF_FILE: u8 = 2;
/// The first record of a chunk.
pub const CHUNK_HEADER: u8 = 3;
/// In event files: the time of the following events.
pub const TIMESTAMP: u8 = 5;
/// In event files: attributes of the following event.
pub const ATTRIBUTE_LIST: u8 = 6;
/// Numbers are little-endian.
pub const LITTLE_ENDIAN: u8 = 0x42;
/// Numbers are big-endian.
pub const BIG_ENDIAN: u8 = 0x23;

/// Whether events of this kind have no length field: their only field, a compressed number, contains its own length.
pub fn is_singleton(id: u8) -> bool {
    matches!(id, Enter::ID | Leave::ID | 16 | 17 | 20 | 21 | 24 | 28..=30)
}

records! {
    /// A global definition.
    Definition;
    ClockProperties = 5 { timer_resolution: u64, global_offset: u64, trace_length: u64, realtime_timestamp: Added<u64> }
    Paradigm = 6 { paradigm: u8, name: StringRef, class: u8 }
    ParadigmProperty = 7 { paradigm: u8, property: u8, value: TypedValue }
    String_ = 10 { id: u32, text: String }
    Attribute = 11 { id: u32, name: StringRef, value_type: u8, description: StringRef }
    SystemTreeNode = 12 { id: u32, name: StringRef, class: StringRef, parent: SystemTreeNodeRef }
    LocationGroup = 13 {
        id: u32, name: StringRef, group_type: u8, system_tree_parent: SystemTreeNodeRef, creating_location_group: Added<LocationGroupRef>
    }
    Location = 14 { id: u64, name: StringRef, location_type: u8, number_of_events: u64, location_group: LocationGroupRef }
    Region = 15 {
        id: u32, name: StringRef, description: StringRef, legacy_type: u8, source_file: StringRef, begin_line: u32,
        end_line: u32, canonical_name: StringRef, role: u8, paradigm: u8, flags: u32
    }
    Callsite = 16 { id: u32, source_file: StringRef, line: u32, entered: RegionRef, left: RegionRef }
    Callpath = 17 { id: u32, parent: CallpathRef, region: RegionRef }
    /// The type determines what the members are: locations, or indexes in the group of locations.
    Group = 18 {
        id: u32, name: StringRef, legacy_type: u8, members: Vec<u64>, group_type: u8, paradigm: u8, flags: u32
    }
    MetricMember = 19 {
        id: u32, name: StringRef, description: StringRef, metric_type: u8, mode: u8, value_type: u8, base: u8,
        exponent: i64, unit: StringRef
    }
    MetricClass = 20 { id: u32, members: ShortList<MetricMemberRef>, occurrence: u8, recorder_kind: u8 }
    MetricInstance = 21 { id: u32, class: MetricRef, recorder: LocationRef, scope_kind: u8, scope: u64 }
    Comm = 22 { id: u32, name: StringRef, group: GroupRef, parent: CommRef, flags: Added<u32> }
    Parameter = 23 { id: u32, name: StringRef, parameter_type: u8 }
    RmaWin = 24 { id: u32, name: StringRef, comm: CommRef, flags: Added<u32> }
    MetricClassRecorder = 25 { metric: MetricRef, recorder: LocationRef }
    SystemTreeNodeProperty = 26 {
        node: SystemTreeNodeRef, name: StringRef, legacy_string: StringRef, value: TypedValue
    }
    SystemTreeNodeDomain = 27 { node: SystemTreeNodeRef, domain: u8 }
    LocationGroupProperty = 28 {
        group: LocationGroupRef, name: StringRef, legacy_string: StringRef, value: TypedValue
    }
    LocationProperty = 29 { location: LocationRef, name: StringRef, legacy_string: StringRef, value: TypedValue }
    SourceCodeLocation = 33 { id: u32, file: StringRef, line: u32 }
    CallingContext = 34 {
        id: u32, region: RegionRef, source_code_location: SourceCodeLocationRef, parent: CallingContextRef
    }
    CallingContextProperty = 35 { context: CallingContextRef, name: StringRef, value: TypedValue }
    InterruptGenerator = 36 { id: u32, name: StringRef, mode: u8, base: u8, exponent: i64, period: u64 }
    InterComm = 43 { id: u32, name: StringRef, group_a: GroupRef, group_b: GroupRef, common: CommRef, flags: u32 }
}

records! {
    /// An event.
    Event;
    BufferFlush = 10 { stop_time: Full }
    MeasurementOnOff = 11 { mode: u8 }
    Enter = 12 { region: RegionRef }
    Leave = 13 { region: RegionRef }
    MpiSend = 14 { receiver: u32, comm: CommRef, tag: u32, length: u64 }
    MpiIsend = 15 { receiver: u32, comm: CommRef, tag: u32, length: u64, request: u64 }
    MpiIsendComplete = 16 { request: u64 }
    MpiIrecvRequest = 17 { request: u64 }
    MpiRecv = 18 { sender: u32, comm: CommRef, tag: u32, length: u64 }
    MpiIrecv = 19 { sender: u32, comm: CommRef, tag: u32, length: u64, request: u64 }
    MpiRequestTest = 20 { request: u64 }
    MpiRequestCancelled = 21 { request: u64 }
    MpiCollectiveBegin = 22 {}
    MpiCollectiveEnd = 23 { operation: u8, comm: CommRef, root: u32, sent: u64, received: u64 }
    Metric = 31 { metric: MetricRef, values: ShortList<MetricValue> }
    ParameterString = 32 { parameter: ParameterRef, value: StringRef }
    ParameterInt = 33 { parameter: ParameterRef, value: i64 }
    ParameterUnsignedInt = 34 { parameter: ParameterRef, value: u64 }
    RmaWinCreate = 35 { window: RmaWinRef }
    RmaWinDestroy = 36 { window: RmaWinRef }
    RmaCollectiveBegin = 37 {}
    RmaCollectiveEnd = 38 { operation: u8, level: u32, window: RmaWinRef, root: u32, sent: u64, received: u64 }
    RmaGroupSync = 39 { level: u32, window: RmaWinRef, group: GroupRef }
    RmaRequestLock = 40 { window: RmaWinRef, remote: u32, lock: u64, lock_type: u8 }
    RmaAcquireLock = 41 { window: RmaWinRef, remote: u32, lock: u64, lock_type: u8 }
    RmaTryLock = 42 { window: RmaWinRef, remote: u32, lock: u64, lock_type: u8 }
    RmaReleaseLock = 43 { window: RmaWinRef, remote: u32, lock: u64 }
    RmaSync = 44 { window: RmaWinRef, remote: u32, sync_type: u8 }
    RmaWaitChange = 45 { window: RmaWinRef }
    RmaPut = 46 { window: RmaWinRef, remote: u32, bytes: u64, matching_id: u64 }
    RmaGet = 47 { window: RmaWinRef, remote: u32, bytes: u64, matching_id: u64 }
    RmaAtomic = 48 {
        window: RmaWinRef, remote: u32, atomic_type: u8, sent: u64, received: u64, matching_id: u64
    }
    RmaOpCompleteBlocking = 49 { window: RmaWinRef, matching_id: u64 }
    RmaOpCompleteNonBlocking = 50 { window: RmaWinRef, matching_id: u64 }
    RmaOpTest = 51 { window: RmaWinRef, matching_id: u64 }
    RmaOpCompleteRemote = 52 { window: RmaWinRef, matching_id: u64 }
    ThreadFork = 53 { paradigm: u8, requested_threads: u32 }
    ThreadJoin = 54 { paradigm: u8 }
    ThreadTeamBegin = 55 { team: CommRef }
    ThreadTeamEnd = 56 { team: CommRef }
    ThreadAcquireLock = 57 { paradigm: u8, lock: u32, acquisition_order: u32 }
    ThreadReleaseLock = 58 { paradigm: u8, lock: u32, acquisition_order: u32 }
    ThreadTaskCreate = 59 { team: CommRef, creating_thread: u32, generation: u32 }
    ThreadTaskSwitch = 60 { team: CommRef, creating_thread: u32, generation: u32 }
    ThreadTaskComplete = 61 { team: CommRef, creating_thread: u32, generation: u32 }
    ThreadCreate = 62 { contingent: CommRef, sequence: u64 }
    ThreadBegin = 63 { contingent: CommRef, sequence: u64 }
    ThreadWait = 64 { contingent: CommRef, sequence: u64 }
    ThreadEnd = 65 { contingent: CommRef, sequence: u64 }
    CallingContextEnter = 66 { context: CallingContextRef, unwind_distance: u32 }
    CallingContextLeave = 67 { context: CallingContextRef }
    CallingContextSample = 68 {
        context: CallingContextRef, unwind_distance: u32, interrupt_generator: InterruptGeneratorRef
    }
    ProgramBegin = 83 { name: StringRef, arguments: Vec<StringRef> }
    ProgramEnd = 84 { exit_status: i64 }
    NonBlockingCollectiveRequest = 85 { request: u64 }
    NonBlockingCollectiveComplete = 86 {
        operation: u8, comm: CommRef, root: u32, sent: u64, received: u64, request: u64
    }
    CommCreate = 87 { comm: CommRef }
    CommDestroy = 88 { comm: CommRef }
}

records! {
    /// A definition in a location's own file, apart from those that may also be global.
    LocalDefinition;
    /// Maps numbers in this location's events to numbers of global definitions; by index if the mode is dense.
    MappingTable = 5 { mapping_type: u8, mappings: Mappings }
    /// The offset to add to times of this location's events around this time.
    ClockOffset = 6 { time: Full, offset: i64, deviation: Full }
}

records! {
    /// A record in the file of markers.
    MarkerRecord;
    DefMarker = 5 { id: u32, group: String, category: String, severity: u8 }
    Marker = 6 { time: u64, duration: u64, marker: u32, scope: u8, scope_reference: u64, text: String }
}

/// `OTF2_MeasurementMode`.
pub const MEASUREMENT_ON: u8 = 1;
/// The opposite of `MEASUREMENT_ON`.
pub const MEASUREMENT_OFF: u8 = 2;

/// `OTF2_Paradigm`.
pub mod paradigm {
    /// `OTF2_PARADIGM_USER`.
    pub const USER: u8 = 1;
    /// `OTF2_PARADIGM_OPENMP`.
    pub const OPENMP: u8 = 3;
    /// `OTF2_PARADIGM_MPI`.
    pub const MPI: u8 = 4;
    /// `OTF2_PARADIGM_MEASUREMENT_SYSTEM`.
    pub const MEASUREMENT_SYSTEM: u8 = 6;
    /// Added in OTF2 3.1.
    pub const OPENMP_TARGET: u8 = 25;
}

/// `OTF2_CollectiveOp`.
pub mod collective {
    /// `OTF2_COLLECTIVE_OP_BARRIER`.
    pub const BARRIER: u8 = 0;
    /// `OTF2_COLLECTIVE_OP_BCAST`.
    pub const BCAST: u8 = 1;
    /// `OTF2_COLLECTIVE_OP_GATHER`.
    pub const GATHER: u8 = 2;
    /// `OTF2_COLLECTIVE_OP_GATHERV`.
    pub const GATHERV: u8 = 3;
    /// `OTF2_COLLECTIVE_OP_SCATTER`.
    pub const SCATTER: u8 = 4;
    /// `OTF2_COLLECTIVE_OP_SCATTERV`.
    pub const SCATTERV: u8 = 5;
    /// `OTF2_COLLECTIVE_OP_ALLGATHER`.
    pub const ALLGATHER: u8 = 6;
    /// `OTF2_COLLECTIVE_OP_ALLGATHERV`.
    pub const ALLGATHERV: u8 = 7;
    /// `OTF2_COLLECTIVE_OP_ALLTOALL`.
    pub const ALLTOALL: u8 = 8;
    /// `OTF2_COLLECTIVE_OP_ALLTOALLV`.
    pub const ALLTOALLV: u8 = 9;
    /// `OTF2_COLLECTIVE_OP_ALLTOALLW`.
    pub const ALLTOALLW: u8 = 10;
    /// `OTF2_COLLECTIVE_OP_ALLREDUCE`.
    pub const ALLREDUCE: u8 = 11;
    /// `OTF2_COLLECTIVE_OP_REDUCE`.
    pub const REDUCE: u8 = 12;
    /// `OTF2_COLLECTIVE_OP_REDUCE_SCATTER`.
    pub const REDUCE_SCATTER: u8 = 13;
    /// `OTF2_COLLECTIVE_OP_SCAN`.
    pub const SCAN: u8 = 14;
    /// `OTF2_COLLECTIVE_OP_EXSCAN`.
    pub const EXSCAN: u8 = 15;
    /// `OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK`.
    pub const REDUCE_SCATTER_BLOCK: u8 = 16;
}

/// `OTF2_RegionRole`.
pub mod role {
    /// `OTF2_REGION_ROLE_FUNCTION`.
    pub const FUNCTION: u8 = 1;
    /// `OTF2_REGION_ROLE_WRAPPER`.
    pub const WRAPPER: u8 = 2;
    /// `OTF2_REGION_ROLE_LOOP`.
    pub const LOOP: u8 = 3;
    /// `OTF2_REGION_ROLE_CODE`.
    pub const CODE: u8 = 4;
    /// `OTF2_REGION_ROLE_PARALLEL`.
    pub const PARALLEL: u8 = 5;
    /// `OTF2_REGION_ROLE_SECTIONS`.
    pub const SECTIONS: u8 = 6;
    /// `OTF2_REGION_ROLE_SECTION`.
    pub const SECTION: u8 = 7;
    /// `OTF2_REGION_ROLE_WORKSHARE`.
    pub const WORKSHARE: u8 = 8;
    /// `OTF2_REGION_ROLE_SINGLE`.
    pub const SINGLE: u8 = 9;
    /// `OTF2_REGION_ROLE_MASTER`.
    pub const MASTER: u8 = 11;
    /// `OTF2_REGION_ROLE_CRITICAL`.
    pub const CRITICAL: u8 = 12;
    /// `OTF2_REGION_ROLE_CRITICAL_SBLOCK`.
    pub const CRITICAL_SBLOCK: u8 = 13;
    /// `OTF2_REGION_ROLE_ATOMIC`.
    pub const ATOMIC: u8 = 14;
    /// `OTF2_REGION_ROLE_BARRIER`.
    pub const BARRIER: u8 = 15;
    /// `OTF2_REGION_ROLE_IMPLICIT_BARRIER`.
    pub const IMPLICIT_BARRIER: u8 = 16;
    /// `OTF2_REGION_ROLE_FLUSH`.
    pub const FLUSH: u8 = 17;
    /// `OTF2_REGION_ROLE_ORDERED`.
    pub const ORDERED: u8 = 18;
    /// `OTF2_REGION_ROLE_ORDERED_SBLOCK`.
    pub const ORDERED_SBLOCK: u8 = 19;
    /// `OTF2_REGION_ROLE_TASK`.
    pub const TASK: u8 = 20;
    /// `OTF2_REGION_ROLE_TASK_CREATE`.
    pub const TASK_CREATE: u8 = 21;
    /// `OTF2_REGION_ROLE_TASK_WAIT`.
    pub const TASK_WAIT: u8 = 22;
    /// `OTF2_REGION_ROLE_COLL_ALL2ONE`.
    pub const COLL_ALL2ONE: u8 = 24;
    /// `OTF2_REGION_ROLE_COLL_OTHER`.
    pub const COLL_OTHER: u8 = 26;
    /// `OTF2_REGION_ROLE_FILE_IO`.
    pub const FILE_IO: u8 = 27;
    /// `OTF2_REGION_ROLE_POINT2POINT`.
    pub const POINT2POINT: u8 = 28;
    /// `OTF2_REGION_ROLE_RMA`.
    pub const RMA: u8 = 29;
    /// `OTF2_REGION_ROLE_DATA_TRANSFER`.
    pub const DATA_TRANSFER: u8 = 30;
    /// `OTF2_REGION_ROLE_ARTIFICIAL`.
    pub const ARTIFICIAL: u8 = 31;
    /// `OTF2_REGION_ROLE_TASK_UNTIED`.
    pub const TASK_UNTIED: u8 = 34;
    /// `OTF2_REGION_ROLE_ALLOCATE`.
    pub const ALLOCATE: u8 = 35;
    /// `OTF2_REGION_ROLE_DEALLOCATE`.
    pub const DEALLOCATE: u8 = 36;
    /// Added in OTF2 3.1.
    pub const CANCEL: u8 = 39;
    /// Added in OTF2 3.1.
    pub const KERNEL: u8 = 40;
}
