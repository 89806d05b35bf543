//! Resolves a module's addresses to places, from its files.

use std::collections::{BTreeMap, BTreeSet};

use addr2line::Context;
use addr2line::gimli::{self, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSymbol};

use crate::directive::Directive;
use crate::files::Files;
use crate::files::call_site::Calls;
use crate::files::dwarf_functions::Functions;
use crate::files::elf::{Slice, TextSymbol, sections, text_symbols};
use crate::files::source::Sources;
use crate::files::unwind;
use crate::names::function::{Function, function, is_of_rust, kernel};
use crate::names::runtime;
use crate::table::{Caller, Checksums, MAX_CALLERS, Place};

/// The usual maximum number of lines of a directive, including the lines between the directive and its loop.
const MAX_DIRECTIVE_LINES: u32 = 3;

/// The meaning of a trace's code addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Calls of the OpenMP runtime.
    Calls,
    /// The starts of functions into which compilers turned constructs: the only addresses in TR2.
    OutlinedFunctions,
}

/// The places of `offsets` according to `files`, and the checksums of the source files. `offsets`: addresses of `code`
/// in the module's file, each with the directive for which the runtime is called.
pub(crate) fn places(
    files: &Files,
    code: Code,
    offsets: &[(u64, Option<Directive>)],
    sources: Sources,
) -> (Vec<Place>, Checksums) {
    let module = parse(&files.module);
    let debug = parse(&files.debug);
    let supplementary = parse(&files.supplementary);

    let symbols = [&debug, &module]
        .into_iter()
        .flatten()
        .map(text_symbols)
        .find(|symbols| !symbols.is_empty())
        .unwrap_or_default();
    let with_dwarf = debug.as_ref().or(module.as_ref());
    let endian = match with_dwarf.is_none_or(|file| file.is_little_endian()) {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let debug_sections = with_dwarf.map(sections).unwrap_or_default();
    let supplementary = supplementary.as_ref().map(sections);
    let dwarf =
        debug_sections.borrow_with_sup(supplementary.as_ref(), |section| EndianSlice::new(section, endian));
    let mut image = Image {
        symbols,
        context: Context::from_dwarf(dwarf).ok(),
        functions: Functions::default(),
        code,
        calls: module.as_ref().map(Calls::of).unwrap_or_default(),
        kernels: [&debug, &module].into_iter().flatten().flat_map(kernels).collect(),
        line_tables: BTreeMap::new(),
        sources,
    };
    let places = offsets.iter().map(|(offset, directive)| image.place(*offset, *directive));
    let mut places: Vec<Place> = places.collect();
    if let Some(module) = &module
        && places.iter().any(is_nameless)
    {
        let functions = unwind::functions(module);
        let nameless = places.iter_mut().filter(|place| is_nameless(place));
        nameless.for_each(|place| place.function_start = unwind::begin(&functions, place.offset));
    }
    let checksums = image.checksums(&places);
    (places, checksums)
}

/// Whether no symbol contains the place.
fn is_nameless(place: &Place) -> bool {
    place.function.is_none() && place.function_start.is_none()
}

fn parse(bytes: &Option<Vec<u8>>) -> Option<object::File<'_>> {
    object::File::parse(bytes.as_deref()?).ok()
}

/// Function and line of each target construct for which the program contains a kernel.
fn kernels(file: &object::File<'_>) -> Vec<(String, u32)> {
    let kernels = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?;
        // Symbols of the kernel's data contain additional text: `.__omp_offloading_1_2_main_l4.region_id`.
        kernel(&name[name.find("__omp_offloading_")?..])
    });
    kernels.collect()
}

/// A module's parsed files.
struct Image<'d> {
    symbols: Vec<TextSymbol<'d>>,
    context: Option<Context<Slice<'d>>>,
    functions: Functions,
    code: Code,
    calls: Calls<'d>,
    kernels: BTreeSet<(String, u32)>,
    /// By offset of the line program.
    line_tables: BTreeMap<usize, LineTable>,
    sources: Sources,
}

/// The contents of a line table that are needed for GCC's code.
#[derive(Default)]
struct LineTable {
    /// The first lines of the functions into which GCC turned constructs, by address.
    directives: BTreeMap<u64, Option<(String, u32)>>,
    /// All lines, by file.
    lines: BTreeMap<String, BTreeSet<u32>>,
}

