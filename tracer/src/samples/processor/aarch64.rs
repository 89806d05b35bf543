//! Samples on aarch64.
//!
//! A call stores its return address in a register (`x30`), which the function saves if it makes calls itself. There is no red zone. Return
//! addresses may be signed: the bits above the address hold a code (pointer authentication), which is stripped.
//!
//! framehop 0.16 has three faults here, none of which it reports:
//!
//! * gimli needs to be told the vendor to know the instruction that says that return addresses are signed from here on. framehop does not
//!   tell it, and goes on by the frame pointer in each function that has it. [`plain`] takes these instructions out of the copy: how a
//!   frame is unwound does not depend on them.
//! * Where a frame is found by the frame pointer (`x29`), as Clang has it in most functions, framehop expects the caller's to lie above it,
//!   and takes 0 for the end of the stack. In a caller that has no frame pointer, `x29` is any value.
//! * In the innermost frame it takes the return address to be in `x30` where it cannot evaluate the rule.
//!
//! So [`framehop_evaluates`] leaves it the rows that count from the stack pointer.

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

/// There is none (AAPCS64, 6.4.5.1).
pub(in crate::samples) const RED_ZONE: u64 = 0;
/// A function that makes no call may leave the stack pointer as its caller has it.
pub(in crate::samples) const LEAF_HAS_NO_FRAME: bool = true;
/// As unwind information numbers them.
pub(in crate::samples) const RETURN_ADDRESS: Register = AArch64::X30;
pub(in crate::samples) const FRAME_POINTER: Register = AArch64::X29;
/// What holds a return address of which unwind information says nothing.
pub(in crate::samples) const UNSAVED_RETURN_ADDRESS: Option<Base> = Some(Base::LinkRegister);

/// A register that a rule counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::samples) enum Base {
    StackPointer,
    FramePointer,
    /// Known of interrupted code only: whoever has made a call has another value there.
    LinkRegister,
}

/// The register of this number, if a rule may count from it.
pub(in crate::samples) fn base(register: Register) -> Option<Base> {
    match register {
        AArch64::SP => Some(Base::StackPointer),
        AArch64::X29 => Some(Base::FramePointer),
        _ => None,
    }
}

/// What is known of a frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::samples) struct Registers {
    pub(in crate::samples) pc: u64,
    /// The others, as framehop has them.
    pub(in crate::samples) others: UnwindRegsAarch64,
}

impl Registers {
    /// Those of the interrupted code.
    pub(in crate::samples) fn interrupted(context: &libc::ucontext_t) -> Registers {
        let machine = &context.uc_mcontext;
        Registers::new(machine.pc, machine.regs[LINK_REGISTER], machine.sp, machine.regs[FRAME_REGISTER])
    }

    /// Those of the calling function.
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

    /// The value; `None` where it is not known. `is_interrupted` says that the frame has made no call.
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

    /// They become the caller's. Returns where it goes on.
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

/// The bits of a return address that are the address. How many there are depends on the kernel, so the processor is asked: `xpaclri`
/// strips `x30`. On one without pointer authentication it does nothing.
#[inline(always)]
fn address_bits() -> PtrAuthMask {
    /// Bit 55 says whose address it is: the program's. Those above it are no part of an address of code.
    const ALL: u64 = (1 << 55) - 1;
    let bits;
    // SAFETY: changes the register only.
    unsafe {
        core::arch::asm!("hint #7", inout("x30") ALL => bits, options(nomem, nostack, preserves_flags))
    };
    PtrAuthMask(bits)
}

/// In `mcontext_t::regs`.
const FRAME_REGISTER: usize = 29;
const LINK_REGISTER: usize = 30;

/// The instructions to which a signal handler returns: `mov x8, #139` (rt_sigreturn) and `svc #0`. By these, debuggers and libgcc know
/// them. The kernel gives them no unwind information.
const SIGNAL_RETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// Where they lie; 0 where nobody has looked.
static SIGNAL_RETURN_AT: AtomicU64 = AtomicU64::new(0);

/// Whether it is known where signal handlers return to.
pub(in crate::samples) fn knows_signal_return() -> bool {
    // Relaxed: each thread would find the same.
    SIGNAL_RETURN_AT.load(Ordering::Relaxed) != 0
}

/// A handler returns there.
///
/// # Safety
/// It is the address of code.
pub(in crate::samples) unsafe fn note_signal_return(place: u64) {
    // SAFETY: by this function's contract; instructions are aligned.
    let is_usual = || unsafe { (place as *const [u32; 2]).read() } == SIGNAL_RETURN;
    if place.is_multiple_of(4) && is_usual() {
        // Relaxed: the number is all that is shared.
        SIGNAL_RETURN_AT.store(place, Ordering::Relaxed);
    }
}

/// The kernel's structure that lies on the stack while a signal handler runs: `rt_sigframe`, a `siginfo_t` and then the context.
const CONTEXT: u64 = size_of::<libc::siginfo_t>() as u64;
const MACHINE: u64 = CONTEXT + offset_of!(libc::ucontext_t, uc_mcontext) as u64;

/// Where `pc` is what a signal handler returns to: the registers become those of the interrupted code, which goes on at the result.
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

/// `DW_CFA_AARCH64_negate_ra_state_with_pc`, of Armv9.5.
const SIGNED_WITH_PC: u8 = 0x2c;

/// Takes the instructions that return addresses are signed out of a copy of `.eh_frame`, which lay at `address`. gimli, as framehop uses it,
/// does not know them.
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

/// Where the entry has such instructions; `None` where it has an unknown form.
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

/// What lies behind the operands of an instruction, which begin at `at` (DWARF 5, 7.24); `None` of one that is not known, or too long.
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

/// Behind a number in LEB128.
fn behind_number(entry: &[u8], at: usize) -> Option<usize> {
    const MORE: u8 = 0x80;
    let last = entry.get(at..)?.iter().position(|byte| byte & MORE == 0)?;
    Some(at + last + 1)
}

/// Behind a block of bytes, which follow their number in LEB128.
fn behind_block(entry: &[u8], at: usize) -> Option<usize> {
    let end = behind_number(entry, at)?;
    let bytes = entry[at..end]
        .iter()
        .rev()
        .try_fold(0_usize, |bytes, byte| bytes.checked_mul(0x80)?.checked_add(usize::from(byte & 0x7f)))?;
    end.checked_add(bytes).filter(|end| *end <= entry.len())
}

/// Each row is looked at.
pub(in crate::samples) fn may_need_rows(
    _: &FrameDescriptionEntry<Slice<'_>>,
    _: &EhFrame<Slice<'_>>,
    _: &BaseAddresses,
) -> bool {
    true
}

/// Whether framehop makes of the row what it says: it counts from the stack pointer, and its numbers are ones that framehop has a rule for.
/// Else it goes on by a rule that is a guess.
pub(in crate::samples) fn framehop_evaluates(row: &UnwindTableRow<usize>) -> bool {
    /// Of the frame's size, in 16 bytes, and of a register's place, in 8.
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

/// What distinguishes the calling thread from all others alive, without a system call.
pub(in crate::samples) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags, pure));
    }
    pointer
}
