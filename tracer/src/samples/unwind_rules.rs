//! Unwind information that framehop does not handle: which code has any, and the rules that framehop does not evaluate.
//!
//! framehop 0.16 silently falls back to the frame pointer for code without unwind information, and for rules of unknown
//! kinds. So each module's information is read once, when the module is found, to determine which code has any, and the
//! rows that framehop does not support. Their rules dereference memory, or are relative to a register other than stack
//! pointer and frame pointer. GCC generates them in functions that realign the stack, and the C library has them where
//! a signal handler returns.

use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, FrameDescriptionEntry, LittleEndian, Operation, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection,
};

use crate::samples::processor::{
    Base, FRAME_POINTER, RETURN_ADDRESS, UNSAVED_RETURN_ADDRESS, base, framehop_evaluates, may_need_rows,
};

type Slice = gimli::EndianSlice<'static, LittleEndian>;
type Fde = FrameDescriptionEntry<Slice>;

/// How an address or a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The register plus an offset in bytes.
    Sum(Base, i32),
    /// The memory at the register plus an offset.
    Memory(Base, i32),
    /// The memory at an offset from the canonical frame address.
    AtFrame(i32),
    /// The frame's own value.
    Same,
    /// Undefined: this is the outermost frame.
    Undefined,
    /// A rule that is not supported.
    Unknown,
}

/// The rules for finding the caller of code between `start` and `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Offset from the module's base.
    start: u32,
    end: u32,
    /// The canonical frame address: the caller's stack pointer.
    pub(super) frame_address: Rule,
    pub(super) return_address: Rule,
    pub(super) frame_pointer: Rule,
    /// The caller was interrupted by a signal here, and has made no call.
    pub(super) is_signal: bool,
}

/// The unwind information of a module.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Ranges of code with unwind information, sorted, as offsets from `base`.
    covered: Vec<(u32, u32)>,
    base: u64,
    /// Rows that framehop does not evaluate, sorted.
    rows: Vec<Row>,
}

impl Rules {
    /// Reads `eh_frame`, originally at `address`, of a module that starts at `base`.
    pub(super) fn of(eh_frame: &'static [u8], address: u64, base: u64) -> Rules {
        let section = EhFrame::new(eh_frame, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(address);
        let mut rules = Rules { base, ..Rules::default() };
        let mut context = UnwindContext::new();
        let mut entries = section.entries(&bases);
        // Code after an unreadable entry counts as not covered.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
                continue;
            };
            let (start, end) = (fde.initial_address(), fde.end_address());
            let from_base = |address: u64| u32::try_from(address.checked_sub(base)?).ok();
            // A linker that removes a function leaves its entry, with an address outside of the module.
            let (Some(first), Some(last)) = (from_base(start), from_base(end)) else {
                continue;
            };
            rules.covered.push((first, last));
            if may_need_rows(&fde, &section, &bases) {
                rules.add_rows(&fde, first..last, &section, &bases, &mut context);
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
        rules.rows.shrink_to_fit();
        rules
    }

    fn add_rows(
        &mut self,
        fde: &Fde,
        code: Range<u32>,
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
        // Within the function, so the difference is at most its length.
        let start = fde.initial_address();
        let from_base = |address: u64| code.start + address.saturating_sub(start) as u32;
        let mut done = code.start;
        if let Ok(mut table) = fde.rows(section, bases, context) {
            while let Ok(Some(row)) = table.next_row() {
                let end = from_base(row.end_address());
                done = end;
                if framehop_evaluates(row) {
                    continue;
                }
                let saved = |register| match row.register(register) {
                    Some(RegisterRule::Offset(bytes)) => short(bytes).map_or(Rule::Unknown, Rule::AtFrame),
                    Some(RegisterRule::Undefined) => Rule::Undefined,
                    Some(RegisterRule::Expression(expression)) => match value(expression) {
                        Rule::Sum(base, bytes) => Rule::Memory(base, bytes),
                        _ => Rule::Unknown,
                    },
                    None | Some(RegisterRule::SameValue) if register == RETURN_ADDRESS => {
                        UNSAVED_RETURN_ADDRESS.map_or(Rule::Unknown, |base| Rule::Sum(base, 0))
                    }
                    // By the platform's convention, a register without a rule keeps its value.
                    None | Some(RegisterRule::SameValue) => Rule::Same,
                    _ => Rule::Unknown,
                };
                let frame_address = match row.cfa() {
                    CfaRule::RegisterAndOffset { register, offset } => base(*register)
                        .zip(short(*offset))
                        .map_or(Rule::Unknown, |(base, bytes)| Rule::Sum(base, bytes)),
                    CfaRule::Expression(expression) => value(*expression),
                };
                self.rows.push(Row {
                    start: from_base(row.start_address()),
                    end,
                    frame_address,
                    return_address: saved(RETURN_ADDRESS),
                    frame_pointer: saved(FRAME_POINTER),
                    is_signal: fde.is_signal_trampoline(),
                });
            }
        }
        if done < code.end {
            self.rows.push(unknown(done, code.end));
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

    /// The row for `pc`, if framehop does not evaluate it.
    pub(super) fn row(&self, pc: u64) -> Option<&Row> {
        let pc = u32::try_from(pc.wrapping_sub(self.base)).ok()?;
        let next = self.rows.partition_point(|row| row.start <= pc);
        let row = self.rows.get(next.checked_sub(1)?)?;
        (pc < row.end).then_some(row)
    }
}

/// Converts to the type in a row.
fn short(bytes: i64) -> Option<i32> {
    i32::try_from(bytes).ok()
}

/// Evaluates an expression: a register plus a number, or the memory at that address.
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
                match base(register).zip(short(offset)) {
                    Some((base, bytes)) => Rule::Sum(base, bytes),
                    None => return Rule::Unknown,
                }
            }
            (Ok(Some(Operation::PlusConstant { value })), Rule::Sum(base, bytes)) => {
                match short(value as i64).and_then(|more| bytes.checked_add(more)) {
                    Some(bytes) => Rule::Sum(base, bytes),
                    None => return Rule::Unknown,
                }
            }
            (Ok(Some(Operation::Deref { size: 8, space: false, .. })), Rule::Sum(base, offset)) => {
                Rule::Memory(base, offset)
            }
            _ => return Rule::Unknown,
        };
    }
}
