//! The libgomp functions that programs call, and whether another runtime defines them with the required version.
//!
//! The loader binds each reference separately. If the other runtime lacks a function, the reference stays bound to
//! libgomp. The program would then run on two runtimes that know nothing of each other, and would crash or compute
//! wrong results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::output::message;
use crate::system::elf::{self, DynamicSymbol, Elf};
use crate::system::executable::Program;
use crate::system::library_search::Loader;
use crate::system::openmp_runtime;

/// Functions that a runtime lacks for an object that calls libgomp.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lacking {
    /// The calling program or library.
    pub(crate) object: PathBuf,
    /// The functions, sorted by name.
    pub(crate) functions: BTreeSet<String>,
}

/// Prefixes of the libgomp functions that compilers and programs call. LLVM's runtime has none of OpenACC's.
const PREFIXES: &[&str] = &["GOMP_", "omp_", "GOACC_", "acc_"];

/// Functions that LLVM's runtime defines, but in which it ends the program (`OMP: Error #277`). They are called for
/// `reduction(inscan)`, `lastprivate(conditional)` and task reductions, of which only the last works.
const DEFINED_IN_VAIN: &[&str] = &[
    "GOMP_loop_start",
    "GOMP_loop_ordered_start",
    "GOMP_loop_doacross_start",
    "GOMP_loop_ull_start",
    "GOMP_loop_ull_ordered_start",
    "GOMP_loop_ull_doacross_start",
    "GOMP_sections2_start",
];

/// Functions in which LLVM's runtime does not do everything that libgomp does, although most programs run correctly,
/// and what may go wrong. Symbols do not show whether a program is affected.
const HAZARDS: &[(&str, &str)] = &[
    ("GOMP_taskloop", "this runtime aborts at a taskloop whose loop variable decreases"),
    ("GOMP_taskloop_ull", "this runtime aborts at a taskloop whose loop variable decreases"),
    ("GOMP_task", "this runtime may lose a task that is untied or has a `mutexinoutset` dependence"),
];

/// The functions that `libomp` lacks for the programs, and for all libraries that they need.
pub(crate) fn lacking_in(libomp: &Path, programs: &[Program], loader: &Loader) -> Vec<Lacking> {
    let with_libgomp = programs.iter().filter(|program| program.needs_libgomp());
    lacking_for(libomp, with_libgomp.map(|program| &*program.path), loader)
}

/// The functions that `libomp` lacks for programs or libraries, and for all libraries that these need.
pub(crate) fn lacking_for<'a>(
    libomp: &Path,
    objects: impl IntoIterator<Item = &'a Path>,
    loader: &Loader,
) -> Vec<Lacking> {
    let defined = OfRuntime::read(libomp);
    let mut lacking = BTreeSet::new();
    for object in objects {
        let scope = scope_of(object, loader);
        lacking.extend(scope.iter().filter_map(|object| {
            let calls = object.references().filter(|call| is_of_libgomp(call, &scope));
            defined.lacking_for(&object.path, calls)
        }));
    }
    lacking.into_iter().collect()
}

/// The faults that LLVM's runtime may show with these programs, according to the functions they call; each once.
pub(crate) fn hazards_of(programs: &[Program], loader: &Loader) -> Vec<&'static str> {
    let scopes = programs.iter().map(|program| scope_of(&program.path, loader));
    let called: BTreeSet<String> = scopes
        .flatten()
        .flat_map(|object| {
            let names = object.references().map(|call| call.name.clone());
            names.collect::<Vec<_>>()
        })
        .collect();
    let hazards = HAZARDS.iter().filter(|(name, _)| called.contains(*name));
    let mut hazards: Vec<_> = hazards.map(|(_, what)| *what).collect();
    hazards.dedup();
    hazards
}

/// The program, or the library of it, that contains an OMPT tool. A runtime prefers it to those in
/// `OMP_TOOL_LIBRARIES`.
pub(crate) fn own_tool(program: &Program, loader: &Loader) -> Option<PathBuf> {
    // LLVM's runtime itself defines the function, for programs without a tool.
    if openmp_runtime::is_linked_statically(&program.path) {
        return None;
    }
    let paths = scope_of(&program.path, loader);
    paths.into_iter().map(|object| object.path).find(|path| {
        let symbols = elf::dynamic_symbols(path, |name| name == "ompt_start_tool");
        openmp_runtime::known(path).is_none() && symbols.iter().any(|symbol| symbol.is_defined)
    })
}

