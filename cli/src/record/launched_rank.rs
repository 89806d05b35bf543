//! The rank of `record` itself, if a launcher starts it once per rank: `mpirun -n 8 omptrace record ./app`.

use std::env;

/// A rank of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchedRank {
    /// The rank's number.
    pub(crate) rank: u32,
    /// Number of ranks.
    pub(crate) ranks: u32,
}

/// The variables in which launchers pass the rank and the number of ranks. Slurm's are not included, because it also
/// sets them for the job script, which starts all ranks.
const LAUNCHERS: &[(&str, &str)] = &[
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
];

impl LaunchedRank {
    /// The rank according to this process's environment; `None` if there is only one.
    pub(crate) fn of_this_process() -> Option<LaunchedRank> {
        LaunchedRank::of(|name| env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<LaunchedRank> {
        LAUNCHERS.iter().find_map(|(rank, ranks)| {
            let rank = variable(rank)?.parse().ok()?;
            let ranks = variable(ranks)?.parse().ok()?;
            (ranks > 1 && rank < ranks).then_some(LaunchedRank { rank, ranks })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_one_of_several() {
        let of = |variables: &[(&str, &str)]| {
            LaunchedRank::of(|name| {
                let found = variables.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let open_mpi = |rank, ranks| of(&[("OMPI_COMM_WORLD_RANK", rank), ("OMPI_COMM_WORLD_SIZE", ranks)]);
        assert_eq!(open_mpi("3", "8"), Some(LaunchedRank { rank: 3, ranks: 8 }));
        assert_eq!(open_mpi("0", "1"), None);
        assert_eq!(open_mpi("8", "8"), None);
        assert_eq!(of(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]), Some(LaunchedRank { rank: 1, ranks: 2 }));
        assert_eq!(of(&[("PMI_RANK", "1")]), None);
        assert_eq!(of(&[]), None);
    }
}
