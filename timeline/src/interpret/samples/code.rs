//! Resolves the code addresses of stacks.

use std::iter;

use omptrace_symbols::fast_map::FastMap;
use omptrace_symbols::{is_openmp_runtime, without_parameters};
use omptrace_trace_format::field::Address;

use crate::interpret::item_emitter::Stage;
use crate::model::{FunctionKind, RuntimeActivity, StackFrame};

/// The code at an address of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub(super) frame: StackFrame,
    /// The start of the function that contains the code, if known; otherwise the address itself.
    pub(super) begin: u64,
    pub(super) belongs_to: BelongsTo,
    /// The activity of a runtime function, if its name shows it; or a flush that the compiler has inlined into the
    /// program.
    pub(super) does: Option<RuntimeActivity>,
}

/// The owner of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BelongsTo {
    Program,
    /// The OpenMP runtime, or this tracer, which the runtime calls.
    Runtime,
    /// The C library, or start-up code added by the linker. On the outside of `main` or of a thread's function, such
    /// code is their caller.
    Libc,
}

/// The addresses resolved so far, until a module is loaded or unloaded. Each is that of a function, and of the
/// functions inlined into it.
#[derive(Default)]
pub(super) struct Codes {
    by_address: FastMap<u64, Vec<Code>>,
    /// The generation of the module list when the addresses were resolved.
    generation: u64,
}

impl Codes {
    /// The code at `address`, which is a return address or just after the code itself: at least one entry, innermost
    /// first.
    pub(super) fn of(&mut self, stage: &mut Stage<'_>, address: u64) -> &[Code] {
        if self.generation != stage.names.generation() {
            self.generation = stage.names.generation();
            self.by_address.clear();
        }
        let known = self.by_address.entry(address);
        known.or_insert_with(|| look_up(stage, address))
    }
}

fn look_up(stage: &mut Stage<'_>, address: u64) -> Vec<Code> {
    let symbol = stage.names.symbol(Address(address));
    let Some(symbol) = symbol else {
        // Code that the program generates at run time has no module. Without a perf map, a function per address would
        // be of no use.
        let function = stage.names.function_made(Address(address));
        let function = function.unwrap_or("[unknown]").to_owned();
        return vec![Code {
            frame: stage.marker(&function, FunctionKind::Code),
            begin: address,
            belongs_to: BelongsTo::Program,
            does: None,
        }];
    };
    let library = symbol.module.rsplit('/').next().unwrap_or_default();
    let belongs_to = if symbol.in_runtime || is_openmp_runtime(library) || is_ours(library) {
        BelongsTo::Runtime
    } else if is_libc(library) || symbol.function.is_some_and(is_start_of_program) {
        BelongsTo::Libc
    } else {
        BelongsTo::Program
    };
    let flush = symbol.is_behind_fence.then_some(RuntimeActivity::Flush);
    let name = |function: Option<&str>| match function {
        Some(function) => without_parameters(function).to_owned(),
        None => format!("{library}+{:#x}", symbol.begin()),
    };
    let innermost = (name(symbol.function), symbol.file.map(str::to_owned), symbol.line);
    let callers = symbol.callers.iter().map(|caller| {
        let (file, line) = caller.source.clone().unzip();
        (name(caller.function.as_deref()), file, line)
    });
    let functions: Vec<_> = iter::once(innermost).chain(callers).collect();
    let module = symbol.module.clone().into_owned();
    let begin = address.wrapping_sub(symbol.function_offset.unwrap_or(0));
    let functions = functions.into_iter().map(|(name, file, line)| {
        let does = match belongs_to {
            BelongsTo::Runtime => activity(&name),
            _ => flush,
        };
        let function = stage.function(name, module.clone(), file, FunctionKind::Code);
        Code { frame: StackFrame { function, line }, begin, belongs_to, does }
    });
    functions.collect()
}

/// The activity of a runtime function for which no event is recorded. Fortran variants have an underscore appended. The
/// adapter's functions are the bodies of libgomp's functions.
fn activity(function: &str) -> Option<RuntimeActivity> {
    let of_adapter = function.strip_suffix("::body");
    let of_adapter = of_adapter.and_then(|path| path.rsplit("::").next());
    match of_adapter.unwrap_or(function).trim_end_matches('_') {
        "__kmpc_flush" => Some(RuntimeActivity::Flush),
        "omp_test_lock" | "omp_test_nest_lock" => Some(RuntimeActivity::LockTest),
        _ => None,
    }
}

/// Whether a library is a part of this tool, which runs when the runtime calls it.
fn is_ours(library: &str) -> bool {
    ["libomptrace.so", "libomptgomp.so", "libomptrace_waits.so", "libomptmpi"]
        .iter()
        .any(|name| library.starts_with(name))
}

fn is_libc(library: &str) -> bool {
    ["libc.so", "libc-2.", "libpthread", "ld-linux", "ld-musl"].iter().any(|name| library.starts_with(name))
}

/// Functions that the linker adds as callers of `main`, and those of a statically linked C library.
fn is_start_of_program(function: &str) -> bool {
    let names = ["_start", "start_thread", "clone", "clone3", "__clone", "__clone3"];
    names.contains(&function) || function.starts_with("__libc_start_")
}