/// Whether the program was built with ThreadSanitizer.
pub(crate) fn has_thread_sanitizer(program: &Program, loader: &Loader) -> bool {
    let is_its = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libtsan.") || name.starts_with("libclang_rt.tsan")
    };
    let scope = scope_of(&program.path, loader);
    scope.iter().any(|object| is_its(&object.path))
        || !scope.is_empty() && elf::defines(&program.path, &["__tsan_init"])
}

/// Whether one of the programs and libraries, or of the libraries that they need, calls one of the functions.
pub(crate) fn calls_one_of<'a>(
    functions: &[&str],
    objects: impl IntoIterator<Item = &'a Path>,
    loader: &Loader,
) -> bool {
    let mut scopes = objects.into_iter().map(|object| scope_of(object, loader));
    scopes.any(|scope| {
        scope.iter().any(|object| {
            let mut calls = object.references();
            calls.any(|call| functions.contains(&&*call.name))
        })
    })
}

/// Whether a library, or one that it needs, would be bound to libgomp if no preloaded library came before.
pub(crate) fn runs_on_libgomp(library: &Path, loader: &Loader) -> bool {
    let scope = scope_of(library, loader);
    let calls = |object: &Object| {
        let mut references = object.references();
        references.any(|call| is_of_libgomp(call, &scope))
    };
    scope.iter().any(calls) || elf::defines(library, &["GOMP_parallel"])
}

/// A program or library with all libraries that it needs, in the order of the loader's symbol search. Empty if it is
/// not for this machine.
fn scope_of(object: &Path, loader: &Loader) -> Vec<Object> {
    let Ok(Some(Elf::Native(elf))) = elf::read(object) else {
        return Vec::new();
    };
    let needed = loader.needed(object, &elf);
    let libraries = needed.into_iter().filter_map(|library| library.path);
    let paths = std::iter::once(object.to_owned()).chain(libraries);
    paths.map(Object::read).collect()
}

/// The symbols that a runtime defines.
struct OfRuntime(Vec<DynamicSymbol>);

impl OfRuntime {
    fn read(path: &Path) -> OfRuntime {
        OfRuntime(elf::dynamic_symbols(path, is_entry))
    }

    fn lacking_for<'a>(
        &self,
        object: &Path,
        calls: impl Iterator<Item = &'a DynamicSymbol>,
    ) -> Option<Lacking> {
        let works = |call: &DynamicSymbol| {
            let is_defined = self.0.iter().any(|symbol| symbol.satisfies(call));
            is_defined && !DEFINED_IN_VAIN.contains(&&*call.name)
        };
        let functions: BTreeSet<String> =
            calls.filter(|call| !works(call)).map(|call| call.name.clone()).collect();
        (!functions.is_empty()).then(|| Lacking { object: object.to_owned(), functions })
    }
}

/// A program or library, with its symbols that have such names.
struct Object {
    path: PathBuf,
    symbols: Vec<DynamicSymbol>,
}

impl Object {
    fn read(path: PathBuf) -> Object {
        Object { symbols: elf::dynamic_symbols(&path, is_entry), path }
    }

    fn references(&self) -> impl Iterator<Item = &DynamicSymbol> {
        self.symbols.iter().filter(|symbol| !symbol.is_defined)
    }

    fn defines(&self, reference: &DynamicSymbol) -> bool {
        self.symbols.iter().any(|symbol| symbol.satisfies(reference))
    }
}

/// Whether the loader binds the reference to libgomp: the first object in the scope that defines the symbol counts.
fn is_of_libgomp(reference: &DynamicSymbol, scope: &[Object]) -> bool {
    let first = scope.iter().find(|object| object.defines(reference));
    first.is_some_and(|object| openmp_runtime::is_libgomp(&object.path))
}

fn is_entry(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The lacking functions and their callers as text: `GOMP_teams4, GOMP_target_ext (./app)`.
pub(crate) fn described(lacking: &[Lacking]) -> String {
    /// If there are many, the first ones show what kind of functions they are.
    const MAX_NAMES: usize = 6;

    let describe = |lacking: &Lacking| {
        let mut names: Vec<&str> = lacking.functions.iter().map(String::as_str).collect();
        let rest = names.len().saturating_sub(MAX_NAMES);
        names.truncate(MAX_NAMES);
        let rest = match rest {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let object = message::near(&lacking.object);
        format!("{}{rest} (called by {})", names.join(", "), object.display())
    };
    let described: Vec<String> = lacking.iter().map(describe).collect();
    described.join("; ")
}
