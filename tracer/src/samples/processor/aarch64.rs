//! Samples on aarch64.
//!
//! A call stores its return address in a register (`x30`), which the called function saves if it makes calls itself.
//! There is no red zone. Return addresses may be signed: the bits above the address contain a code (pointer
//! authentication), which is stripped.
//!
//! framehop 0.16 has three faults here, all of them silent:
//!
//! * gimli must be told the vendor to know the instruction after which return addresses are signed. framehop does not
//!   tell it, and falls back to the frame pointer in each function with that instruction. [`plain`] removes these
//!   instructions from the copy, because unwinding a frame does not depend on them.
//! * For a frame found by the frame pointer (`x29`), which Clang uses in most functions, framehop expects the caller's
//!   frame pointer to be above it, and takes 0 for the end of the stack. In a caller without a frame pointer, `x29` has
//!   an arbitrary value.
//! * In the innermost frame, it assumes that the return address is in `x30` if it cannot evaluate the rule.
//!
//! So [`framehop_evaluates`] accepts only rows that are relative to the stack pointer.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use framehop::MustNotAllocateDuringUnwind;
use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use gimli::{
    AArch64, BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian,
    Register, RegisterRule, UnwindSection, UnwindTableRow, constants,
};

pub(in crate::samples) type Cache = CacheAarch64<MustNotAllocateDuringUnwind>;
pub(in crate::samples) type Unwinding = UnwinderAarch64<&'static [u8], MustNotAllocateDuringUnwind>;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// There is no red zone (AAPCS64, 6.4.5.1).
pub(in crate::samples) const RED_ZONE: u64 = 0;
/// A function that makes no call may leave the stack pointer unchanged.
pub(in crate::samples) const LEAF_HAS_NO_FRAME: bool = true;
/// Register numbers as in unwind information.
pub(in crate::samples) const RETURN_ADDRESS: Register = AArch64::X30;
pub(in crate::samples) const FRAME_POINTER: Register = AArch64::X29;
/// Where the return address is if unwind information does not mention it.
pub(in crate::samples) const UNSAVED_RETURN_ADDRESS: Option<Base> = Some(Base::LinkRegister);

/// A register that a rule may be relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::samples) enum Base {
    StackPointer,
    FramePointer,
    /// Known only for interrupted code: after a call, it has another value.
    LinkRegister,
}

/// The register with this number, if a rule may be relative to it.
pub(in crate::samples) fn base(register: Register) -> Option<Base> {
    match register {
        AArch64::SP => Some(Base::StackPointer),
        AArch64::X29 => Some(Base::FramePointer),
        _ => None,
    }
}

/// The known registers of a frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::samples) struct Registers {
    pub(in crate::samples) pc: u64,
    /// The other registers, in framehop's type.
    pub(in crate::samples) others: UnwindRegsAarch64,
}

impl Registers {
    /// The registers of the interrupted code.
    pub(in crate::samples) fn interrupted(context: &libc::ucontext_t) -> Registers {
        let machine = &context.uc_mcontext;
        Registers::new(machine.pc, machine.regs[LINK_REGISTER], machine.sp, machine.regs[FRAME_REGISTER])
    }

    /// The registers of the calling function.
    #[inline(always)]
    pub(in crate::samples) fn here() -> Registers {
        let (pc, link, stack_pointer, frame_pointer);
        // SAFETY: reads registers.
        unsafe {
            core::arch::asm!(
                "adr {}, .", "mov {}, x30", "mov {}, sp", "mov {}, x29",
                out(reg) pc, out(reg) link, out(reg) stack_pointer, out(reg) frame_pointer,
                options(nomem, nostack, preserves_flags)
            );
        }
        Registers::new(pc, link, stack_pointer, frame_pointer)
    }

    fn new(pc: u64, link: u64, stack_pointer: u64, frame_pointer: u64) -> Registers {
        let others =
            UnwindRegsAarch64::new_with_ptr_auth_mask(address_bits(), link, stack_pointer, frame_pointer);
        Registers { pc, others }
    }

    pub(in crate::samples) fn stack_pointer(&self) -> u64 {
        self.others.sp()
    }

    pub(in crate::samples) fn frame_pointer(&self) -> u64 {
        self.others.fp()
    }

