//! Samples on x86_64.

use std::ffi::c_int;

use framehop::MustNotAllocateDuringUnwind;
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use gimli::{
    BaseAddresses, CallFrameInstruction, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian,
    Operation, Register, UnwindExpression, UnwindTableRow, X86_64,
};

pub(in crate::samples) type Cache = CacheX86_64<MustNotAllocateDuringUnwind>;
pub(in crate::samples) type Unwinding = UnwinderX86_64<&'static [u8], MustNotAllocateDuringUnwind>;

type Slice = EndianSlice<'static, LittleEndian>;

/// Number of bytes below the stack pointer that a function may use (psABI of x86_64).
pub(in crate::samples) const RED_ZONE: u64 = 128;
/// A call pushes its return address, so each function has a frame.
pub(in crate::samples) const LEAF_HAS_NO_FRAME: bool = false;
/// Register numbers as in unwind information.
pub(in crate::samples) const RETURN_ADDRESS: Register = X86_64::RA;
pub(in crate::samples) const FRAME_POINTER: Register = X86_64::RBP;
/// Where the return address is if unwind information does not mention it.
pub(in crate::samples) const UNSAVED_RETURN_ADDRESS: Option<Base> = None;

/// A register that a rule may be relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::samples) enum Base {
    StackPointer,
    FramePointer,
    /// Known only for the innermost frame.
    R10,
}

/// The register with this number, if a rule may be relative to it.
pub(in crate::samples) fn base(register: Register) -> Option<Base> {
    match register {
        X86_64::RSP => Some(Base::StackPointer),
        X86_64::RBP => Some(Base::FramePointer),
        X86_64::R10 => Some(Base::R10),
        _ => None,
    }
}

/// The known registers of a frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::samples) struct Registers {
    pub(in crate::samples) pc: u64,
    /// The other registers, in framehop's type.
    pub(in crate::samples) others: UnwindRegsX86_64,
}

impl Registers {
    /// The registers of the interrupted code.
    pub(in crate::samples) fn interrupted(context: &libc::ucontext_t) -> Registers {
        let register = |number: c_int| context.uc_mcontext.gregs[number as usize] as u64;
        let mut registers =
            Registers::new(register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP));
        registers.others.set(Reg::R10, register(libc::REG_R10));
        registers
    }

    /// The registers of the calling function.
    #[inline(always)]
    pub(in crate::samples) fn here() -> Registers {
        let (pc, stack_pointer, frame_pointer);
        // SAFETY: reads registers.
        unsafe {
            core::arch::asm!(
                "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
                out(reg) pc, out(reg) stack_pointer, out(reg) frame_pointer,
                options(nomem, nostack, preserves_flags)
            );
        }
        Registers::new(pc, stack_pointer, frame_pointer)
    }

    fn new(pc: u64, stack_pointer: u64, frame_pointer: u64) -> Registers {
        Registers { pc, others: UnwindRegsX86_64::new(pc, stack_pointer, frame_pointer) }
    }

    pub(in crate::samples) fn stack_pointer(&self) -> u64 {
        self.others.sp()
    }

    pub(in crate::samples) fn frame_pointer(&self) -> u64 {
        self.others.bp()
    }

    /// The register's value; `None` if unknown. `is_innermost` means that no frame was unwound yet.
    pub(in crate::samples) fn get(
        &self,
        base: Base,
        is_innermost: bool,
        _is_interrupted: bool,
    ) -> Option<u64> {
        match base {
            Base::StackPointer => Some(self.others.sp()),
            Base::FramePointer => Some(self.others.bp()),
            Base::R10 => is_innermost.then(|| self.others.get(Reg::R10)),
        }
    }

    /// Changes the registers to those of the caller. Returns the address where the caller continues.
    pub(in crate::samples) fn become_callers(
        &mut self,
        frame_address: u64,
        return_address: u64,
        frame_pointer: u64,
    ) -> u64 {
        self.others.set_bp(frame_pointer);
        self.others.set_sp(frame_address);
        self.others.set_ip(return_address);
        return_address
    }
}

/// Whether the return address of signal handlers is known. Not needed: the C library has unwind information for it.
pub(in crate::samples) fn knows_signal_return() -> bool {
    true
}

/// Not needed.
///
/// # Safety
/// None.
pub(in crate::samples) unsafe fn note_signal_return(_: u64) {}

/// Not needed: unwind information is sufficient.
pub(in crate::samples) fn interrupted_code(
    _: u64,
    _: &mut Registers,
    _: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Result<u64, ()>> {
    None
}

/// Not needed.
pub(in crate::samples) fn by_epilogue(
    _: u64,
    _: &mut Registers,
    _: impl Fn(u64) -> Option<u32>,
    _: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    None
}

/// Not needed: linkers write unwind information for the procedure linkage table.
pub(in crate::samples) fn by_stub(_: u64, _: &Registers, _: impl Fn(u64) -> u32) -> Option<u64> {
    None
}

/// Not needed: framehop supports the copied unwind information as it is.
pub(in crate::samples) fn plain(_eh_frame: &mut [u8], _address: u64) {}

/// Whether framehop would fall back to the frame pointer in a part of the function; then each row of it is kept.
pub(in crate::samples) fn may_need_rows(
    fde: &FrameDescriptionEntry<Slice>,
    section: &EhFrame<Slice>,
    bases: &BaseAddresses,
) -> bool {
    let is_known = |register: Register| [X86_64::RSP, X86_64::RBP].contains(&register);
    let dereferences = |expression: &UnwindExpression<usize>| {
        expression.get(section).is_ok_and(|expression| {
            let mut operations = expression.operations(fde.cie().encoding());
            std::iter::from_fn(|| operations.next().ok().flatten())
                .any(|operation| matches!(operation, Operation::Deref { .. }))
        })
    };
    let special = |instruction: CallFrameInstruction<usize>| match instruction {
        CallFrameInstruction::DefCfa { register, .. }
        | CallFrameInstruction::DefCfaSf { register, .. }
        | CallFrameInstruction::DefCfaRegister { register } => !is_known(register),
        CallFrameInstruction::DefCfaExpression { expression } => dereferences(&expression),
        CallFrameInstruction::Expression { register, .. }
        | CallFrameInstruction::ValExpression { register, .. } => {
            register == X86_64::RA || register == X86_64::RBP
        }
        _ => false,
    };
    let of_cie = fde.cie().instructions(section, bases);
    let of_fde = fde.instructions(section, bases);
    [of_cie, of_fde]
        .into_iter()
        .any(|mut instructions| std::iter::from_fn(|| instructions.next().ok().flatten()).any(special))
}

/// Not needed: rows are not checked one by one.
pub(in crate::samples) fn framehop_evaluates(_: &UnwindTableRow<usize>) -> bool {
    false
}

/// A value that distinguishes the calling thread from all others, read without a system call.
pub(in crate::samples) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the first word of a thread's control block is its own address (psABI of x86_64).
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer,
            options(readonly, nostack, preserves_flags, pure));
    }
    pointer
}
