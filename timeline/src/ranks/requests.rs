//! What requests stand for, and what calls post.

use std::collections::VecDeque;

use crate::ranks::process_calls::{Collective, Receive, Send};

/// What a request stands for.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    /// Also whether the send returns only when it is received.
    Send {
        place: usize,
        is_synchronous: bool,
    },
    Receive {
        place: usize,
    },
    /// Also a send (`MPI_Isendrecv`).
    Both {
        send: Option<usize>,
        receive: usize,
    },
    Collective {
        place: usize,
    },
    PersistentSend {
        send: Send,
        started: VecDeque<usize>,
        is_synchronous: bool,
    },
    PersistentReceive {
        receive: Receive,
        started: VecDeque<usize>,
    },
    PersistentCollective {
        collective: Collective,
        started: VecDeque<usize>,
    },
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Never used again, unlike a handle.
    pub(super) number: u64,
    /// The thread that it is of.
    pub(super) thread: usize,
    /// The time that the thread had spent outside of calls when the request was posted, or started.
    pub(super) posted: u64,
    /// A call waits for it.
    pub(super) is_awaited: bool,
    pub(super) meaning: Meaning,
}

impl Request {
    pub(super) fn is_persistent(&self) -> bool {
        matches!(
            self.meaning,
            Meaning::PersistentSend { .. }
                | Meaning::PersistentReceive { .. }
                | Meaning::PersistentCollective { .. }
        )
    }
}

/// A request that a call has waited for, and what its status says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completed {
    pub(super) handle: u64,
    pub(super) number: u64,
    pub(super) peer: i32,
    pub(super) tag: i32,
    pub(super) bytes: u64,
}

/// What a call posts.
#[derive(Clone, Debug)]
pub(super) enum Posted {
    Nothing,
    Send { place: usize },
    Receive { place: usize },
    Both { send: Option<usize>, receive: usize },
    Collective { place: usize },
    Fence { place: usize },
    PersistentSend(Send),
    PersistentReceive(Receive),
    PersistentCollective(Collective),
}

/// Whether it makes a persistent send.
pub(super) fn is_send_init(name: &str) -> bool {
    matches!(name, "MPI_Send_init" | "MPI_Bsend_init" | "MPI_Rsend_init" | "MPI_Ssend_init")
}

/// Whether it makes a persistent collective operation.
pub(super) fn is_collective_init(name: &str) -> bool {
    let is_partitioned = matches!(name, "MPI_Psend_init" | "MPI_Precv_init");
    name.ends_with("_init") && !is_partitioned
}