    /// The register's value; `None` if unknown. `is_interrupted` means that the frame has made no call.
    pub(in crate::samples) fn get(
        &self,
        base: Base,
        _is_innermost: bool,
        is_interrupted: bool,
    ) -> Option<u64> {
        match base {
            Base::StackPointer => Some(self.others.sp()),
            Base::FramePointer => Some(self.others.fp()),
            Base::LinkRegister => is_interrupted.then(|| self.others.lr()),
        }
    }

    /// Changes the registers to those of the caller. Returns the address where the caller continues.
    pub(in crate::samples) fn become_callers(
        &mut self,
        frame_address: u64,
        return_address: u64,
        frame_pointer: u64,
    ) -> u64 {
        self.others.set_fp(frame_pointer);
        self.others.set_sp(frame_address);
        self.others.set_lr(return_address);
        self.others.lr()
    }
}

/// The mask of a return address's address bits. It depends on the kernel, so the CPU is queried: `xpaclri` strips
/// `x30`. Without pointer authentication, it does nothing.
#[inline(always)]
fn address_bits() -> PtrAuthMask {
    /// Bit 55 distinguishes the program's addresses from the kernel's. Higher bits are not part of a code address.
    const ALL: u64 = (1 << 55) - 1;
    let bits;
    // SAFETY: changes the register only.
    unsafe {
        core::arch::asm!("hint #7", inout("x30") ALL => bits, options(nomem, nostack, preserves_flags))
    };
    PtrAuthMask(bits)
}

/// Indices in `mcontext_t::regs`.
const FRAME_REGISTER: usize = 29;
const LINK_REGISTER: usize = 30;

/// The instructions to which a signal handler returns: `mov x8, #139` (rt_sigreturn) and `svc #0`. Debuggers and libgcc
/// recognize them, too. The kernel provides no unwind information for them.
const SIGNAL_RETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// The address of these instructions; 0 if unknown.
static SIGNAL_RETURN_AT: AtomicU64 = AtomicU64::new(0);

/// Whether the return address of signal handlers is known.
pub(in crate::samples) fn knows_signal_return() -> bool {
    // Relaxed: each thread would find the same.
    SIGNAL_RETURN_AT.load(Ordering::Relaxed) != 0
}

/// Stores the return address of a signal handler.
///
/// # Safety
/// `place` is a code address.
pub(in crate::samples) unsafe fn note_signal_return(place: u64) {
    // SAFETY: by this function's contract; instructions are aligned.
    let is_usual = || unsafe { (place as *const [u32; 2]).read() } == SIGNAL_RETURN;
    if place.is_multiple_of(4) && is_usual() {
        // Relaxed: only the number is shared.
        SIGNAL_RETURN_AT.store(place, Ordering::Relaxed);
    }
}

/// The kernel's structure on the stack while a signal handler runs: `rt_sigframe`, a `siginfo_t` followed by the
/// context.
const CONTEXT: u64 = size_of::<libc::siginfo_t>() as u64;
const MACHINE: u64 = CONTEXT + offset_of!(libc::ucontext_t, uc_mcontext) as u64;

