//! Differences for GCC programs that ran on LLVM's runtime, as far as their traces show them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use omptrace_symbols::Table;
use omptrace_trace_format::Reader;
use omptrace_trace_format::metadata::Processors;

use crate::output::message;
use crate::record::libgomp::StandIn;
use crate::seal::sealing::SealedTrace;
use crate::system::executable::Program;
use crate::system::library_search::Loader;
use crate::system::symbol_versions;

/// Functions by which programs change the number of threads of regions, for C and Fortran.
const SETS_THREADS: &[&str] = &["omp_set_num_threads", "omp_set_num_threads_", "omp_set_num_threads_8_"];

/// Reports the differences.
pub(crate) fn report(done: &[SealedTrace], stand_in: &StandIn, programs: &[Program], loader: &Loader) {
    let mut differences = BTreeSet::new();
    let mut libraries = BTreeSet::new();
    for done in done.iter().filter(|done| done.result.is_ok()) {
        let Ok(reader) = Reader::open(&done.trace) else {
            continue;
        };
        let metadata = reader.metadata();
        let modules: Option<BTreeSet<PathBuf>> = Table::from_metadata(metadata).map(|table| {
            let paths = table.instances().map(|module| PathBuf::from(&module.path));
            paths.collect()
        });
        if let Some(processors) = &metadata.processors {
            // Without knowing whether the program chose the number of threads, differences in it are not reported.
            let may_set_threads = modules.as_ref().is_none_or(|modules| {
                let programs = programs.iter().map(|program| &*program.path);
                let objects = programs.chain(modules.iter().map(PathBuf::as_path));
                symbol_versions::calls_one_of(SETS_THREADS, objects, loader)
            });
            differences.extend(differences_of(processors, may_set_threads));
        }
        libraries.extend(modules.into_iter().flatten());
    }
    for difference in differences {
        message::warning(&difference);
    }
    report_mixed(&libraries, stand_in, loader);
}

/// The differences between the program's environment and that on libgomp.
fn differences_of(processors: &Processors, may_set_threads: bool) -> Vec<String> {
    let Some(libgomp) = &processors.of_libgomp else {
        return Vec::new();
    };
    let places = i32::try_from(processors.places.len()).unwrap_or(i32::MAX);
    // Without a list of places, libgomp has no places, and LLVM's runtime has a single place with all CPUs.
    let places = (libgomp.num_places > 0).then_some(places);
    let threads = processors.max_threads.filter(|_| !may_set_threads);
    [
        ("omp_get_num_procs", Some(processors.num_procs), libgomp.num_procs),
        ("omp_get_num_places", places, libgomp.num_places),
        ("omp_get_max_threads", threads, libgomp.max_threads),
    ]
    .into_iter()
    .filter_map(|(function, recorded, alone)| {
        let recorded = recorded.filter(|recorded| *recorded != alone)?;
        Some(format!(
            "{function} returned {recorded} in the recorded run, but it returns {alone} if the program runs on GCC's libgomp"
        ))
    })
    .collect()
}

/// Reports libraries that were loaded at run time and that call functions which the replacing runtime lacks.
fn report_mixed(libraries: &BTreeSet<PathBuf>, stand_in: &StandIn, loader: &Loader) {
    let objects = libraries.iter().map(PathBuf::as_path);
    let mut lacking = symbol_versions::lacking_for(&stand_in.libomp, objects, loader);
    lacking.retain(|lacking| !stand_in.lacking.contains(lacking));
    if lacking.is_empty() {
        return;
    }
    message::warning(&format!(
        "the program ran on two OpenMP runtimes, because {} lacks {}; the results of the program may be wrong",
        stand_in.libomp.display(),
        symbol_versions::described(&lacking)
    ));
    message::hint("record with --libgomp keep; code that runs on libgomp is then not traced");
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::metadata::OfLibgomp;

    use super::*;

    #[test]
    fn what_differs_is_reported_and_what_cannot_be_compared_is_not() {
        let of_libgomp =
            OfLibgomp { path: "libgomp.so.1".into(), num_procs: 2, num_places: 0, max_threads: 2 };
        let same = Processors {
            num_procs: 2,
            places: vec![vec![0, 1]],
            max_threads: Some(2),
            of_libgomp: Some(of_libgomp.clone()),
            ..Processors::default()
        };
        assert!(differences_of(&same, false).is_empty());
        let bound = Processors {
            num_procs: 1,
            max_threads: Some(4),
            of_libgomp: Some(OfLibgomp { num_places: 2, ..of_libgomp }),
            ..same
        };
        let reported = differences_of(&bound, false);
        assert_eq!(
            reported,
            [
                "omp_get_num_procs returned 1 in the recorded run, but it returns 2 if the program runs on GCC's libgomp",
                "omp_get_num_places returned 1 in the recorded run, but it returns 2 if the program runs on GCC's libgomp",
                "omp_get_max_threads returned 4 in the recorded run, but it returns 2 if the program runs on GCC's libgomp",
            ]
        );
        assert_eq!(differences_of(&bound, true), reported[..2]);
    }
}
