//! Determines which function the call before a return address calls, and whether a memory fence precedes an address.
//!
//! A runtime reports the return address that it finds on its caller's stack. If the program's last call in a function
//! was compiled to a jump (a tail call), this is the return address of that function: the code before it calls that
//! function instead of the runtime, and the construct is somewhere in the called function.
//!
//! GCC generates a fence for a flush. A signal that arrives during a fence is delivered after it.

use std::collections::HashMap;

use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionKind,
};

use crate::files::elf::TextSymbol;
use crate::names::runtime;

/// The code of a module, and the names of its imported functions.
#[derive(Default)]
pub(crate) struct Calls<'d> {
    /// Sections of code: address and bytes.
    sections: Vec<(u64, &'d [u8])>,
    /// Imported functions, by the address of the pointer that the loader fills in.
    imports: HashMap<u64, &'d str>,
}

/// `call *disp(%rip)`, `jmp *disp(%rip)`.
const CALL_BY_TABLE: [u8; 2] = [0xff, 0x15];
const JUMP_BY_TABLE: [u8; 2] = [0xff, 0x25];
/// `call rel`.
const CALL: u8 = 0xe8;
/// Instructions that may precede the jump in an entry of the linkage table: `endbr64`, `bnd`.
const BEFORE_JUMP: [&[u8]; 2] = [&[0xf3, 0x0f, 0x1e, 0xfa], &[0xf2]];

/// Memory fences: `mfence`, `lock orl $0,(%rsp)`, `lock orq $0,(%rsp)`, and the latter two with a one-byte offset (0
/// here).
const FENCES: [&[u8]; 5] = [
    &[0x0f, 0xae, 0xf0],
    &[0xf0, 0x83, 0x0c, 0x24, 0x00],
    &[0xf0, 0x48, 0x83, 0x0c, 0x24, 0x00],
    &[0xf0, 0x83, 0x4c, 0x24, 0x00, 0x00],
    &[0xf0, 0x48, 0x83, 0x4c, 0x24, 0x00, 0x00],
];

impl<'d> Calls<'d> {
    /// The calls of `file`; empty if its CPU's instructions are not supported.
    pub(crate) fn of(file: &object::File<'d>) -> Calls<'d> {
        if file.architecture() != Architecture::X86_64 {
            return Calls::default();
        }
        let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
        let sections = code.filter_map(|section| Some((section.address(), section.data().ok()?)));
        let symbols = file.dynamic_symbol_table();
        let relocations = file.dynamic_relocations().into_iter().flatten();
        let import = |(address, relocation): (u64, object::Relocation)| match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = symbols.as_ref()?.symbol_by_index(index).ok()?;
                Some((address, symbol.name().ok()?))
            }
            _ => None,
        };
        Calls { sections: sections.collect(), imports: relocations.filter_map(import).collect() }
    }

    /// Whether the call that returns to `return_address` certainly calls a function of the program.
    pub(crate) fn calls_program(&self, return_address: u64, symbols: &[TextSymbol<'_>]) -> bool {
        let is_runtimes = |name: &str| {
            runtime::is_runtime_function(name) || name.starts_with("omp") || name.starts_with("kmp")
        };
        match self.callee(return_address) {
            Some(Callee::Imported(name)) => !is_runtimes(name),
            Some(Callee::At(address)) => {
                let first = symbols.partition_point(|symbol| symbol.start < address);
                let there = symbols[first..].iter();
                let mut there = there.take_while(|symbol| symbol.start == address).peekable();
                there.peek().is_some() && !there.any(|symbol| is_runtimes(symbol.name))
            }
            None => false,
        }
    }

    /// Whether the call that returns to `return_address` launches the kernel of a target construct, in code from LLVM's
    /// compilers.
    pub(crate) fn launches_kernel(&self, return_address: u64, symbols: &[TextSymbol<'_>]) -> bool {
        let is_launch =
            |name: &str| name.starts_with("__tgt_target") && !name.starts_with("__tgt_target_data");
        match self.callee(return_address) {
            Some(Callee::Imported(name)) => is_launch(name),
            Some(Callee::At(address)) => {
                let first = symbols.partition_point(|symbol| symbol.start < address);
                let there = symbols[first..].iter();
                let mut there = there.take_while(|symbol| symbol.start == address);
                there.any(|symbol| is_launch(symbol.name))
            }
            None => false,
        }
    }

    /// Whether the instruction before `address` is a memory fence.
    pub(crate) fn is_behind_fence(&self, address: u64) -> bool {
        FENCES.iter().any(|fence| {
            let begin = address.checked_sub(fence.len() as u64);
            let code = begin.and_then(|begin| self.bytes(begin));
            let Some(code) = code.and_then(|code| code.get(..fence.len())) else {
                return false;
            };
            let has_offset = fence.contains(&0x4c);
            let mut bytes = code.iter().zip(*fence).enumerate();
            bytes.all(|(at, (byte, fence))| byte == fence || (has_offset && at + 2 == code.len()))
        })
    }

    fn callee(&self, return_address: u64) -> Option<Callee<'d>> {
        let before = |bytes: u64| self.bytes(return_address.checked_sub(bytes)?);
        if before(6).is_some_and(|bytes| bytes.starts_with(&CALL_BY_TABLE)) {
            let entry = offset_by(return_address, before(4)?)?;
            return Some(Callee::Imported(self.imports.get(&entry)?));
        }
        if before(5)?.first() != Some(&CALL) {
            return None;
        }
        let address = offset_by(return_address, before(4)?)?;
        Some(match self.imported_by_entry(address) {
            Some(name) => Callee::Imported(name),
            None => Callee::At(address),
        })
    }

    /// The function to which an entry of the linkage table jumps.
    fn imported_by_entry(&self, address: u64) -> Option<&'d str> {
        let mut code = self.bytes(address)?;
        let length = code.len();
        for prefix in BEFORE_JUMP {
            code = code.strip_prefix(prefix).unwrap_or(code);
        }
        let operand = code.strip_prefix(&JUMP_BY_TABLE)?;
        let after = address.checked_add((length - operand.len() + 4) as u64)?;
        self.imports.get(&offset_by(after, operand)?).copied()
    }

    /// The code bytes from `address` on.
    fn bytes(&self, address: u64) -> Option<&'d [u8]> {
        let mut sections = self.sections.iter();
        sections.find_map(|(start, bytes)| {
            let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(offset..).filter(|bytes| !bytes.is_empty())
        })
    }
}

/// The target of a call.
enum Callee<'d> {
    /// A function of another module.
    Imported(&'d str),
    /// The code at this address of the module.
    At(u64),
}

/// `address` plus the signed 32-bit number at the start of `bytes`.
fn offset_by(address: u64, bytes: &[u8]) -> Option<u64> {
    let offset = i32::from_le_bytes(*bytes.first_chunk()?);
    Some(address.wrapping_add_signed(offset.into()))
}
