//! What framehop cannot say of unwind information: which code has any, and the rules that it does not evaluate.
//!
//! framehop 0.16 goes on by the frame pointer where code has no information, or a rule of a kind that it does not know. It does
//! not say so. So each module's information is read once, when the module is found: which code has any, and the rows that
//! framehop does not know. Their rules dereference memory, or count from a register that is neither stack pointer nor frame
//! pointer. GCC has these in functions that realign the stack, the C library where a signal handler returns.

use gimli::{
    BaseAddresses, CallFrameInstruction, CfaRule, CieOrFde, EhFrame, FrameDescriptionEntry, LittleEndian,
    Operation, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, X86_64,
};

type Slice = gimli::EndianSlice<'static, LittleEndian>;
type Fde = FrameDescriptionEntry<Slice>;

/// A register that a rule counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    StackPointer,
    FramePointer,
    /// Known of the innermost frame only.
    R10,
}

/// A place, or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The register plus this number of bytes.
    Sum(Base, i64),
    /// What memory holds there.
    Memory(Base, i64),
    /// What memory holds this number of bytes from the canonical frame address.
    AtFrame(i64),
    /// As it is in the frame itself.
    Same,
    /// There is none: the outermost frame.
    Undefined,
    /// Not evaluated.
    Unknown,
}

/// How the caller of the code from `start` on, up to `end`, is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    start: u64,
    end: u64,
    /// The canonical frame address: the caller's stack pointer.
    pub(super) frame_address: Rule,
    pub(super) return_address: Rule,
    pub(super) frame_pointer: Rule,
    /// The caller was interrupted here, and has made no call.
    pub(super) is_signal: bool,
}

/// What a module's unwind information has.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Code that has any, sorted, from `base` on.
    covered: Vec<(u32, u32)>,
    base: u64,
    /// Rows of functions that framehop does not evaluate, sorted.
    rows: Vec<Row>,
}

impl Rules {
    /// Reads `eh_frame`, which lay at `address`, of a module that begins at `base`.
    pub(super) fn of(eh_frame: &'static [u8], address: u64, base: u64) -> Rules {
        let section = EhFrame::new(eh_frame, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(address);
        let mut rules = Rules { base, ..Rules::default() };
        let mut context = UnwindContext::new();
        let mut entries = section.entries(&bases);
        // What lies behind an entry that cannot be read is not covered.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
                continue;
            };
            let (start, end) = (fde.initial_address(), fde.end_address());
            let from_base = |address: u64| u32::try_from(address.checked_sub(base)?).ok();
            // A linker that removes a function leaves its entry, with an address outside.
            let (Some(first), Some(last)) = (from_base(start), from_base(end)) else {
                continue;
            };
            rules.covered.push((first, last));
            if is_special(&fde, &section, &bases) {
                rules.add_rows(&fde, &section, &bases, &mut context);
            }
        }
        rules.covered.sort_unstable();
        rules.covered.dedup_by(|next, last| {
            let continues = next.0 <= last.1;
            if continues {
                last.1 = last.1.max(next.1);
            }
            continues
        });
        rules.covered.shrink_to_fit();
        rules.rows.sort_unstable_by_key(|row| row.start);
        rules
    }

    fn add_rows(
        &mut self,
        fde: &Fde,
        section: &EhFrame<Slice>,
        bases: &BaseAddresses,
        context: &mut UnwindContext<usize>,
    ) {
        let unknown = |start, end| Row {
            start,
            end,
            frame_address: Rule::Unknown,
            return_address: Rule::Unknown,
            frame_pointer: Rule::Unknown,
            is_signal: false,
        };
        let value = |expression: UnwindExpression<usize>| evaluated(&expression, fde, section);
        let mut done = fde.initial_address();
        if let Ok(mut table) = fde.rows(section, bases, context) {
            while let Ok(Some(row)) = table.next_row() {
                let saved = |register| match row.register(register) {
                    Some(RegisterRule::Offset(bytes)) => Rule::AtFrame(bytes),
                    Some(RegisterRule::Undefined) => Rule::Undefined,
                    Some(RegisterRule::Expression(expression)) => match value(expression) {
                        Rule::Sum(base, bytes) => Rule::Memory(base, bytes),
                        _ => Rule::Unknown,
                    },
                    // By the platform's convention, a function keeps what it says nothing about.
                    None | Some(RegisterRule::SameValue) if register != X86_64::RA => Rule::Same,
                    _ => Rule::Unknown,
                };
                let frame_address = match row.cfa() {
                    CfaRule::RegisterAndOffset { register, offset } => {
                        base(*register).map_or(Rule::Unknown, |base| Rule::Sum(base, *offset))
                    }
                    CfaRule::Expression(expression) => value(*expression),
                };
                self.rows.push(Row {
                    start: row.start_address(),
                    end: row.end_address(),
                    frame_address,
                    return_address: saved(X86_64::RA),
                    frame_pointer: saved(X86_64::RBP),
                    is_signal: fde.is_signal_trampoline(),
                });
                done = row.end_address();
            }
        }
        if done < fde.end_address() {
            self.rows.push(unknown(done, fde.end_address()));
        }
    }

    /// Whether the code at `pc` has unwind information.
    pub(super) fn cover(&self, pc: u64) -> bool {
        let Ok(pc) = u32::try_from(pc.wrapping_sub(self.base)) else {
            return false;
        };
        let next = self.covered.partition_point(|range| range.0 <= pc);
        next > 0 && pc < self.covered[next - 1].1
    }

    /// The row of `pc`, in a function that framehop does not evaluate.
    pub(super) fn row(&self, pc: u64) -> Option<&Row> {
        let next = self.rows.partition_point(|row| row.start <= pc);
        let row = self.rows.get(next.checked_sub(1)?)?;
        (pc < row.end).then_some(row)
    }
}

/// Whether framehop would go on by the frame pointer in a part of the function.
fn is_special(fde: &Fde, section: &EhFrame<Slice>, bases: &BaseAddresses) -> bool {
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

/// What an expression comes to: a register plus a number, or what memory holds there.
fn evaluated(expression: &UnwindExpression<usize>, fde: &Fde, section: &EhFrame<Slice>) -> Rule {
    let Ok(expression) = expression.get(section) else {
        return Rule::Unknown;
    };
    let mut operations = expression.operations(fde.cie().encoding());
    let mut rule = Rule::Unknown;
    loop {
        rule = match (operations.next(), rule) {
            (Ok(None), rule) => return rule,
            (Ok(Some(Operation::RegisterOffset { register, offset, .. })), Rule::Unknown) => {
                match base(register) {
                    Some(base) => Rule::Sum(base, offset),
                    None => return Rule::Unknown,
                }
            }
            (Ok(Some(Operation::PlusConstant { value })), Rule::Sum(base, offset)) => {
                Rule::Sum(base, offset.wrapping_add(value as i64))
            }
            (Ok(Some(Operation::Deref { size: 8, space: false, .. })), Rule::Sum(base, offset)) => {
                Rule::Memory(base, offset)
            }
            _ => return Rule::Unknown,
        };
    }
}

fn base(register: Register) -> Option<Base> {
    match register {
        X86_64::RSP => Some(Base::StackPointer),
        X86_64::RBP => Some(Base::FramePointer),
        X86_64::R10 => Some(Base::R10),
        _ => None,
    }
}
