//! External waits (outside of OpenMP), such as waits for a pthread mutex.
//!
//! The tracer leaves out waits of the runtime if it recognises the runtime's code by its module. A runtime that is
//! linked into the program has no module of its own. But the runtime waits only where its own events say so, so
//! external waits that start there are not the program's.

use omptrace_trace_format::field::WaitKind;

use super::*;

impl Interpreter<'_, '_> {
    #[inline(never)]
    pub(super) fn external_wait(&mut self, thread: usize, time: Ns, e: &ExternalWait) {
        let construct = Construct::ExternalWait(e.kind);
        let key = e.object.0;
        if e.endpoint == ompt::ompt_scope_end {
            let is_it = |frame: &Frame| frame.construct == construct && frame.key == key;
            if self.threads[thread].stack().last().is_some_and(is_it) {
                self.threads[thread].close(self.stage, time, construct, key, &[]);
            }
            return;
        }
        if self.threads[thread].stack().last().is_some_and(is_in_runtime) {
            return;
        }
        let object = arguments!["object": hex(e.object.0)];
        let scope = Scope::new(e.endpoint, construct).with_key(key).at(e.codeptr_ra);
        // Standard input has descriptor 0, too.
        let has_none = key == 0 && matches!(e.kind, WaitKind::sleep | WaitKind::poll);
        self.scope(thread, time, scope, if has_none { &[] } else { object });
    }
}

/// Whether a thread in this region waits for its team or for work, or is in the MPI library.
fn is_in_runtime(innermost: &Frame) -> bool {
    match innermost.construct {
        Construct::SyncRegionWait(_)
        | Construct::MutexWait(_)
        | Construct::Idle
        | Construct::MpiCall(_)
        | Construct::MpiWait(_)
        | Construct::ParallelWakeUp
        | Construct::TeamsWakeUp => true,
        Construct::SyncRegion(kind) => kind != ompt::ompt_sync_region_taskgroup,
        _ => innermost.has_ended(),
    }
}