/// If `pc` is where signal handlers return to, changes the registers to those of the interrupted code, and returns the
/// address where that continues.
pub(in crate::samples) fn interrupted_code(
    pc: u64,
    registers: &mut Registers,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Result<u64, ()>> {
    // Relaxed: as above.
    if pc == 0 || pc != SIGNAL_RETURN_AT.load(Ordering::Relaxed) {
        return None;
    }
    let machine = registers.stack_pointer().wrapping_add(MACHINE);
    let mut word = |offset: usize| read(machine.wrapping_add(offset as u64));
    let general = |number: usize| offset_of!(libc::mcontext_t, regs) + number * size_of::<u64>();
    let mut interrupted = || {
        let pc = word(offset_of!(libc::mcontext_t, pc))?;
        let (link, frame_pointer) = (word(general(LINK_REGISTER))?, word(general(FRAME_REGISTER))?);
        Ok(Registers::new(pc, link, word(offset_of!(libc::mcontext_t, sp))?, frame_pointer))
    };
    Some(interrupted().map(|interrupted| {
        *registers = interrupted;
        interrupted.pc
    }))
}

/// Unwinds a frame that has made a call although its unwind information says that it has saved nothing. LLVM's runtime
/// has such a function, `__kmp_invoke_microtask`, which calls each outlined function. Follows the instructions after
/// the call until the function returns, and returns the return address. Returns `None` and changes nothing if there are
/// instructions other than those that restore registers.
pub(in crate::samples) fn by_epilogue(
    pc: u64,
    registers: &mut Registers,
    instruction: impl Fn(u64) -> Option<u32>,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    const MAX_INSTRUCTIONS: u64 = 16;
    let (mut stack_pointer, mut frame_pointer) = (registers.stack_pointer(), registers.frame_pointer());
    let mut link = None;
    for place in (0..MAX_INSTRUCTIONS).map(|number| pc.wrapping_add(4 * number)) {
        let mut load = |register: u32, address: u64| {
            match register as usize {
                FRAME_REGISTER => frame_pointer = read(address).ok()?,
                LINK_REGISTER => link = Some(read(address).ok()?),
                _ => {}
            }
            Some(())
        };
        match Instruction::of(instruction(place)?)? {
            Instruction::Other => {}
            Instruction::StackIsFrame => stack_pointer = frame_pointer,
            Instruction::Shrink { bytes } => stack_pointer = stack_pointer.checked_add(bytes)?,
            Instruction::Restore { registers: [first, second], offset, then } => {
                let at = stack_pointer.checked_add_signed(offset)?;
                load(first, at)?;
                load(second, at.checked_add(8)?)?;
                stack_pointer = stack_pointer.checked_add_signed(then)?;
            }
            Instruction::Return => {
                return link.map(|link| registers.become_callers(stack_pointer, link, frame_pointer));
            }
        }
    }
    None
}

/// The return address of an interrupted entry of the procedure linkage table, for which linkers write no unwind
/// information. An entry branches to the function with `x17`, and changes only `x16` besides, so the return address is
/// still in its register. `None` for other code, and for the table's first entry, which saves registers on the stack.
///
/// `instruction` is called for the instructions from `pc` on, up to the first that is not part of such an entry, and
/// for those before `pc` in its page.
pub(in crate::samples) fn by_stub(
    pc: u64,
    registers: &Registers,
    instruction: impl Fn(u64) -> u32,
) -> Option<u64> {
    const MAX_INSTRUCTIONS: u64 = 6;
    /// The smallest page size of all CPUs.
    const PAGE: u64 = 4096;
    /// `stp x16, x30, [sp, #-16]!`
    const FIRST_SAVES: u32 = 0xa9bf_7bf0;
    // `adrp x16, page`; `ldr x17, [x16, #offset]`, `add x16, x16, #offset`
    let finds_function = |word: u32| {
        word & 0x9f00_001f == 0x9000_0010 || [0xf940_0211, 0x9100_0210].contains(&(word & 0xffc0_03ff))
    };
    let mut words = (0..MAX_INSTRUCTIONS).map(|number| instruction(pc.wrapping_add(4 * number)));
    let branches = words.find_map(|word| match word {
        // `br x17`
        0xd61f_0220 => Some(true),
        // `bti c`, `nop`, `autia1716`
        0xd503_245f | 0xd503_201f | 0xd503_219f => None,
        word => (!finds_function(word)).then_some(false),
    });
    if branches != Some(true) {
        return None;
    }
    let mut before = pc;
    for _ in 0..MAX_INSTRUCTIONS {
        if before.is_multiple_of(PAGE) {
            return None;
        }
        before -= 4;
        match instruction(before) {
            FIRST_SAVES => return None,
            word if finds_function(word) => {}
            _ => return Some(registers.others.lr()),
        }
    }
    None
}

/// The effect of an instruction at the end of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    /// No effect on the registers needed for unwinding.
    Other,
    /// `mov sp, x29`
    StackIsFrame,
    /// `add sp, sp, #bytes`
    Shrink { bytes: u64 },
    /// `ldp first, second, [sp, #offset]`, or `[sp], #then`.
    Restore { registers: [u32; 2], offset: i64, then: i64 },
    /// `ret`
    Return,
}

