//! The rank of the process in an MPI job, as its launcher says it.

/// Variables by which launchers of MPI give a process its rank: Open MPI, MPICH and Intel MPI, PMIx, MVAPICH2, HPE's PALS. They come
/// first: a batch system may give one process of a node the number of the node.
const RANK: &[&str] =
    &["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID"];
/// Those of batch systems, which number the processes of all programs, and of scripts, too. Behind each are the variables with how many
/// there are: that of the step before that of the job. One alone is no rank.
const TASK: &[(&str, &[&str])] =
    &[("FLUX_TASK_RANK", &["FLUX_JOB_SIZE"]), ("SLURM_PROCID", &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"])];

/// The MPI rank, where a launcher sets it.
pub(crate) fn rank() -> Option<u32> {
    rank_in(|name| std::env::var(name).ok()?.parse().ok())
}

/// The rank by the numbers in the environment.
fn rank_in(number: impl Fn(&str) -> Option<u32>) -> Option<u32> {
    RANK.iter().find_map(|name| number(name)).or_else(|| {
        TASK.iter().find_map(|(name, sizes)| {
            let rank = number(name)?;
            // Where nobody says how many there are, there is one: who wants more has to say so.
            let tasks = sizes.iter().find_map(|size| number(size)).unwrap_or(1);
            (tasks > 1 || rank > 0).then_some(rank)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_task_of_a_batch_job_has_no_rank() {
        let cases = [
            ("", None),
            ("PMI_RANK=0", Some(0)),
            ("SLURM_PROCID=5 OMPI_COMM_WORLD_RANK=2", Some(2)),
            // A script of `sbatch`, and one task of `srun` in a job of several.
            ("SLURM_PROCID=0", None),
            ("SLURM_PROCID=0 SLURM_NTASKS=1", None),
            ("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=8", None),
            ("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=8", Some(0)),
            ("SLURM_PROCID=0 SLURM_NTASKS=8", Some(0)),
            ("SLURM_PROCID=3", Some(3)),
            ("FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1", None),
            ("FLUX_TASK_RANK=0 FLUX_JOB_SIZE=2", Some(0)),
        ];
        for (variables, rank) in cases {
            let number = |name: &str| {
                let mut variables = variables.split(' ').filter_map(|variable| variable.split_once('='));
                variables.find(|(known, _)| *known == name)?.1.parse().ok()
            };
            assert_eq!(rank_in(number), rank, "{variables}");
        }
    }
}
