//! A communicator, as one rank sees it.

use crate::ranks::posting::Posting;

/// A communicator of one rank.
#[derive(Clone, Debug)]
pub(super) struct Communicator {
    pub(super) origin: Origin,
    /// The function that made it.
    pub(super) function: u32,
    /// The program's name for it.
    pub(super) name: Option<String>,
    /// The calls that made and freed it.
    pub(super) made: Option<Posting>,
    pub(super) freed: Option<Posting>,
    pub(super) size: u32,
    pub(super) own_rank: u32,
    /// Of an intercommunicator, the number of members of the other group; else 0.
    pub(super) remote_size: u32,
    /// Ranks in the world, those of the other group last; empty where another rank tells them.
    pub(super) members: Vec<u32>,
}

/// What a communicator was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    World,
    Own,
    /// From a communicator of this place, as one of those that all of its members made after each other.
    Made {
        parent: u32,
        ordinal: u32,
    },
    /// By these members alone (`MPI_Comm_create_group`).
    Group {
        parent: u32,
        tag: i32,
    },
    /// Between two groups (`MPI_Intercomm_create`).
    Between {
        tag: i32,
    },
    /// In another way: its other members are not known.
    Unknown,
}