impl Instruction {
    /// Decodes an instruction (Arm's A64 instruction set); `None` if it is not one of these.
    fn of(word: u32) -> Option<Instruction> {
        let masked = |mask: u32| word & mask;
        let result = word & 0x1f;
        match word {
            0x9100_03bf => Some(Instruction::StackIsFrame),
            0xd65f_03c0 => Some(Instruction::Return),
            // `autiasp`, which removes the signature from the return address.
            0xd503_23bf => Some(Instruction::Other),
            _ if masked(0xffc0_03ff) == 0x9100_03ff => {
                Some(Instruction::Shrink { bytes: u64::from(word >> 10 & 0xfff) })
            }
            // Loads of register pairs from the stack: with an offset, or with an increment of the stack pointer.
            _ if [0xa940_03e0, 0xa8c0_03e0].contains(&masked(0xffc0_03e0)) => {
                let scaled = i64::from((word << 10).cast_signed() >> 25) * 8;
                let (offset, then) = if masked(0x0080_0000) == 0 { (scaled, 0) } else { (0, scaled) };
                Some(Instruction::Restore { registers: [result, word >> 10 & 0x1f], offset, then })
            }
            // `str`, `mov` of a small number or `orr` of zero and one, for a register other than those.
            _ if masked(0xffc0_0000) == 0xf900_0000 => Some(Instruction::Other),
            _ if [0x5280_0000, 0x3200_0000].contains(&masked(0xff80_0000)) && result < 29 => {
                Some(Instruction::Other)
            }
            _ => None,
        }
    }
}

/// `DW_CFA_AARCH64_negate_ra_state_with_pc`, of Armv9.5.
const SIGNED_WITH_PC: u8 = 0x2c;

/// Removes the instructions for signed return addresses from a copy of `.eh_frame`, originally at `address`. gimli, as
/// used by framehop, does not support them.
pub(in crate::samples) fn plain(eh_frame: &mut [u8], address: u64) {
    let mut found = Vec::new();
    {
        let section = EhFrame::new(eh_frame, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(address);
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
            found.extend(signing(eh_frame, &fde).unwrap_or_default());
        }
    }
    for place in found {
        eh_frame[place] = constants::DW_CFA_nop.0;
    }
}

/// The offsets of such instructions in the entry; `None` if its format is unknown.
fn signing(eh_frame: &[u8], fde: &FrameDescriptionEntry<Slice<'_>>) -> Option<Vec<usize>> {
    const LENGTH: usize = 4;
    const CIE_POINTER: usize = 4;
    let start = fde.offset() + LENGTH;
    let entry = eh_frame.get(..start.checked_add(fde.entry_len())?)?;
    let form = fde.cie().fde_address_encoding().map_or(constants::DW_EH_PE_absptr, |form| form.format());
    let address_bytes = match form {
        constants::DW_EH_PE_udata2 | constants::DW_EH_PE_sdata2 => 2,
        constants::DW_EH_PE_udata4 | constants::DW_EH_PE_sdata4 => 4,
        constants::DW_EH_PE_absptr | constants::DW_EH_PE_udata8 | constants::DW_EH_PE_sdata8 => 8,
        _ => return None,
    };
    let mut at = start + CIE_POINTER + 2 * address_bytes;
    if fde.cie().augmentation().is_some() {
        at = behind_block(entry, at)?;
    }
    let mut found = Vec::new();
    while let Some(&opcode) = entry.get(at) {
        if [constants::DW_CFA_AARCH64_negate_ra_state.0, SIGNED_WITH_PC].contains(&opcode) {
            found.push(at);
        }
        at = behind_operands(entry, at + 1, opcode)?;
    }
    Some(found)
}

/// The offset after the operands of an instruction, which start at `at` (DWARF 5, 7.24); `None` if the instruction is
/// unknown, or too long.
fn behind_operands(entry: &[u8], at: usize, opcode: u8) -> Option<usize> {
    use constants as c;
    const OPERAND_WITHIN: u8 = 0b1100_0000;
    let operation = constants::DwCfa(match opcode & OPERAND_WITHIN {
        0 => opcode,
        within => within,
    });
    match operation {
        c::DW_CFA_advance_loc | c::DW_CFA_restore | c::DW_CFA_nop => Some(at),
        c::DW_CFA_remember_state | c::DW_CFA_restore_state | c::DW_CFA_AARCH64_negate_ra_state => Some(at),
        constants::DwCfa(SIGNED_WITH_PC) => Some(at),
        c::DW_CFA_advance_loc1 => Some(at + 1),
        c::DW_CFA_advance_loc2 => Some(at + 2),
        c::DW_CFA_advance_loc4 => Some(at + 4),
        c::DW_CFA_offset | c::DW_CFA_restore_extended | c::DW_CFA_undefined | c::DW_CFA_same_value => {
            behind_number(entry, at)
        }
        c::DW_CFA_def_cfa_register | c::DW_CFA_def_cfa_offset | c::DW_CFA_def_cfa_offset_sf => {
            behind_number(entry, at)
        }
        c::DW_CFA_GNU_args_size => behind_number(entry, at),
        c::DW_CFA_offset_extended | c::DW_CFA_offset_extended_sf | c::DW_CFA_register => {
            behind_number(entry, behind_number(entry, at)?)
        }
        c::DW_CFA_def_cfa | c::DW_CFA_def_cfa_sf | c::DW_CFA_val_offset | c::DW_CFA_val_offset_sf => {
            behind_number(entry, behind_number(entry, at)?)
        }
        c::DW_CFA_def_cfa_expression => behind_block(entry, at),
        c::DW_CFA_expression | c::DW_CFA_val_expression => behind_block(entry, behind_number(entry, at)?),
        _ => None,
    }
}

