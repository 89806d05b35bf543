//! Misbehaviours of devices, by name.

use ompt_sys::ompt_record_ompt_t;
use serde::{Deserialize, Serialize};

/// A misbehaviour of a device, or a way that the specification allows and few expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// `ompt_set_trace_ompt` answers `ompt_set_never`.
    RefusesOmpt,
    /// `ompt_set_trace_ompt` knows the kinds by their first numbers only.
    RefusesEmi,
    /// `ompt_set_trace_native` answers `ompt_set_never`.
    RefusesNative,
    /// `ompt_start_trace` fails.
    RefusesStart,
    /// `ompt_translate_time` answers 0.
    TranslatesToZero,
    /// Requests and completions say device 0.
    SaysDeviceZero,
    /// A completion per record, its begin in the middle of the buffer, and a last one without records gives it back.
    CompletesInParts,
    /// The last completion comes after `ompt_stop_trace` has returned.
    CompletesAfterStop,
    /// Each buffer is given back twice.
    CompletesTwice,
    /// Completions of a buffer that is not the tool's.
    CompletesForeignBuffers,
    /// Full buffers come back in the reverse order, when tracing is flushed.
    ReversesBuffers,
    /// No buffer comes back before tracing stops.
    KeepsBuffers,
    /// Each second record is a null pointer.
    NullRecords,
    /// Each second record is of an invalid type.
    InvalidRecords,
    /// Each second record is of a kind that no specification has.
    UnknownKinds,
    /// Each second record lies where no memory is.
    BadPointers,
    /// The cursor does not advance, and says that there is a next record.
    EndlessCursor,
    /// Completions report more bytes than the buffer has.
    TooManyBytes,
    /// The end of each operation is before its begin.
    SwapsTimes,
    /// Each second record has no times.
    ZeroTimes,
    /// All records name the same operation.
    ReusesIds,
    /// `host_op_id` and `target_id` are in each other's place.
    SwapsIds,
    /// From `device_finalize` on, `ompt_flush_trace`, `ompt_stop_trace` and `ompt_advance_buffer_cursor` abort. AMD's.
    EntryPointsDieAtFinalize,
    /// Each thread has a buffer, which is the tool's again when it is full, and never else. AMD's.
    BufferPerThread,
    /// Of a buffer, each second record is ready first: a completion for each, and one for each of the others later. AMD's.
    GapsInBuffers,
    /// `ompt_stop_trace` drops what was not delivered. AMD's.
    StopDropsUndelivered,
    /// `ompt_flush_trace` returns before the records are delivered, on a thread of the runtime; a further one, of any device, returns
    /// when those are. AMD's.
    FlushReturnsEarly,
    /// A buffer that was flushed is not flushed again: further records in it are delivered when it is full, and never else. The thread
    /// that starts tracing again has a new buffer. AMD's.
    FlushesBufferOnce,
    /// `ompt_flush_trace` answers 0, and does nothing, in a completion. AMD's.
    NoFlushInCompletion,
    /// Target regions have records, one for the begin and one for the end, without a time. AMD's.
    TargetRecords,
    /// A target region aborts where records of target regions are wanted. AMD's, on a thread without a task.
    DiesOfTargetRecords,
    /// A record takes [`BIG_RECORD_BYTES`], and the program aborts where a buffer has no room for one. AMD's.
    BigRecords,
    /// A child that is forked while the device is traced never ends. AMD's.
    ChildHangs,
    /// After `device_unload` nothing is delivered, and `ompt_flush_trace` answers 0. AMD's, where a library was closed.
    EndsAtUnload,
    /// There is no `device_initialize` and no `device_finalize`, unless it is device 0. AMD's at its commit 4bc87c52.
    OnlyFirstAnnounced,
    /// Associations and their ends have no records. AMD's.
    NoAssociationRecords,
    /// Transfers have no records. AMD's at its commit 021b7b48.
    NoTransferRecords,
    /// `ompt_set_trace_ompt` answers `ompt_set_sometimes` for all kinds, `ompt_set_always` for the kinds that devices do, and
    /// `ompt_set_never` for the others. AMD's.
    GrantsKinds,
    /// `ompt_translate_time` is wrong by a part of the time since the first question. AMD's.
    TranslatesBadly,
    /// A second `ompt_start_trace` prints a message, and answers 1. AMD's.
    WarnsOfSecondStart,
    /// Records have a hash of the thread for the thread's id. AMD's.
    HashesThreads,
    /// Records of allocations have the number that the device has in its plug-in, which is smaller by one. AMD's.
    AllocatesByPluginNumber,
    /// All of [`AMDS`]; the entry points of [`MISSING_AMDS`] are missing.
    #[serde(rename = "amd-2026")]
    Amd2026,
}

/// The ways of AMD's runtime of 2026. Other versions, and other tools beside it, do [`Misbehaviour::OnlyFirstAnnounced`],
/// [`Misbehaviour::NoTransferRecords`] and [`Misbehaviour::SwapsTimes`] too.
pub const AMDS: &[Misbehaviour] = &[
    Misbehaviour::EntryPointsDieAtFinalize,
    Misbehaviour::BufferPerThread,
    Misbehaviour::GapsInBuffers,
    Misbehaviour::StopDropsUndelivered,
    Misbehaviour::FlushReturnsEarly,
    Misbehaviour::FlushesBufferOnce,
    Misbehaviour::NoFlushInCompletion,
    Misbehaviour::TargetRecords,
    Misbehaviour::DiesOfTargetRecords,
    Misbehaviour::BigRecords,
    Misbehaviour::ChildHangs,
    Misbehaviour::EndsAtUnload,
    Misbehaviour::NoAssociationRecords,
    Misbehaviour::GrantsKinds,
    Misbehaviour::TranslatesBadly,
    Misbehaviour::WarnsOfSecondStart,
    Misbehaviour::HashesThreads,
    Misbehaviour::AllocatesByPluginNumber,
];
/// The entry points that AMD's runtime lacks.
pub const MISSING_AMDS: &[&str] = &[
    "get_device_num_procs",
    "get_buffer_limits",
    "pause_trace",
    "set_trace_native",
    "get_record_native",
    "get_record_abstract",
];
/// Bytes of a record of [`Misbehaviour::BigRecords`].
pub const BIG_RECORD_BYTES: usize = size_of::<ompt_record_ompt_t>() + 8;
