//! Completes traces: adds the events from spools and symbol names (sealing), and analyses traces for their summaries
//! (summaries). Creates copies without identifying data (anonymise).

pub(crate) mod anonymise;
pub(crate) mod sealing;
pub(crate) mod summaries;
