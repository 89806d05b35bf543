//! The names of a trace's code addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use omptrace_trace_format::event::Module;
use omptrace_trace_format::field::Address;

use crate::files::loaded_module::{Instance, file_name};
use crate::files::vdso;
use crate::names::function::without_parameters;
use crate::names::missing_names::Problem;
use crate::names::source_paths::{FileNames, normalised};

/// The names of a trace's code addresses, by module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    modules: Vec<ModuleSymbols>,
    /// By the address of the call, functions that the program made while it ran.
    made: BTreeMap<u64, String>,
    /// The names of the source files for people.
    file_names: FileNames,
}

/// The names of one module's addresses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModuleSymbols {
    pub(super) instance: Instance,
    /// It is an OpenMP runtime.
    pub(super) is_runtime: bool,
    pub(super) problem: Option<Problem>,
    /// By [`Place::offset`].
    pub(super) places: Vec<Place>,
    /// Those of its source files.
    pub(super) checksums: Checksums,
}

/// MD5 checksums of source files in hex, by path: what the compiler read.
pub(super) type Checksums = BTreeMap<String, String>;

/// The facts about one address of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The address as the module's file has it; that of the call, which is one less than the return address.
    pub(super) offset: u64,
    pub(super) function: Option<String>,
    /// Where the function begins, where the symbol table says; of code in no symbol's, where the unwind information does.
    pub(super) function_start: Option<u64>,
    pub(super) source: Option<(String, u32)>,
    /// The function is a runtime's, linked into the program.
    pub(super) in_runtime: bool,
    /// The call is of a function of the program's, which ended by a jump to the runtime.
    pub(super) is_around: bool,
    /// The line is that of a statement near the construct: its own is not known.
    pub(super) is_near: bool,
    /// The instruction before the code is a memory fence.
    pub(super) is_behind_fence: bool,
    /// The functions that `function` is inlined into, from the innermost.
    pub(super) callers: Vec<Caller>,
}

/// The most functions that one is inlined into. Stops names of a trace that make each frame of a stack thousands.
pub(super) const MAX_CALLERS: usize = 64;

/// A function that another is inlined into, and the line of that call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The function, as [`Symbol::function`] names it.
    pub function: Option<String>,
    /// Source file and line of the call.
    pub source: Option<(String, u32)>,
}

/// How much is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// Only the module.
    Module,
    /// The function.
    Function,
    /// The source line.
    Line,
}

/// The name of a code address. Displays as `jacobi.c:41`, else `main+0x2f`, which leaves parameters out, or
/// `main (jacobi+0x1234)` where a construct begins there that GCC made a function of, else `jacobi+0x1234`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol<'t> {
    /// The function, as the programmer wrote it. Code that the compiler moved to a function of its own (the body of a
    /// parallel region) has the function that contains it. Inlined code has the inlined function.
    pub function: Option<&'t str>,
    /// The source file, with its directory where the debug information has it.
    pub file: Option<&'t str>,
    /// The file's name for people: without its directories, but for those that distinguish it from others of the trace.
    pub file_name: Option<&'t str>,
    /// The line in the source file, from 1.
    pub line: Option<u32>,
    /// The module's path.
    pub module: Cow<'t, str>,
    /// The return address as the module's file has it: what `objdump` shows.
    pub offset: u64,
    /// The return address's distance from its function's start, where the symbol table says, or the unwind information.
    pub function_offset: Option<u64>,
    /// The address is in the OpenMP runtime: the enclosing construct's shows where the program is.
    pub in_runtime: bool,
    /// The construct lies somewhere in a function that is called here: its own line is not known.
    pub is_around: bool,
    /// The line may be that of an earlier statement: GCC gives calls that it makes of directives no line of their own.
    pub is_near: bool,
    /// The instruction before the code is a memory fence: GCC puts it in the place of a flush.
    pub is_behind_fence: bool,
    /// The functions that `function` is inlined into, from the innermost; the last is the one that the symbol table has.
    pub callers: &'t [Caller],
}

