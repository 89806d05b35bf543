//! Names of code addresses: function, source file and line.
//!
//! ```text
//! Reader --collect--> modules, and the code addresses in each
//!                        | per module, in parallel
//!                     files: the file that was traced, with its debug files; none if it has changed since
//!                        |
//!                        |  vdso: functions that the kernel maps into processes, which have no file
//!                        |
//!                     image: DWARF, otherwise the symbol table --function--> names as the programmer wrote them
//!                        |  source: lines of directives that GCC left out
//!                        |  unwind: starts of functions without symbols
//!                        |  perf_map: code outside of modules, generated at run time
//!                        v
//!                     Table --stored--> JSON in the trace's metadata
//! ```
//!
//! A trace holds return addresses (`codeptr_ra`); the call before an address is named, so the lookup uses one byte
//! less. If that call is of one of the program's own functions, this function ended by a jump to the runtime, and the
//! construct is somewhere in the called function (`call_site`). In TR2, addresses are one more than the start of an
//! outlined function, which stands for its construct. Different modules may be loaded at the same address at different
//! times, so a name belongs to a *module instance* ([`Instance`]): file, build and load address.
//!
//! **A line is either correct or not given.** A file is used only if its build id is the one that the tracer saw;
//! without build id, size and modification time must be the same. Files that could not be used are reported as a
//! [`Problem`].
//!
//! GCC gives the calls that it generates for directives the line of an earlier statement. If the source file is older
//! than the module, the source shows the directive's own line (`files/source.rs`); otherwise, the place is marked as
//! *near* that line.
//!
//! **One file has one name.** Debug information contains a header under as many paths as there are ways to include it
//! (`a/../inc.h`, `./inc.h`); the table contains only one of these ([`normalised`]). Files with the same name in
//! several directories are shown with as many directories as are needed to distinguish them ([`FileNames`]).
//!
//! The names can be stored in the trace ([`Table::to_json`]), so that they are preserved when the trace is copied to
//! another machine, or when the program is rebuilt.
#![forbid(unsafe_code)]

mod collect;
mod directive;
pub mod fast_map;
mod files;
mod names;
mod options;
pub mod parallel;
mod stored;
mod table;

use std::path::Path;

use omptrace_trace_format::Reader;

use crate::files::image;
use crate::files::perf_map;
use crate::names::runtime;
use crate::parallel::in_parallel;
use collect::ModuleCode;
use directive::Directive;
use files::Files;
use files::image::Code;
use files::source::Sources;
use table::ModuleSymbols;

pub use files::loaded_module::Instance;
pub use names::function::{kernel, kernel_function, without_parameters};
pub use names::missing_names::Problem;
pub use names::printable;
pub use names::runtime::is_openmp_runtime;
pub use names::source_paths::{FileNames, normalised};
pub use options::{ModuleFiles, Options};
pub use stored::KEY;
pub use table::{Caller, Quality, Symbol, Table};

/// Names all code addresses of a trace from the files on this machine, each address once, and modules in parallel.
pub fn resolve(reader: &Reader, options: &Options) -> Table {
    let runtime = reader.metadata().runtime.as_ref();
    let code = match runtime.is_some_and(|runtime| runtime.dialect == "TR2") {
        true => Code::OutlinedFunctions,
        false => Code::Calls,
    };
    let (modules, in_no_module) = collected(reader);
    let resolved = in_parallel(modules, |module| resolve_module(module, code, options));
    Table::new(resolved, perf_map::names(reader, &in_no_module))
}

impl Table {
    /// The names stored in the trace. If there are none, or if directories with debug files are given, also the names
    /// from the files on this machine.
    pub fn of(reader: &Reader, options: &Options) -> Table {
        match Table::from_metadata(reader.metadata()) {
            Some(table) if options.debug_dirs.is_empty() => table,
            _ => Table::renewed(reader, options),
        }
    }

    /// The names stored in the trace; empty if there are none.
    pub fn stored(reader: &Reader) -> Table {
        Table::from_metadata(reader.metadata()).unwrap_or_default()
    }

    /// The names stored in the trace, and those from the files on this machine.
    pub fn renewed(reader: &Reader, options: &Options) -> Table {
        let mut table = Table::stored(reader);
        table.update(resolve(reader, options));
        table
    }
}

/// The modules that contain code addresses, each with the path of its file, and the addresses on stacks outside of all
/// modules.
fn collected(reader: &Reader) -> (Vec<ModuleCode>, Vec<u64>) {
    // The loader knows a library by the path that was passed to `dlopen`.
    let process = reader.metadata().process.as_ref();
    let directory = Path::new(process.map_or("", |process| &process.directory));
    let mut collected = collect::code(reader);
    for module in &mut collected.modules {
        module.path = directory.join(&module.path);
    }
    (collected.modules, collected.in_no_module)
}

/// The modules of the program whose code has no names, with the reason: as stored in the trace, otherwise those whose
/// files are missing.
pub fn nameless(reader: &Reader) -> Vec<(String, Problem)> {
    if let Some(table) = Table::from_metadata(reader.metadata()) {
        return table.nameless();
    }
    let options = Options::default();
    let modules = collected(reader).0.into_iter();
    let gone = modules.filter(|module| {
        let is_missing = |problem| problem == Problem::Missing;
        !module.path.exists()
            && module.has_constructs
            && !runtime::is_openmp_runtime(&module.instance.path)
            && Files::find(&module.instance, &module.path, &options).is_err_and(is_missing)
    });
    gone.map(|module| (module.instance.path, Problem::Missing)).collect()
}

fn resolve_module(code: ModuleCode, kind: Code, options: &Options) -> ModuleSymbols {
    let is_runtime = runtime::is_openmp_runtime(&code.instance.path);
    let mut module = ModuleSymbols::new(code.instance, is_runtime);
    // Source lines are not expected for libraries that the program only calls, such as the C library.
    let reported = |problem| Some(problem).filter(|_| code.has_constructs);
    let files = match Files::find(&module.instance, &code.path, options) {
        Ok(files) => files,
        Err(problem) => {
            module.problem = reported(problem);
            return module;
        }
    };
    let addresses = code.addresses.iter();
    let load_address = module.instance.load_address;
    let offsets: Vec<(u64, Option<Directive>)> =
        addresses.map(|(address, directive)| (address.wrapping_sub(load_address), *directive)).collect();
    let sources = Sources::older_than(module.instance.modified_ns);
    (module.places, module.checksums) = image::places(&files, kind, &offsets, sources);
    module.problem = files.problem.and_then(reported);
    if module.problem.is_none() && !is_runtime && !files.has_debug_info {
        module.problem = reported(Problem::NoDebugInfo);
    }
    module
}