/// A function at an address, possibly inlined: its linkage name, and the line there.
type CodeFrame = (Option<String>, Option<(String, u32)>);

impl<'d> Image<'d> {
    fn place(&mut self, offset: u64, directive: Option<Directive>) -> Place {
        let symbol = self.symbol(offset);
        let symbol_name = symbol.map(|symbol| symbol.name.to_owned());
        let is_outlined_by_gcc = self.begins_construct_of_gcc(offset);
        let mut place = Place {
            offset,
            function_start: symbol.map(|symbol| symbol.start),
            in_runtime: symbol_name.as_deref().is_some_and(runtime::is_runtime_function),
            is_around: self.code == Code::Calls
                && !is_outlined_by_gcc
                && self.calls.calls_program(offset.wrapping_add(1), &self.symbols),
            is_behind_fence: self.code == Code::Calls && self.calls.is_behind_fence(offset),
            ..Place::default()
        };
        let of_gcc = directive.filter(|_| !place.is_around && self.is_in_code_of_gcc(offset));
        let mut frames = match (self.code, of_gcc) {
            _ if is_outlined_by_gcc => vec![self.first_line(offset)],
            (Code::Calls, Some(directive)) => {
                let (frames, is_near) = self.frames_of_gcc(offset, directive);
                place.is_near = is_near;
                frames
            }
            (Code::Calls, None) if directive == Some(Directive::Loop) => {
                let (frames, is_near) = self.frames_of_loop(offset);
                place.is_near = is_near;
                frames
            }
            (Code::Calls, None) => self.frames_at_call(offset),
            (Code::OutlinedFunctions, _) => vec![self.construct_line(offset)],
        };
        // If Rust's debug information contains only lines, its names have no paths.
        let of_rust = symbol_name.as_deref().filter(|name| is_of_rust(name));
        if let (Some((name, _)), Some(symbol)) = (frames.last_mut(), of_rust) {
            *name = Some(symbol.to_owned());
        }
        let mut frames = frames.into_iter();
        let (linkage_name, source) = frames.next().unwrap_or_default();
        place.source = source;
        place.function = match linkage_name.or(symbol_name) {
            Some(name) => self.function(offset, &name, place.source.as_ref()),
            None => None,
        };
        if place.source.is_none()
            && let Some(function) = &place.function
        {
            place.source = self.target_construct(offset, function);
        }
        for (linkage_name, source) in frames.take(MAX_CALLERS) {
            let function = linkage_name.and_then(|name| self.function(offset, &name, source.as_ref()));
            place.callers.push(Caller { function, source });
        }
        place
    }

    /// The line of the target construct in `function` whose kernel is launched at `offset`. Clang up to 19 gives this
    /// call no line, but the kernel's name contains the construct's line. If the function contains several target
    /// constructs, it is the one between the lines of the code around.
    fn target_construct(&self, offset: u64, function: &str) -> Option<(String, u32)> {
        let of_function = self.kernels.iter().filter(|(of, _)| of == function);
        let lines: Vec<u32> = of_function.map(|(_, line)| *line).collect();
        let return_address = offset.wrapping_add(1);
        if lines.is_empty() || !self.calls.launches_kernel(return_address, &self.symbols) {
            return None;
        }
        let symbol = self.symbol(offset)?;
        let context = self.context.as_ref()?;
        let rows = context.find_location_range(symbol.start, symbol.end).ok()?;
        let rows = rows
            .filter_map(|(address, _, row)| Some((address, row.file?, row.line.filter(|line| *line != 0)?)));
        let mut rows: Vec<(u64, &str, u32)> = rows.collect();
        // A function starts in its own file; inlined code from other files comes after that.
        let file = rows.first()?.1;
        rows.retain(|(_, of, _)| *of == file);
        let line = match lines[..] {
            [line] => line,
            _ => {
                let after = rows.partition_point(|(address, ..)| *address <= offset);
                let (before, after) = (rows[..after].last()?.2, rows.get(after)?.2);
                let is_between = |line: &u32| (before.min(after)..=before.max(after)).contains(line);
                let mut between = lines.into_iter().filter(is_between);
                between.next().filter(|_| between.next().is_none())?
            }
        };
        Some((file.to_owned(), line))
    }