impl Symbol<'_> {
    /// The function's start as the module's file has it, where that is known; else the address itself.
    pub fn begin(&self) -> u64 {
        self.offset.wrapping_sub(self.function_offset.unwrap_or(0))
    }

    /// The module and the address in its file: `jacobi+0x1234`.
    pub fn code(&self) -> String {
        format!("{}+{:#x}", file_name(&self.module), self.offset)
    }

    /// Whether function and line do not tell the construct from others: the line is that of a statement before it, or
    /// there is none and the address is that of a function that GCC made of it. No call returns to the second byte of
    /// a function.
    pub fn needs_code(&self) -> bool {
        self.is_near || self.line.is_none() && self.function_offset == Some(1)
    }

    /// How much is known of the address.
    pub fn quality(&self) -> Quality {
        match (self.line, self.function) {
            (Some(_), _) => Quality::Line,
            (None, Some(_)) => Quality::Function,
            (None, None) => Quality::Module,
        }
    }
}

impl fmt::Display for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file_name, self.line, self.function, self.function_offset) {
            (Some(file), Some(line), ..) => write!(f, "{file}:{line}"),
            // All functions that GCC made of one begin there.
            (_, _, Some(function), Some(1)) => {
                write!(f, "{} ({})", without_parameters(function), self.code())
            }
            (_, _, Some(function), offset) => {
                f.write_str(without_parameters(function))?;
                offset.map_or(Ok(()), |offset| write!(f, "+{offset:#x}"))
            }
            _ => f.write_str(&self.code()),
        }
    }
}

impl Place {
    fn quality(&self) -> Quality {
        match (&self.source, &self.function) {
            (Some(_), _) => Quality::Line,
            (None, Some(_)) => Quality::Function,
            (None, None) => Quality::Module,
        }
    }
}

impl Place {
    /// What is known, and whether it is the construct's own: the source that said so may be gone.
    fn exactness(&self) -> (Quality, bool) {
        (self.quality(), !self.is_near)
    }
}

impl ModuleSymbols {
    pub(super) fn new(instance: Instance, is_runtime: bool) -> ModuleSymbols {
        ModuleSymbols { instance, is_runtime, problem: None, places: Vec::new(), checksums: Checksums::new() }
    }

    fn place(&self, offset: u64) -> Option<&Place> {
        let index = self.places.binary_search_by_key(&offset, |place| place.offset);
        self.places.get(index.ok()?)
    }

    /// The best that is known of any address.
    fn quality(&self) -> Option<Quality> {
        self.places.iter().map(Place::quality).max()
    }

    /// Takes in what `newer` knows as well or better.
    fn update(&mut self, newer: ModuleSymbols) {
        if newer.quality() >= self.quality() {
            self.problem = newer.problem;
        }
        self.checksums.extend(newer.checksums);
        for place in newer.places {
            match self.places.binary_search_by_key(&place.offset, |old| old.offset) {
                Ok(index) if place.exactness() >= self.places[index].exactness() => {
                    self.places[index] = place;
                }
                Ok(_) => {}
                Err(index) => self.places.insert(index, place),
            }
        }
    }
}

impl Table {
    pub(super) fn new(mut modules: Vec<ModuleSymbols>, made: BTreeMap<u64, String>) -> Table {
        modules.sort_by(|a, b| a.instance.cmp(&b.instance));
        modules.dedup_by(|a, b| a.instance == b.instance);
        for module in &mut modules {
            module.places.sort_by_key(|place| place.offset);
            let checksums = std::mem::take(&mut module.checksums).into_iter();
            module.checksums = checksums.map(|(file, md5)| (normalised(&file), md5)).collect();
            for place in &mut module.places {
                let callers = place.callers.iter_mut();
                let sources = callers.filter_map(|caller| caller.source.as_mut());
                for (file, _) in sources.chain(&mut place.source) {
                    *file = normalised(file);
                }
            }
        }
        let mut table = Table { modules, made, file_names: FileNames::default() };
        table.name_files();
        table
    }

    fn name_files(&mut self) {
        let places = self.modules.iter().flat_map(|module| &module.places);
        let files = places.filter_map(|place| Some(&*place.source.as_ref()?.0));
        self.file_names = FileNames::of(files);
    }

