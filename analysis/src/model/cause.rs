//! The causes to which thread time is attributed: useful work, and the causes of loss.

use serde::{Deserialize, Serialize};

/// Turns rows `Variant "name" "title": "meaning";` into [`Cause`] and its table.
macro_rules! causes {
    ($($variant:ident $name:literal $title:literal: $meaning:literal;)*) => {
        /// The cause of a nanosecond of thread time. At each moment, a thread has exactly one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Cause { $(#[doc = $meaning] $variant,)* }

        impl Cause {
            /// All causes, in the order of display: `useful` first.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant,)*];

            /// Its name in JSON (there with `_ns` behind it), in CSV and in conditions.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name,)* }
            }

            /// Its name in texts for people.
            pub fn title(self) -> &'static str {
                match self { $(Cause::$variant => $title,)* }
            }

            /// The cause's meaning, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Cause::$variant => $meaning,)* }
            }
        }
    };
}

causes! {
    Useful "useful" "useful work": "The thread runs the program's code: serial code on an initial thread, code in a region, or an explicit task.";
    Serial "serial" "serial code": "The thread has nothing to do, because no parallel region is open.";
    IdleInMpi "idle_in_mpi" "idle during MPI": "Another thread is in an MPI call, and this thread has nothing to do, because no parallel region is open. This cause is shown only if MPI calls were recorded.";
    NarrowTeam "narrow_team" "small teams": "The thread has nothing to do, because the open parallel regions have fewer than N threads (N is the peak number of threads).";
    Fork "fork" "thread start-up": "A parallel region has started, but the thread's implicit task in this region has not.";
    Join "join" "end of region": "The thread still waits at the end of a parallel region, although all threads of the team have arrived there and the last task has ended; or the thread has left the region, but the region has not ended yet.";
    Imbalance "imbalance" "load imbalance": "The thread waits at a barrier for a thread of its team that has not arrived.";
    Barrier "barrier" "barriers": "The thread is in a barrier at which all threads of the team have arrived and no task is running.";
    TaskWait "task_wait" "waiting for tasks": "The thread waits in a taskwait or at the end of a taskgroup, and runs no task.";
    TaskStarvation "task_starvation" "lack of tasks": "The thread waits at a barrier at which all threads of the team have arrived, while other threads run tasks.";
    Lock "lock" "locks": "The thread waits for a lock.";
    Critical "critical" "critical regions": "The thread waits for a critical region.";
    Ordered "ordered" "ordered regions": "The thread waits for its turn in an ordered region.";
    Atomic "atomic" "atomic updates": "The thread waits for an atomic region.";
    Reduction "reduction" "reductions": "The thread combines the results of a reduction.";
    Target "target" "devices": "The thread executes the host's part of a target construct, for example launches a kernel, transfers data, or waits for the device.";
    Runtime "runtime" "OpenMP runtime": "The thread is in the OpenMP runtime for a reason that no other cause covers.";
    ExternalWait "external_wait" "waits outside OpenMP": "The thread waits in the program's code for something outside OpenMP, such as a pthread mutex. This cause is shown only if waits were recorded.";
    Mpi "mpi" "MPI communication": "The thread is in an MPI call that communicates: it sends, receives, tests or waits. This cause is shown only if MPI calls were recorded.";
    MpiWait "mpi_wait" "waits for ranks": "The thread waits in an MPI call that communicates, because another process has not yet started the operation on which the call depends. This cause is shown only if the MPI calls of all ranks were recorded.";
    MpiTransfer "mpi_transfer" "MPI transfers": "The thread is in an MPI call that communicates, but does not wait for another process. This cause is shown only if the MPI calls of all ranks were recorded.";
    MpiOther "mpi_other" "other MPI calls": "The thread is in an MPI call that is not counted as communication, such as a call that initializes the library, creates a communicator or accesses a file. This cause is shown only if MPI calls were recorded.";
    Preempted "preempted" "preemption": "The thread was ready to run, but another thread was using its CPU. This cause is shown only if the counters for preemption were recorded.";
    Tracer "tracer" "tracer": "The thread writes its event buffer to the trace, or the tracer writes the remaining events after the program has ended.";
    Unobserved "unobserved" "not recorded": "The trace does not show what the thread did: recording was off, events were lost or overwritten, or the process was not running.";
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = Cause::ALL.len();

    /// Whether the cause is waiting for a mutex.
    pub fn is_mutex(self) -> bool {
        matches!(self, Cause::Lock | Cause::Critical | Cause::Ordered | Cause::Atomic)
    }

    /// Whether outputs leave the cause out if it has no time: such waits and calls are recorded only on request.
    pub fn is_rare(self) -> bool {
        self == Cause::ExternalWait || self.is_of_mpi()
    }

    /// Whether the cause concerns MPI.
    pub fn is_of_mpi(self) -> bool {
        self.is_mpi_call() || self == Cause::IdleInMpi
    }

    /// Whether the thread is inside an MPI call.
    pub(crate) fn is_mpi_call(self) -> bool {
        matches!(self, Cause::Mpi | Cause::MpiWait | Cause::MpiTransfer | Cause::MpiOther)
    }

    /// Whether the thread is inside a call made by the program's own code. For waits of other threads, this time is
    /// part of the thread's work.
    pub(crate) fn is_in_own_code(self) -> bool {
        self == Cause::ExternalWait || self.is_mpi_call()
    }

    /// Whether predictions treat the time as work: useful time, and calls made by the program's own code.
    pub(crate) fn is_work(self) -> bool {
        self == Cause::Useful || self.is_in_own_code()
    }

    /// Whether the cause is a loss.
    pub fn is_loss(self) -> bool {
        self != Cause::Useful
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;

    #[test]
    fn the_table_is_in_the_order_of_the_enumeration() {
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index, "{}", cause.name());
        }
    }
}
