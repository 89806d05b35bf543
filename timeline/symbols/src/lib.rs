//! Names of code addresses: function, source file and line.
//!
//! ```text
//! Reader --collect--> modules, and the code addresses in each
//!                        | per module, in parallel
//!                     files: the file that was traced, with its debug files; none where it has changed since
//!                        |
//!                        |  vdso: functions that the kernel puts into processes, which have no file
//!                        |
//!                     image: DWARF, else the symbol table --function--> names as the programmer wrote them
//!                        |  source: lines of directives that GCC left out
//!                        |  unwind: where functions begin that have no symbol
//!                        |  perf_map: code in no module, which the program made
//!                        v
//!                     Table --stored--> JSON in the trace's metadata
//! ```
//!
//! A trace holds return addresses (`codeptr_ra`); the call before an address is what is named, so one byte less is
//! looked up. Where that call is of a function of the program's own, the function ended by a jump to the runtime. The
//! construct lies somewhere in what is called there (`callee`). Addresses of TR2 are one more than the start of an
//! outlined function; the construct is named that it was made of. Modules come and go at one address, so a name
//! belongs to a *module instance* ([`Instance`]). That is file, build and load address.
//!
//! **A line is right or it is not given.** A file is used only where its build id, or else its size and its time of
//! modification, are those that the tracer saw. Files that could not be used are reported as a [`Problem`].
//!
//! GCC gives the calls that it makes of directives the line of an earlier statement. Where the source file is older
//! than the module, it shows the directive's own (`files/source.rs`); else the place is *near* that line, and says
//! so.
//!
//! **One file has one name.** Debug information has a header by as many paths as there are ways to include it
//! (`a/../inc.h`, `./inc.h`); the table has it by one ([`normalised`]). Files of one name in several directories are
//! shown with as many directories as distinguish them ([`FileNames`]).
//!
//! The names can be stored in the trace ([`Table::to_json`]), which keeps them when it is copied to another machine,
//! or when the program is rebuilt.
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
pub use options::{Kept, Options};
pub use stored::KEY;
pub use table::{Caller, Quality, Symbol, Table};

/// Names all code addresses of a trace from the files of this machine: each address once, modules in parallel.
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
    /// The names that the trace brought along. Where it has none, or directories with debug files are given, also those
    /// that the files of this machine give.
    pub fn of(reader: &Reader, options: &Options) -> Table {
        match Table::from_metadata(reader.metadata()) {
            Some(table) if options.debug_dirs.is_empty() => table,
            _ => Table::renewed(reader, options),
        }
    }

    /// The names that the trace brought along; none where it has none.
    pub fn stored(reader: &Reader) -> Table {
        Table::from_metadata(reader.metadata()).unwrap_or_default()
    }

    /// The names that the trace brought along, and those that the files of this machine give.
    pub fn renewed(reader: &Reader, options: &Options) -> Table {
        let mut table = Table::stored(reader);
        table.update(resolve(reader, options));
        table
    }
}

/// The modules that hold code addresses, each with the path of its file, and the addresses of stacks in none of them.
fn collected(reader: &Reader) -> (Vec<ModuleCode>, Vec<u64>) {
    // The loader knows a library by the path that `dlopen` was given.
    let process = reader.metadata().process.as_ref();
    let directory = Path::new(process.map_or("", |process| &process.directory));
    let mut collected = collect::code(reader);
    for module in &mut collected.modules {
        module.path = directory.join(&module.path);
    }
    (collected.modules, collected.in_no_module)
}

/// The modules of the program whose code has no names, and why. Where the trace brings names along, it says which;
/// else those whose files are not there.
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
    // Of libraries that the program only calls, such as the C library, nobody expects source lines.
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