    pub(super) fn made(&self) -> &BTreeMap<u64, String> {
        &self.made
    }

    /// The function that the program made while it ran, and that is called before the return address `codeptr_ra`, which is in no
    /// module.
    pub fn function_made(&self, codeptr_ra: Address) -> Option<&str> {
        let name = self.made.get(&codeptr_ra.0.wrapping_sub(1));
        name.map(String::as_str)
    }

    pub(super) fn modules(&self) -> &[ModuleSymbols] {
        &self.modules
    }

    fn find(&self, instance: &Instance) -> Result<usize, usize> {
        self.modules.binary_search_by(|module| module.instance.cmp(instance))
    }

    /// Takes in what `newer` knows as well or better: names that a trace brought along stay where the files are gone.
    pub fn update(&mut self, newer: Table) {
        self.made.extend(newer.made);
        for module in newer.modules {
            match self.find(&module.instance) {
                Ok(index) => self.modules[index].update(module),
                Err(index) => self.modules.insert(index, module),
            }
        }
        self.name_files();
    }

    /// The name of the return address `codeptr_ra`, which lies in `module`. Where the table does not have it, that is
    /// module and offset.
    pub fn lookup<'t>(&'t self, module: &'t Module<'_>, codeptr_ra: Address) -> Symbol<'t> {
        let offset = codeptr_ra.0.wrapping_sub(module.load_address.0);
        let known = self.find(&Instance::of(module)).ok();
        let known = known.map(|index| &self.modules[index]);
        let place = known.and_then(|module| module.place(offset.wrapping_sub(1)));
        let source = place.and_then(|place| place.source.as_ref());
        Symbol {
            function: place.and_then(|place| place.function.as_deref()),
            file: source.map(|(file, _)| file.as_str()),
            file_name: source.map(|(file, _)| self.file_names.name(file)),
            line: source.map(|(_, line)| *line),
            module: match module.path.lossy() {
                path if vdso::name(&path).is_some() => file_name(&path).to_owned().into(),
                path => path,
            },
            offset,
            function_offset: place
                .and_then(|place| place.function_start)
                .map(|start| offset.wrapping_sub(start)),
            in_runtime: known.is_some_and(|module| module.is_runtime)
                || place.is_some_and(|place| place.in_runtime),
            is_around: place.is_some_and(|place| place.is_around),
            is_near: place.is_some_and(|place| place.is_near),
            is_behind_fence: place.is_some_and(|place| place.is_behind_fence),
            callers: place.map_or(&[], |place| &place.callers),
        }
    }

    /// The MD5 checksums, in hex, that the source file at this path had when modules were compiled, where compilers leave them.
    pub fn checksums<'t>(&'t self, file: &'t str) -> impl Iterator<Item = &'t str> {
        self.modules.iter().filter_map(|module| module.checksums.get(file).map(String::as_str))
    }

    /// The modules of the program whose code has no names at all, and why.
    pub fn nameless(&self) -> Vec<(String, Problem)> {
        let modules = self.modules.iter();
        let nameless = modules.filter(|module| module.places.is_empty() && !module.is_runtime);
        nameless.filter_map(|module| Some((module.instance.path.clone(), module.problem?))).collect()
    }

    /// The modules whose addresses have no source lines, and why; not those of OpenMP runtimes, whose addresses are not
    /// shown.
    pub fn problems(&self) -> impl Iterator<Item = (&Instance, Problem)> {
        self.modules
            .iter()
            .filter(|module| !module.is_runtime)
            .filter_map(|module| Some((&module.instance, module.problem?)))
    }

    /// The modules that hold addresses, those of OpenMP runtimes too.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.modules.iter().map(|module| &module.instance)
    }

    /// How many addresses are named, of each quality: by module only, by function, by line. Those in OpenMP runtimes do
    /// not count.
    pub fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        let modules = self.modules.iter().filter(|module| !module.is_runtime);
        let places = modules.flat_map(|module| &module.places);
        places.for_each(|place| counts[place.quality() as usize] += 1);
        counts
    }
}
