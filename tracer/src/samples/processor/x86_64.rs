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

/// Bytes below the stack pointer that a function may use (the psABI of x86_64).
pub(in crate::samples) const RED_ZONE: u64 = 128;
/// A call pushes its return address, so that each function has a frame.
pub(in crate::samples) const LEAF_HAS_NO_FRAME: bool = false;
/// As unwind information numbers them.
pub(in crate::samples) const RETURN_ADDRESS: Register = X86_64::RA;
pub(in crate::samples) const FRAME_POINTER: Register = X86_64::RBP;
/// What holds a return address of which unwind information says nothing.
pub(in crate::samples) const UNSAVED_RETURN_ADDRESS: Option<Base> = None;

/// A register that a rule counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::samples) enum Base {
    StackPointer,
    FramePointer,
    /// Known of the innermost frame only.
    R10,
}

/// The register of this number, if a rule may count from it.
pub(in crate::samples) fn base(register: Register) -> Option<Base> {
    match register {
        X86_64::RSP => Some(Base::StackPointer),
        X86_64::RBP => Some(Base::FramePointer),
        X86_64::R10 => Some(Base::R10),
        _ => None,
    }
}

/// What is known of a frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::samples) struct Registers {
    pub(in crate::samples) pc: u64,
    /// The others, as framehop has them.
    pub(in crate::samples) others: UnwindRegsX86_64,
}

impl Registers {
    /// Those of the interrupted code.
    pub(in crate::samples) fn interrupted(context: &libc::ucontext_t) -> Registers {
        let register = |number: c_int| context.uc_mcontext.gregs[number as usize] as u64;
        let mut registers =
            Registers::new(register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP));
        registers.others.set(Reg::R10, register(libc::REG_R10));
        registers
    }

    /// Those of the calling function.
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

    /// The value; `None` where it is not known. `is_innermost` says that no frame was unwound yet.
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

    /// They become the caller's. Returns where it goes on.
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

/// Whether it is known where signal handlers return to. Here, the C library has unwind information for that.
pub(in crate::samples) fn knows_signal_return() -> bool {
    true
}

/// A handler returns there: nobody asks.
///
/// # Safety
/// None is needed.
pub(in crate::samples) unsafe fn note_signal_return(_: u64) {}

/// None but what unwind information says.
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

/// Not needed: linkers give entries of the linkage table unwind information.
pub(in crate::samples) fn by_stub(_: u64, _: &Registers, _: impl Fn(u64) -> u32) -> Option<u64> {
    None
}

/// The copied unwind information is as framehop reads it.
pub(in crate::samples) fn plain(_eh_frame: &mut [u8], _address: u64) {}

/// Whether framehop would go on by the frame pointer in a part of the function: then each row of it is kept.
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

/// Not asked of rows one by one.
pub(in crate::samples) fn framehop_evaluates(_: &UnwindTableRow<usize>) -> bool {
    false
}

/// What distinguishes the calling thread from all others alive, without a system call.
pub(in crate::samples) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the first word of a thread's control block is its own address (the psABI of x86_64).
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer,
            options(readonly, nostack, preserves_flags, pure));
    }
    pointer
}
