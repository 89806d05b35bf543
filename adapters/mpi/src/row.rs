//! The arguments to record for each function, by their positions.

use omptrace_mpi_api::Class;

/// No argument.
pub(crate) const NONE: u8 = u8::MAX;

/// Special treatment of a call, in addition to the usual reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Wait,
    Waitall,
    Waitany,
    Waitsome,
    Test,
    Testall,
    Testany,
    Testsome,
    /// Returns a flag that says whether it succeeded, and is repeated by the program if it did not.
    Attempt,
    Init,
    InitThread,
    SessionInit,
    NewCommunicator,
    /// The communicator may be used only when the request is complete.
    NewCommunicatorLater,
    FreeCommunicator,
    NameCommunicator,
    NewWindow,
    NewAllocatedWindow,
    NewDynamicWindow,
    FreeWindow,
    NameWindow,
    OpenFile,
    CloseFile,
    Start,
    Startall,
    SendAndReceive,
    FreeRequest,
    CommitType,
    NewType,
    FreeType,
    Pcontrol,
    Finalize,
    Abort,
}

/// The type of object that a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handle {
    None,
    Communicator,
    Window,
    File,
    Request,
    Message,
    Session,
    Datatype,
}

/// A function. Argument positions are counted as in C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) class: Class,
    pub(crate) kind: Kind,
    /// Number of arguments in C.
    pub(crate) arguments: u8,
    /// Number of arguments that Fortran lacks. They are the first ones.
    pub(crate) c_only: u8,
    /// Number of string lengths that Fortran passes after the last argument.
    pub(crate) strings: u8,
    /// The communicator, window, file, request or message.
    pub(crate) object: u8,
    pub(crate) object_type: Handle,
    pub(crate) object_by_address: bool,
    pub(crate) peer: u8,
    pub(crate) tag: u8,
    /// The number of elements and their datatype.
    pub(crate) count: u8,
    pub(crate) datatype: u8,
    /// The buffer that may be in place. Then the following two arguments are significant instead.
    pub(crate) in_place: u8,
    pub(crate) other_count: u8,
    pub(crate) other_datatype: u8,
    /// The number of partitions of the message, each with this number of elements.
    pub(crate) partitions: u8,
    /// Source and tag of the message that is received along with a sent one.
    pub(crate) other_peer: u8,
    pub(crate) other_tag: u8,
    /// The array with a number of elements for each rank, and the array that is significant if the buffer is in place.
    pub(crate) counts: u8,
    pub(crate) other_counts: u8,
    /// The request, or the new object.
    pub(crate) result: u8,
    pub(crate) result_type: Handle,
    pub(crate) status: u8,
    /// The flag that says whether the call succeeded.
    pub(crate) flag: u8,
}

impl Row {
    const NONE: Row = Row {
        class: Class::Other,
        kind: Kind::Plain,
        arguments: 0,
        c_only: 0,
        strings: 0,
        object: NONE,
        object_type: Handle::None,
        object_by_address: false,
        peer: NONE,
        tag: NONE,
        count: NONE,
        datatype: NONE,
        in_place: NONE,
        other_count: NONE,
        other_datatype: NONE,
        partitions: NONE,
        other_peer: NONE,
        other_tag: NONE,
        counts: NONE,
        other_counts: NONE,
        result: NONE,
        result_type: Handle::None,
        status: NONE,
        flag: NONE,
    };
}

include!(concat!(env!("OUT_DIR"), "/rows.rs"));
