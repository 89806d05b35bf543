//! The environment variables by which programs' annotations reach the tracer.
//!
//! | interface | variable | if another library is set |
//! | --- | --- | --- |
//! | NVTX | `NVTX_INJECTION64_PATH` | the tracer passes calls on: `OMPTRACE_CHAIN_NVTX` |
//! | ITT | `INTEL_LIBITTNOTIFY64` | `OMPTRACE_CHAIN_ITT` |
//! | Kokkos | `KOKKOS_TOOLS_LIBS`, whose first library Kokkos loads | `OMPTRACE_CHAIN_KOKKOS` |
//! | OpenACC | `ACC_PROFLIB` | the other library stays in the list |
//! | `omptrace.h` | `OMPTRACE_ANNOTATION_LIBRARY` | |
//! | rocTX | none: the tracer is preloaded if a program needs the library | the library itself receives all calls |

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use omptrace_settings::value::{AnnotationList, Value};

use crate::record::find_tracer::{Variables, variable};
use crate::system::elf::{self, Elf};
use crate::system::executable::{Program, name_of};
use crate::system::library_search::Loader;

/// The variable that lists the interfaces to record.
const ANNOTATIONS: &str = "OMPTRACE_ANNOTATIONS";

/// The interfaces to record, according to options or the environment.
pub(crate) fn wanted(variables: &Variables) -> AnnotationList {
    let given = variables.iter().find(|(name, _)| *name == ANNOTATIONS).map(|(_, value)| value.clone());
    let given = given.or_else(|| variable(ANNOTATIONS)).and_then(|value| AnnotationList::parse(&value));
    given.or_else(|| AnnotationList::parse(OsStr::new("all"))).unwrap_or(AnnotationList(Vec::new()))
}

/// The variables to set for a program.
pub(crate) fn variables(wanted: &AnnotationList, library: &Path) -> Variables {
    let mut set = Variables::new();
    let library = library.as_os_str();
    let is_another = |other: &OsString| other != library;
    for (interface, name, chain) in [
        ("nvtx", "NVTX_INJECTION64_PATH", "OMPTRACE_CHAIN_NVTX"),
        ("itt", "INTEL_LIBITTNOTIFY64", "OMPTRACE_CHAIN_ITT"),
    ] {
        if wanted.has(interface) {
            set.extend(variable(name).filter(is_another).map(|other| (chain, other)));
            set.push((name, library.to_owned()));
        }
    }
    if wanted.has("kokkos") {
        let others = variable("KOKKOS_TOOLS_LIBS").or_else(|| variable("KOKKOS_PROFILE_LIBRARY"));
        let first = others.as_deref().and_then(|others| others.as_bytes().split(|byte| *byte == b';').next());
        let first = first.map(|first| OsStr::from_bytes(first).to_owned());
        set.extend(first.filter(is_another).map(|other| ("OMPTRACE_CHAIN_KOKKOS", other)));
        set.push(("KOKKOS_TOOLS_LIBS", library.to_owned()));
    }
    if wanted.has("openacc") {
        let list: Vec<OsString> = [library.to_owned()].into_iter().chain(variable("ACC_PROFLIB")).collect();
        set.push(("ACC_PROFLIB", list.join(OsStr::new(";"))));
    }
    if wanted.has("omptrace") {
        set.push(("OMPTRACE_ANNOTATION_LIBRARY", library.to_owned()));
    }
    set
}

/// Whether a program needs AMD's library for rocTX, whose functions the tracer replaces.
pub(crate) fn needs_preloaded_tracer(wanted: &AnnotationList, programs: &[Program], loader: &Loader) -> bool {
    let needs_it = |program: &Program| {
        let Ok(Some(Elf::Native(elf))) = elf::read(&program.path) else { return false };
        let needed = loader.needed(&program.path, &elf);
        needed.iter().filter_map(|needed| needed.path.as_deref()).any(is_roctx)
    };
    wanted.has("roctx") && programs.iter().any(needs_it)
}

fn is_roctx(library: &Path) -> bool {
    ["libroctx64.so", "librocprofiler-sdk-roctx.so"].iter().any(|name| name_of(library).starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wanted_interfaces_find_the_tracer() {
        let set = |list: &str| {
            let wanted = AnnotationList::parse(OsStr::new(list)).expect("a list");
            let set = variables(&wanted, Path::new("/lib/libomptrace.so"));
            set.into_iter()
                .map(|(name, _)| name)
                .filter(|name| !name.starts_with("OMPTRACE"))
                .collect::<Vec<_>>()
        };
        assert_eq!(set("none"), [""; 0]);
        assert_eq!(set("nvtx,kokkos"), ["NVTX_INJECTION64_PATH", "KOKKOS_TOOLS_LIBS"]);
        let all = ["NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "KOKKOS_TOOLS_LIBS", "ACC_PROFLIB"];
        assert_eq!(set("all"), all);
    }
}