    /// The symbol that contains `offset`.
    fn symbol(&self, offset: u64) -> Option<&TextSymbol<'_>> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= offset);
        let symbol = self.symbols[..after].last()?;
        (offset < symbol.end).then_some(symbol)
    }

    /// The functions at `offset`, innermost first. Calls added by compilers have no line of their own (line 0); the
    /// lines of the functions around then belong to other calls, possibly in other files.
    fn frames_at_call(&self, offset: u64) -> Vec<CodeFrame> {
        let mut frames = self.frames(offset);
        // Clang inlines the function of a construct into another generated function, and may give the line only to that
        // one.
        frames.dedup_by(|outer, inner| {
            let are_one = is_of_clang(outer) && is_of_clang(inner);
            if are_one && inner.1.is_none() {
                inner.1 = outer.1.take();
            }
            are_one
        });
        frames
    }

    /// Like [`Image::frames_at_call`], for the call of a loop. If the loop is combined with its region
    /// (`parallel for`), Clang gives the call the line of the `for` statement, otherwise that of the directive. The
    /// source tells which; without it, the line is only near if the region is a few lines above.
    fn frames_of_loop(&mut self, offset: u64) -> (Vec<CodeFrame>, bool) {
        let region = self.frames(offset).into_iter().filter(is_of_clang).nth(1);
        let mut frames = self.frames_at_call(offset);
        let Some(frame) = frames.first_mut().filter(|frame| is_of_clang(frame)) else {
            return (frames, false);
        };
        let Some((file, line)) = &mut frame.1 else {
            return (frames, false);
        };
        if let Some(own) = self.sources.directive(file, Directive::Loop, *line, Some(*line)) {
            *line = own;
            return (frames, false);
        }
        let is_below = |(of, first): (String, u32)| {
            of == *file && (1..=MAX_DIRECTIVE_LINES).contains(&line.saturating_sub(first))
        };
        let is_near = region.and_then(|(_, source)| source).is_some_and(is_below);
        (frames, is_near)
    }

    /// Like [`Image::frames_at_call`], for a call that GCC generates for a directive and gives the place of an earlier
    /// statement, which may be in a previously inlined function. The source tells which of the functions contains the
    /// directive. If it does not, this is the function into which everything is inlined, and the line is only near that
    /// of the directive, which the second value says.
    fn frames_of_gcc(&mut self, offset: u64, directive: Directive) -> (Vec<CodeFrame>, bool) {
        let mut frames = self.frames(offset);
        // A combined directive may be in a function of its own, which contains nothing else of this kind.
        let start = self.symbol(offset).map(|symbol| symbol.start);
        let around = start.filter(|start| self.begins_construct_of_gcc(*start));
        if let Some((name, Some((file, line)))) = around.map(|start| self.first_line(start))
            && self.sources.is_combined(&file, line, directive)
        {
            return (vec![(name, Some((file, line)))], false);
        }
        if let Some((_, source)) = frames.last_mut() {
            *source = source.take().and_then(|source| self.in_function(offset, source));
        }
        for (index, (_, source)) in frames.iter().enumerate() {
            let Some((file, line)) = source else {
                continue;
            };
            let next = self.next_line(offset, file, *line);
            if let Some(own) = self.sources.directive(file, directive, *line, next) {
                frames.drain(..index);
                if let Some((_, Some((_, line)))) = frames.first_mut() {
                    *line = own;
                }
                return (frames, false);
            }
        }
        // For a region or task, the call has the place from which it was inlined; for other directives, the place of
        // any earlier statement.
        if !matches!(directive, Directive::Parallel | Directive::Taskloop | Directive::Task) {
            frames.drain(..frames.len().saturating_sub(1));
        }
        let has_line = frames.first().is_some_and(|(_, source)| source.is_some());
        (frames, has_line)
    }

    /// The place `source` of the call at `offset`, or of the last call before it, inside the function that contains the
    /// code. GCC may give a call the place of previously inlined code without marking it as such. No place of a
    /// function precedes its start.
    fn in_function(&mut self, offset: u64, source: (String, u32)) -> Option<(String, u32)> {
        let Some((start, end)) = self.symbol(offset).map(|symbol| (symbol.start, symbol.end)) else {
            return Some(source);
        };
        let of_construct = match self.begins_construct_of_gcc(start) {
            true => self.first_line(start).1,
            false => None,
        };
        let context = self.context.as_ref()?;
        let rows = context.find_location_range(start, end).ok()?;
        let mut rows = rows.filter_map(|(address, _, row)| Some((address, row.file?, row.line?))).peekable();
        let first = rows.peek().map(|(_, file, line)| ((*file).to_owned(), *line));
        let (file, begin) = of_construct.or(first)?;
        let is_own = |of: &str, line: u32| of == file && line >= begin;
        if is_own(&source.0, source.1) {
            return Some(source);
        }
        let before = rows.take_while(|(address, ..)| *address <= offset);
        let own = before.filter(|(_, of, line)| is_own(of, *line)).last().map(|(_, _, line)| line);
        Some((file, own.unwrap_or(begin)))
    }

    /// Whether GCC compiled the code at `offset`.
    fn is_in_code_of_gcc(&self, offset: u64) -> bool {
        let context = self.context.as_ref();
        let unit = context.and_then(|context| context.find_dwarf_and_unit(offset).skip_all_loads());
        let producer = unit.and_then(|unit| {
            let mut entries = unit.entries();
            let root = entries.next_dfs().ok().flatten()?;
            unit.attr_string(root.attr_value(gimli::DW_AT_producer)?).ok()
        });
        producer.is_some_and(|producer| producer.slice().starts_with(b"GNU "))
    }

    /// The first line after `line` for which the compilation unit contains code.
    fn next_line(&mut self, offset: u64, file: &str, line: u32) -> Option<u32> {
        let lines = self.line_table(offset)?.lines.get(file)?;
        lines.range(line.checked_add(1)?..).next().copied()
    }

    /// The outlined function that starts at `offset`, and the line of its construct. Inlined code has lines of its own,
    /// which are not the construct's first line.
    fn construct_line(&self, offset: u64) -> CodeFrame {
        let mut frames = self.frames(offset);
        let is_inlined = frames.len() > 1;
        let Some(frame) = frames.pop() else {
            return (None, None);
        };
        // Clang inlines the construct's code into a generated function, by a call with the construct's line. In other
        // compilers' functions, such a call may be the program's own, in any line of the construct.
        let is_line_of_construct = !is_inlined || is_of_clang(&frame);
        let (name, source) = frame;
        (name, source.filter(|_| is_line_of_construct))
    }

    /// Whether a function into which GCC turned a construct starts at `offset`.
    fn begins_construct_of_gcc(&self, offset: u64) -> bool {
        self.symbol(offset).is_some_and(|symbol| symbol.start == offset && is_of_gcc(symbol.name))
    }

    /// The function into which GCC turned a construct and that starts at `offset`, and the line of its directive. That
    /// line is the first row of the function in the line table. Further rows with the same address belong to the first
    /// code that is executed.
    fn first_line(&mut self, offset: u64) -> CodeFrame {
        let name = self.symbol(offset).map(|symbol| symbol.name.to_owned());
        let line = self.line_table(offset).and_then(|table| table.directives.get(&offset).cloned().flatten());
        let line = line.map(|(file, line)| {
            let line = self.sources.first_line(&file, line);
            (file, line)
        });
        (name, line)
    }

    /// The line table of the compilation unit that contains `offset`; read at the first call.
    fn line_table(&mut self, offset: u64) -> Option<&LineTable> {
        let (unit, program) = self.line_program(offset)?;
        let number = program.header().offset().0;
        if !self.line_tables.contains_key(&number) {
            let mut table = LineTable::default();
            let mut paths: BTreeMap<u64, Option<String>> = BTreeMap::new();
            let mut rows = program.clone().rows();
            while let Ok(Some((header, row))) = rows.next_row() {
                let path = paths.entry(row.file_index());
                let path = path.or_insert_with(|| path_of(unit, header, row.file(header)?));
                let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
                let source = path.as_ref().zip(line);
                if row.end_sequence() {
                    continue;
                }
                if self.begins_construct_of_gcc(row.address()) {
                    let source = source.map(|(path, line)| (path.clone(), line));
                    table.directives.entry(row.address()).or_insert(source);
                }
                if let Some((path, line)) = source {
                    match table.lines.get_mut(path) {
                        Some(lines) => _ = lines.insert(line),
                        None => _ = table.lines.insert(path.clone(), [line].into()),
                    }
                }
            }
            self.line_tables.insert(number, table);
        }
        self.line_tables.get(&number)
    }

    /// The functions at `offset`, innermost inlined function first.
    fn frames(&self, offset: u64) -> Vec<CodeFrame> {
        let mut all = Vec::new();
        let Some(context) = &self.context else {
            return all;
        };
        let Ok(mut frames) = context.find_frames(offset).skip_all_loads() else {
            return all;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref();
            let name = name.and_then(|name| Some(name.raw_name().ok()?.into_owned()));
            let location = frame.location.as_ref();
            let source = location.and_then(|location| {
                let line = location.line.filter(|line| *line != 0)?;
                Some((location.file?.to_owned(), line))
            });
            all.push((name, source));
        }
        all
    }

    /// The line program of the compilation unit that contains `offset`.
    fn line_program(
        &self,
        offset: u64,
    ) -> Option<(gimli::UnitRef<'_, Slice<'d>>, &gimli::IncompleteLineProgram<Slice<'d>>)> {
        let unit = self.context.as_ref()?.find_dwarf_and_unit(offset).skip_all_loads()?;
        Some((unit, unit.unit.line_program.as_ref()?))
    }

    /// The MD5 checksums of the places' source files, by path, if the compiler recorded them (DWARF 5, 6.2.4.1), as
    /// Clang does.
    fn checksums(&self, places: &[Place]) -> Checksums {
        let mut checksums = BTreeMap::new();
        let callers = places.iter().flat_map(|place| &place.callers);
        let sources = places.iter().map(|place| &place.source).chain(callers.map(|caller| &caller.source));
        let wanted: BTreeSet<&str> = sources.flatten().map(|(file, _)| file.as_str()).collect();
        let mut seen = BTreeSet::new();
        for place in places.iter().filter(|place| place.source.is_some()) {
            let Some((unit, program)) = self.line_program(place.offset) else {
                continue;
            };
            let header = program.header();
            if !header.file_has_md5() || !seen.insert(header.offset().0) {
                continue;
            }
            for file in header.file_names() {
                let path = path_of(unit, header, file).filter(|path| wanted.contains(path.as_str()));
                // A compiler that reads text which is not a file writes zeros.
                if let Some(path) = path.filter(|_| file.md5() != &[0; 16]) {
                    checksums
                        .entry(path)
                        .or_insert(file.md5().iter().map(|byte| format!("{byte:02x}")).collect());
                }
            }
        }
        checksums
    }

    /// The source name of the function with this linkage name.
    fn function(
        &mut self,
        offset: u64,
        linkage_name: &str,
        source: Option<&(String, u32)>,
    ) -> Option<String> {
        let read = function(linkage_name);
        let context = self.context.as_ref();
        let unit = context.and_then(|context| context.find_dwarf_and_unit(offset).skip_all_loads());
        match read {
            Function::Named(name) => {
                let written = unit.and_then(|unit| self.functions.written(unit, &name));
                Some(written.unwrap_or(name))
            }
            Function::MovedOut | Function::Lambda => {
                let (file, line) = source?;
                self.functions.around(unit?, file, *line)
            }
        }
    }
}

/// The path of a file in a line table, in addr2line's form.
fn path_of<'d>(
    unit: gimli::UnitRef<'_, Slice<'d>>,
    header: &gimli::LineProgramHeader<Slice<'d>>,
    file: &gimli::FileEntry<Slice<'d>>,
) -> Option<String> {
    let text = |value| Some(unit.attr_string(value).ok()?.to_string_lossy().into_owned());
    let directory = match file.directory_index() {
        0 => None,
        _ => Some(file.directory(header)?),
    };
    let mut path = unit.comp_dir.map_or(String::new(), |directory| directory.to_string_lossy().into_owned());
    for part in directory.into_iter().chain([file.path_name()]) {
        let part = text(part)?;
        if part.starts_with('/') {
            path = part;
            continue;
        }
        if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path += &part;
    }
    Some(path)
}

/// Whether GCC turned a construct into this function.
fn is_of_gcc(name: &str) -> bool {
    name.contains("._omp_fn.")
}

/// Whether Clang turned a construct into this function.
fn is_of_clang((name, _): &CodeFrame) -> bool {
    let name = name.as_deref().unwrap_or_default();
    name.contains("omp_outlined") || name.contains(".omp_task")
}

#[cfg(test)]
mod tests;
