//! The phases of a program as the outermost frames of stacks: `solver/step;main;solve`.

use std::borrow::Cow;

use omptrace_timeline::model::{Folding, Function, FunctionKind, Wants};

use crate::format::options::{FormatOption, FormatOptions, ON};

/// The option of formats with stacks.
pub(crate) const OPTIONS: &[FormatOption] = &[PHASES];

const PHASES: FormatOption = FormatOption {
    name: "phases",
    value_name: "",
    values: &[],
    default: "",
    help: "start each stack with the phases in which the sample was taken; phases whose names differ only in numbers are combined",
};

/// Whether the user wants phases around stacks.
pub(crate) fn are_wanted(options: &FormatOptions) -> bool {
    options.get(&PHASES) == ON
}

/// The optional items that a sink of samples needs, with or without phases.
pub(crate) fn wanted(has_phases: bool) -> Wants {
    match has_phases {
        true => Wants::SAMPLES.and(Wants::PHASE_FRAMES),
        false => Wants::SAMPLES,
    }
}

/// The names of functions. Phases whose names differ only in numbers get the same name.
pub(crate) fn names(functions: &[Function]) -> Vec<Cow<'_, str>> {
    let is_phase = |function: &&Function| function.kind == FunctionKind::Phase;
    let folding = Folding::of(functions.iter().filter(is_phase).map(|phase| &phase.name));
    let names = functions.iter().map(|function| match function.kind {
        FunctionKind::Phase => folding.name(&function.name).into(),
        _ => Cow::from(&function.name),
    });
    names.collect()
}
