//! The kinds of device operations that have tracks of their own.

use ompt_sys as ompt;

use super::record::Work;

/// The kinds of operations that have tracks of their own, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueKind {
    Kernels,
    ToDevice,
    FromDevice,
    WithinDevice,
    Memory,
    OtherOperations,
    Hardware(u64),
}

impl QueueKind {
    pub(super) fn of(work: &Work, device_num: i32) -> QueueKind {
        let op = match work {
            Work::Kernel { .. } => return QueueKind::Kernels,
            Work::Native { hwid, .. } => return QueueKind::Hardware(*hwid),
            Work::DataOp(op) => op,
        };
        match op.kind() {
            _ if op.is_of_memory() => QueueKind::Memory,
            // Regardless of the type that the runtime reports: LLVM calls these transfers from the device.
            _ if op.src_device_num >= 0 && op.src_device_num == op.dest_device_num => QueueKind::WithinDevice,
            ompt::ompt_target_data_transfer_to_device => QueueKind::ToDevice,
            ompt::ompt_target_data_transfer_from_device => QueueKind::FromDevice,
            ompt::ompt_target_data_transfer | ompt::ompt_target_data_transfer_rect
                if op.dest_device_num == device_num =>
            {
                QueueKind::ToDevice
            }
            ompt::ompt_target_data_transfer | ompt::ompt_target_data_transfer_rect => QueueKind::FromDevice,
            _ => QueueKind::OtherOperations,
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            QueueKind::Kernels => "kernels".into(),
            QueueKind::ToDevice => "transfers to device".into(),
            QueueKind::FromDevice => "transfers from device".into(),
            QueueKind::WithinDevice => "transfers within device".into(),
            QueueKind::Memory => "memory".into(),
            QueueKind::OtherOperations => "other operations".into(),
            QueueKind::Hardware(hwid) => format!("hardware {hwid:#x}"),
        }
    }

    /// The name of the counter of its bytes per second.
    pub(super) fn rate(self, device: &str) -> Option<String> {
        match self {
            QueueKind::ToDevice => Some(format!("to {device}")),
            QueueKind::FromDevice => Some(format!("from {device}")),
            _ => None,
        }
    }
}
