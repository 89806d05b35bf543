//! The numbers of the fields that are written, from `protos/perfetto/trace` in the Perfetto repository. Each message
//! has a module, in the order of use.

use crate::writer::protobuf::messages;

messages! {
    /// `Trace`
    trace { PACKET = 1, }
    /// `TracePacket`
    packet {
        CLOCK_SNAPSHOT = 6,
        TIMESTAMP = 8,
        TRUSTED_PACKET_SEQUENCE_ID = 10,
        TRACK_EVENT = 11,
        INTERNED_DATA = 12,
        SEQUENCE_FLAGS = 13,
        THREAD_DESCRIPTOR = 44,
        STREAMING_PROFILE_PACKET = 54,
        TRACE_PACKET_DEFAULTS = 59,
        TRACK_DESCRIPTOR = 60,
        FIRST_PACKET_ON_SEQUENCE = 87,
        TRACE_UUID = 89,
    }
    /// `TracePacketDefaults`
    packet_defaults { TRACK_EVENT_DEFAULTS = 11, }
    /// `TrackEventDefaults`
    event_defaults { TRACK_UUID = 11, }
    /// `ClockSnapshot`
    clock_snapshot { CLOCKS = 1, PRIMARY_TRACE_CLOCK = 2, }
    /// `ClockSnapshot.Clock`
    clock { CLOCK_ID = 1, TIMESTAMP = 2, }
    /// `TraceUuid`
    trace_uuid { MSB = 1, LSB = 2, }
    /// `TrackDescriptor`
    track {
        UUID = 1,
        NAME = 2,
        PROCESS = 3,
        THREAD = 4,
        PARENT_UUID = 5,
        COUNTER = 8,
        CHILD_ORDERING = 11,
        SIBLING_ORDER_RANK = 12,
        DESCRIPTION = 14,
        SIBLING_MERGE_BEHAVIOR = 15,
        PROCESS_ORDERING = 19,
        THREAD_ORDERING = 20,
    }
    /// `ProcessDescriptor`
    process { PID = 1, CMDLINE = 2, LEGACY_SORT_INDEX = 3, PROCESS_NAME = 6, }
    /// `ThreadDescriptor`
    thread {
        PID = 1,
        TID = 2,
        LEGACY_SORT_INDEX = 3,
        THREAD_NAME = 5,
        REFERENCE_TIMESTAMP_US = 6,
    }
    /// `StreamingProfilePacket`
    streaming_profile { CALLSTACK_IID = 1, TIMESTAMP_DELTA_US = 2, }
    /// `Callstack`
    callstack { IID = 1, FRAME_IDS = 2, }
    /// `Frame`
    frame { IID = 1, FUNCTION_NAME_ID = 2, MAPPING_ID = 3, REL_PC = 4, }
    /// `Mapping`
    mapping { IID = 1, PATH_STRING_IDS = 7, }
    /// `CounterDescriptor`
    counter { UNIT = 3, UNIT_NAME = 6, }
    /// `TrackEvent`
    event {
        CATEGORY_IIDS = 3,
        DEBUG_ANNOTATIONS = 4,
        LEGACY_EVENT = 6,
        TYPE = 9,
        NAME_IID = 10,
        TRACK_UUID = 11,
        NAME = 23,
        COUNTER_VALUE = 30,
        SOURCE_LOCATION_IID = 34,
        DOUBLE_COUNTER_VALUE = 44,
        FLOW_IDS = 47,
        TERMINATING_FLOW_IDS = 48,
        CORRELATION_ID_STR_IID = 54,
    }
    /// `TrackEvent.LegacyEvent`
    legacy { PHASE = 2, UNSCOPED_ID = 6, BIND_TO_ENCLOSING = 12, }
    /// `DebugAnnotation`
    annotation {
        NAME_IID = 1,
        UINT_VALUE = 3,
        INT_VALUE = 4,
        STRING_VALUE = 6,
        POINTER_VALUE = 7,
        STRING_VALUE_IID = 17,
    }
    /// `InternedData`
    interned {
        EVENT_CATEGORIES = 1,
        EVENT_NAMES = 2,
        DEBUG_ANNOTATION_NAMES = 3,
        SOURCE_LOCATIONS = 4,
        FUNCTION_NAMES = 5,
        FRAMES = 6,
        CALLSTACKS = 7,
        MAPPING_PATHS = 17,
        MAPPINGS = 19,
        DEBUG_ANNOTATION_STRING_VALUES = 29,
        CORRELATION_ID_STR = 43,
    }
    /// `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString`, which have these two fields in common
    interned_text { IID = 1, TEXT = 2, }
    /// `SourceLocation`
    source_location { IID = 1, FILE_NAME = 2, FUNCTION_NAME = 3, LINE_NUMBER = 4, }
}

/// `TracePacket.SequenceFlags`
pub(super) const INCREMENTAL_STATE_CLEARED: u64 = 1;
/// `TracePacket.SequenceFlags`
pub(super) const NEEDS_INCREMENTAL_STATE: u64 = 2;

/// `CounterDescriptor.Unit`
pub(super) const UNIT_COUNT: u64 = 2;
/// `CounterDescriptor.Unit`
pub(super) const UNIT_SIZE_BYTES: u64 = 3;

/// `TrackDescriptor.SiblingMergeBehavior`
pub(super) const SIBLING_MERGE_BEHAVIOR_NONE: u64 = 2;
/// `TrackDescriptor.ChildTracksOrdering`: by the first event
pub(super) const CHRONOLOGICAL: u64 = 2;
/// `TrackDescriptor.ProcessOrdering` and `ThreadOrdering`: by `sibling_order_rank`
pub(super) const EXPLICIT_ORDERING: u64 = 1;

/// `BuiltinClock`
pub(super) const BUILTIN_CLOCK_REALTIME: u64 = 1;
/// `BuiltinClock`
pub(super) const BUILTIN_CLOCK_BOOTTIME: u64 = 6;

/// `TrackEvent.Type`
#[derive(Clone, Copy)]
pub(super) enum EventType {
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

impl EventType {
    pub(super) const ALL: [EventType; 4] =
        [EventType::SliceBegin, EventType::SliceEnd, EventType::Instant, EventType::Counter];

    /// Its index in [`EventType::ALL`].
    pub(super) const fn index(self) -> usize {
        self as usize - 1
    }
}
