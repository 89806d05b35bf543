//! The process's rank in an MPI job, according to the launcher.

/// Variables in which MPI launchers pass the rank: Open MPI, MPICH and Intel MPI, PMIx, MVAPICH2, HPE's PALS. They take
/// precedence, because a batch system may start one process per node and set the node's number.
const RANK: &[&str] =
    &["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID"];
/// Variables of batch systems, which also number the processes of other programs and of scripts. Each comes with the
/// variables that contain the number of processes: first for the step, then for the job. A single process has no rank.
const TASK: &[(&str, &[&str])] =
    &[("FLUX_TASK_RANK", &["FLUX_JOB_SIZE"]), ("SLURM_PROCID", &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"])];

/// The MPI rank, if set by a launcher.
pub(crate) fn rank() -> Option<u32> {
    rank_in(|name| std::env::var(name).ok()?.parse().ok())
}

/// The rank, given the numbers in the environment.
fn rank_in(number: impl Fn(&str) -> Option<u32>) -> Option<u32> {
    RANK.iter().find_map(|name| number(name)).or_else(|| {
        TASK.iter().find_map(|(name, sizes)| {
            let rank = number(name)?;
            // Without a number of processes there is one: whoever wants more has to request them.
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
            // An `sbatch` script, and a single `srun` task in a job of several.
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