/// The offset after a number in LEB128.
fn behind_number(entry: &[u8], at: usize) -> Option<usize> {
    const MORE: u8 = 0x80;
    let last = entry.get(at..)?.iter().position(|byte| byte & MORE == 0)?;
    Some(at + last + 1)
}

/// The offset after a block of bytes, which is preceded by its length in LEB128.
fn behind_block(entry: &[u8], at: usize) -> Option<usize> {
    let end = behind_number(entry, at)?;
    let bytes = entry[at..end]
        .iter()
        .rev()
        .try_fold(0_usize, |bytes, byte| bytes.checked_mul(0x80)?.checked_add(usize::from(byte & 0x7f)))?;
    end.checked_add(bytes).filter(|end| *end <= entry.len())
}

/// Every row is checked.
pub(in crate::samples) fn may_need_rows(
    _: &FrameDescriptionEntry<Slice<'_>>,
    _: &EhFrame<Slice<'_>>,
    _: &BaseAddresses,
) -> bool {
    true
}

/// Whether framehop follows the row: it is relative to the stack pointer, and its numbers fit into framehop's rules.
/// Otherwise framehop would fall back to a guess.
pub(in crate::samples) fn framehop_evaluates(row: &UnwindTableRow<usize>) -> bool {
    /// Maximum of the frame's size, in units of 16 bytes, and of a register's offset, in units of 8.
    const MOST: i64 = 16 * u16::MAX as i64;
    const FARTHEST: i64 = 8 * i16::MAX as i64;
    let CfaRule::RegisterAndOffset { register: AArch64::SP, offset } = *row.cfa() else {
        return false;
    };
    let saved = |register| match row.register(register) {
        None | Some(RegisterRule::SameValue) => Some(false),
        Some(RegisterRule::Offset(bytes)) => {
            let place = offset.saturating_add(bytes);
            (place % 8 == 0 && place.abs() <= FARTHEST).then_some(true)
        }
        _ => None,
    };
    let (frame_pointer, return_address) = (saved(FRAME_POINTER), saved(RETURN_ADDRESS));
    let is_known = match (frame_pointer, return_address) {
        (Some(frame_pointer), Some(return_address)) => return_address || !frame_pointer,
        _ => false,
    };
    is_known && (0..=MOST).contains(&offset) && offset % 16 == 0
}

