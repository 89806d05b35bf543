//! The record of a device's work, in one form for all tracers: raw numbers, nothing interpreted.

use ompt_sys::{
    self as ompt, ompt_callbacks_t, ompt_device_time_t, ompt_id_t, ompt_record_native_t,
    ompt_target_data_op_t,
};

/// A record of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The operation of the host that it belongs to, `host_op_id`; 0 where it names none.
    pub correlation_id: ompt_id_t,
    /// The target region; 0 where it names none.
    pub target_id: ompt_id_t,
    /// Which of the device's threads, streams or parts did it.
    pub stream: u64,
    /// When it began, on the device's clock.
    pub begin: ompt_device_time_t,
    /// When it ended; 0 where the record does not say.
    pub end: ompt_device_time_t,
    /// The work that it is a record of.
    pub work: Work,
}

/// The work that a record is of.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Code that ran on the device.
    Kernel {
        /// Teams that the host asked for.
        requested_num_teams: u32,
        /// Teams that ran; 0 where that is not known.
        granted_num_teams: u32,
        /// The function's name, as the linker has it, where the record has one.
        name: Option<Vec<u8>>,
    },
    /// Bytes went from one place to another.
    Copy(DataOp),
    /// Memory of the device was allocated, deleted, associated or set.
    Memory(DataOp),
    /// Anything else that the standard has a record for, or that has a number of the runtime's own.
    Marker {
        /// The record's type.
        r#type: ompt_callbacks_t,
        /// The words that belong to the type, as they lie in memory.
        words: Vec<u64>,
    },
    /// Something in the device's own format, as far as a tool can understand it that does not know the device.
    Native {
        /// Information or event.
        rclass: ompt_record_native_t,
        /// The name of its type.
        name: Option<Vec<u8>>,
    },
}

/// A data operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataOp {
    /// Its kind.
    pub optype: ompt_target_data_op_t,
    /// Where the bytes come from.
    pub src_addr: u64,
    /// On which device that is.
    pub src_device_num: i32,
    /// Where they go.
    pub dest_addr: u64,
    /// On which device that is.
    pub dest_device_num: i32,
    /// How many.
    pub bytes: u64,
    /// The code that asked for it.
    pub codeptr_ra: u64,
}

impl DataOp {
    /// An operation on this many bytes, of which neither addresses nor devices are known.
    pub fn of_bytes(optype: ompt_target_data_op_t, bytes: u64) -> DataOp {
        DataOp {
            optype,
            src_addr: 0,
            src_device_num: -1,
            dest_addr: 0,
            dest_device_num: -1,
            bytes,
            codeptr_ra: 0,
        }
    }
}

impl Work {
    /// A data operation is a copy or one of memory.
    pub fn of_data_op(op: DataOp) -> Work {
        match is_transfer(op.optype) {
            true => Work::Copy(op),
            false => Work::Memory(op),
        }
    }
}

/// Whether a data operation carries bytes from one place to another.
pub(crate) fn is_transfer(optype: ompt_target_data_op_t) -> bool {
    matches!(
        optype,
        ompt::ompt_target_data_transfer_to_device
            | ompt::ompt_target_data_transfer_from_device
            | ompt::ompt_target_data_transfer
            | ompt::ompt_target_data_transfer_rect
            | ompt::ompt_target_data_transfer_to_device_async
            | ompt::ompt_target_data_transfer_from_device_async
            | ompt::ompt_target_data_transfer_async
            | ompt::ompt_target_data_transfer_rect_async
    )
}
