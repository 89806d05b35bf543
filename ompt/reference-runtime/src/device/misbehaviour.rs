//! Misbehaviours of devices, by name.

use ompt_sys::ompt_record_ompt_t;
use serde::{Deserialize, Serialize};

/// A misbehaviour of a device, or behaviour that the specification permits but few tools expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// `ompt_set_trace_ompt` returns `ompt_set_never`.
    RefusesOmpt,
    /// `ompt_set_trace_ompt` only knows the kinds by their old numbers.
    RefusesEmi,
    /// `ompt_set_trace_native` returns `ompt_set_never`.
    RefusesNative,
    /// `ompt_start_trace` fails.
    RefusesStart,
    /// `ompt_translate_time` returns 0.
    TranslatesToZero,
    /// Requests and completions report device 0.
    SaysDeviceZero,
    /// There is a completion for each record, starting in the middle of the buffer, and a last one without records that
    /// returns the buffer.
    CompletesInParts,
    /// The last completion is made after `ompt_stop_trace` has returned.
    CompletesAfterStop,
    /// Each buffer is returned twice.
    CompletesTwice,
    /// Completions of a buffer that is not the tool's.
    CompletesForeignBuffers,
    /// Full buffers are returned in reverse order, when tracing is flushed.
    ReversesBuffers,
    /// No buffer is returned before tracing stops.
    KeepsBuffers,
    /// Every second record is a null pointer.
    NullRecords,
    /// Every second record has an invalid type.
    InvalidRecords,
    /// Every second record has an unknown kind.
    UnknownKinds,
    /// Every second record has an invalid address.
    BadPointers,
    /// The cursor does not advance, but the device reports that there is a next record.
    EndlessCursor,
    /// Completions report more bytes than the buffer has.
    TooManyBytes,
    /// The end time of each operation is before its start.
    SwapsTimes,
    /// Every second record has no times.
    ZeroTimes,
    /// All records have the same operation id.
    ReusesIds,
    /// `host_op_id` and `target_id` are swapped.
    SwapsIds,
    /// After `device_finalize`, `ompt_flush_trace`, `ompt_stop_trace` and `ompt_advance_buffer_cursor` abort. AMD.
    EntryPointsDieAtFinalize,
    /// Each thread has a buffer, which is returned only when it is full. AMD.
    BufferPerThread,
    /// Every second record of a buffer is ready first: there is a completion for each of these, and later one for each
    /// of the others. AMD.
    GapsInBuffers,
    /// `ompt_stop_trace` drops undelivered records. AMD.
    StopDropsUndelivered,
    /// `ompt_flush_trace` returns before the records are delivered by a thread of the runtime; a second flush, of any
    /// device, waits for these. AMD.
    FlushReturnsEarly,
    /// A flushed buffer is not flushed again: further records in it are delivered only when it is full. The thread that
    /// starts tracing again gets a new buffer. AMD.
    FlushesBufferOnce,
    /// `ompt_flush_trace` returns 0 and does nothing within a completion. AMD.
    NoFlushInCompletion,
    /// Target regions have a record for the begin and one for the end, without times. AMD.
    TargetRecords,
    /// A target region aborts if records of target regions are wanted. AMD, on a thread without a task.
    DiesOfTargetRecords,
    /// A record takes [`BIG_RECORD_BYTES`], and the program aborts if a buffer has no room for one. AMD.
    BigRecords,
    /// A child that is forked while the device is traced never ends. AMD.
    ChildHangs,
    /// After `device_unload`, nothing is delivered and `ompt_flush_trace` returns 0. AMD, after a library was closed.
    EndsAtUnload,
    /// Only device 0 has `device_initialize` and `device_finalize`. AMD at commit 4bc87c52.
    OnlyFirstAnnounced,
    /// Associations and disassociations have no records. AMD.
    NoAssociationRecords,
    /// Transfers have no records. AMD at commit 021b7b48.
    NoTransferRecords,
    /// `ompt_set_trace_ompt` returns `ompt_set_sometimes` for all kinds together, `ompt_set_always` for the kinds that
    /// devices support, and `ompt_set_never` for the others. AMD.
    GrantsKinds,
    /// `ompt_translate_time` has an error proportional to the time since its first call. AMD.
    TranslatesBadly,
    /// A second `ompt_start_trace` prints a message, and returns 1. AMD.
    WarnsOfSecondStart,
    /// Records contain a hash of the thread instead of the thread's id. AMD.
    HashesThreads,
    /// Records of allocations contain the device's number in its plug-in, which is lower by one. AMD.
    AllocatesByPluginNumber,
    /// All of [`AMDS`]; the entry points in [`MISSING_AMDS`] are missing.
    #[serde(rename = "amd-2026")]
    Amd2026,
}

/// The behaviour of AMD's runtime of 2026. Other versions, and combinations with other tools, also have
/// [`Misbehaviour::OnlyFirstAnnounced`], [`Misbehaviour::NoTransferRecords`] and [`Misbehaviour::SwapsTimes`].
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
/// Bytes of a record with [`Misbehaviour::BigRecords`].
pub const BIG_RECORD_BYTES: usize = size_of::<ompt_record_ompt_t>() + 8;