/// A value that distinguishes the calling thread from all others, read without a system call.
pub(in crate::samples) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags, pure));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of LLVM 19's `__kmp_invoke_microtask`, after its call.
    const MICROTASK: [u32; 6] =
        [0x3200_03e0, 0x9100_03bf, 0xf900_027f, 0xa8c1_53f3, 0xa8c1_7bfd, 0xd65f_03c0];

    fn unwound(code: &[u32]) -> (Option<u64>, Registers) {
        let mut registers = Registers::new(0x4000, 0, 0x1000, 0x1040);
        let instruction = |address: u64| code.get((address as usize - 0x4000) / 4).copied();
        // Each word of the stack contains its own address.
        let caller = by_epilogue(0x4000, &mut registers, instruction, &mut Ok::<u64, ()>);
        (caller, registers)
    }

    #[test]
    fn a_frame_without_information_is_unwound_as_its_function_ends() {
        let (caller, registers) = unwound(&MICROTASK);
        assert_eq!(caller, Some(0x1058));
        assert_eq!((registers.stack_pointer(), registers.frame_pointer()), (0x1060, 0x1050));
    }

    #[test]
    fn an_end_that_is_not_known_is_none() {
        let (caller, registers) = unwound(&MICROTASK[..5]);
        assert_eq!((caller, registers.stack_pointer()), (None, 0x1000));
        // A branch; a return whose address was not restored.
        let branch = [&MICROTASK[..2], &[0x1400_0010]].concat();
        assert_eq!(unwound(&branch).0, None);
        assert_eq!(unwound(&[0xd65f_03c0]).0, None);
    }

    #[test]
    fn an_entry_of_the_linkage_table_returns_by_its_register() {
        // `adrp x16, page`, `ldr x17, [x16, #4024]`, `add x16, x16, #4024`, `br x17`
        const ENTRY: [u32; 4] = [0xb000_0090, 0xf947_de11, 0x913e_e210, 0xd61f_0220];
        const SAVES: u32 = 0xa9bf_7bf0;
        const NOP: u32 = 0xd503_201f;
        let registers = Registers::new(0, 0x1234, 0x1000, 0);
        // The table's first entry, and other entries.
        let table = [&[NOP, SAVES][..], &ENTRY, &[NOP, NOP], &ENTRY, &ENTRY].concat();
        let at = |begin: u64, word: usize| {
            let instruction = |address: u64| table[(address - begin) as usize / 4];
            by_stub(begin + 4 * word as u64, &registers, instruction)
        };
        for word in 1..6 {
            assert_eq!(at(0x4000, word), None, "{word}");
        }
        for word in 6..table.len() {
            assert_eq!(at(0x4000, word), Some(0x1234), "{word}");
        }
        // Instructions in the previous page may not be read.
        assert_eq!(at(0x5000 - 4 * 9, 10), None);
        // `br x16`; no branch at all.
        assert_eq!(by_stub(0x4004, &registers, |_| NOP), None);
        assert_eq!(by_stub(0x4000, &registers, |_| 0xd61f_0200), None);
    }

    #[test]
    fn instructions_at_the_end_of_functions_are_known() {
        let restore = |registers, offset, then| Some(Instruction::Restore { registers, offset, then });
        assert_eq!(Instruction::of(0xa940_7bfd), restore([29, 30], 0, 0));
        assert_eq!(Instruction::of(0xa942_4ff4), restore([20, 19], 32, 0));
        assert_eq!(Instruction::of(0xa8c3_7bfd), restore([29, 30], 0, 48));
        assert_eq!(Instruction::of(0x9100_83ff), Some(Instruction::Shrink { bytes: 32 }));
        // `ldp x29, x30, [x0]`, `mov x29, x0`
        assert_eq!((Instruction::of(0xa940_7c1d), Instruction::of(0xaa00_03fd)), (None, None));
    }

    #[test]
    fn signatures_are_no_part_of_an_address() {
        let address = 0x0000_aaaa_1234_5678;
        assert_eq!(Registers::new(0, address, 0, 0).others.lr(), address);
        let mut signed = address;
        // SAFETY: changes the register only: `paciasp`'s twin with zero, `paciaz`, on x30.
        unsafe {
            core::arch::asm!("hint #24", inout("x30") signed, options(nomem, nostack, preserves_flags))
        };
        assert_eq!(Registers::new(0, signed, 0, 0).others.lr(), address);
    }

    #[test]
    fn what_says_that_addresses_are_signed_is_taken_out() {
        // One entry for the code at 0x1000, describing 4 bytes of it in each way, and its CIE.
        let cie = [16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0];
        let instructions =
            [0x2d, 0x41, 0x0e, 0x2d, 0x9d, 0x2d, 0x16, 34, 2, 0x2d, 0x2d, 0x41, SIGNED_WITH_PC, 0x2d, 0, 0];
        let mut bytes =
            [&cie[..], &[33, 0, 0, 0, 24, 0, 0, 0], &0x1000_i32.to_le_bytes(), &[8, 0, 0, 0, 0]].concat();
        let start = bytes.len();
        bytes.extend(instructions);
        bytes[20] = (bytes.len() - 24) as u8;
        bytes.extend([0; 4]);
        plain(&mut bytes, 0);
        let plain = [0, 0x41, 0x0e, 0x2d, 0x9d, 0x2d, 0x16, 34, 2, 0x2d, 0x2d, 0x41, 0, 0, 0, 0];
        assert_eq!(bytes[start..start + plain.len()], plain);
    }
}
