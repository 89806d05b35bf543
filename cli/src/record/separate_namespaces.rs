//! Detects libraries that a program loads with `RTLD_DEEPBIND` or `dlmopen`: the preloaded tracer cannot reach their OpenMP
//! runtime.

use std::collections::BTreeSet;

use crate::options::shared::Libgomp;
use crate::output::message;
use crate::record::libgomp::Decision;
use crate::record::recorded_traces::{DEEPBIND, SeparateNamespace};
use crate::system::executable::Program;
use crate::system::library_search::Loader;
use crate::system::symbol_versions;

/// Reports the libraries among these that run on libgomp; returns whether there are any.
pub(crate) fn report(
    apart: &BTreeSet<SeparateNamespace>,
    decision: &Decision,
    options: &Libgomp,
    programs: &[Program],
    loader: &Loader,
) -> bool {
    let is_audited = matches!(decision, Decision::ObserveBy(_)) && options.audit;
    let missed = |apart: &&SeparateNamespace| !(is_audited && apart.how == DEEPBIND);
    let on_libgomp = apart.iter().filter(missed).filter_map(|apart| {
        let mut callers = programs.iter();
        let library = callers.find_map(|caller| loader.library(&apart.library, &caller.path))?;
        symbol_versions::runs_on_libgomp(&library, loader).then_some((library, apart.how))
    });
    let on_libgomp: BTreeSet<_> = on_libgomp.collect();
    let why = match decision {
        Decision::ReplaceBy(stand_in) => {
            format!("{} did not replace libgomp", stand_in.libomp.display())
        }
        Decision::ObserveBy(_) => "libgomp could not be observed".to_owned(),
        _ => "libgomp was not replaced by another runtime".to_owned(),
    };
    for (library, how) in &on_libgomp {
        message::warning(&format!(
            "the parallel regions of {} were not recorded, because {why} in this library, which the program loaded using {how}",
            message::near(library).display()
        ));
    }
    if on_libgomp.is_empty() {
        return false;
    }
    message::hint(match decision {
        Decision::ObserveBy(_) if on_libgomp.iter().any(|(_, how)| *how == DEEPBIND) => {
            "record with --audit, which also observes libraries loaded by dlopen with RTLD_DEEPBIND"
        }
        _ => {
            "load the library without RTLD_DEEPBIND, or build the library with clang, so that it uses LLVM's runtime, which loads the tracer itself"
        }
    });
    true
}
