//! Transfers: each is completed once.

use super::Checker;
use crate::check::faults::Fault;
use crate::encoding::{Kind, RmaWinRef};

impl Checker<'_> {
    pub(super) fn transfer(
        &mut self,
        index: usize,
        time: u64,
        window: RmaWinRef,
        remote: u32,
        matching_id: u64,
    ) {
        let source = &mut self.sources[index];
        let number = source.numbers.global(Kind::RmaWin, window.0.into()) as u32;
        let is_new = source.transfers.insert((window.0, matching_id));
        let ranks = self.definitions.window_ranks(number);
        if ranks.is_some_and(|ranks| remote as usize >= ranks) {
            self.fault(Fault::Rank, index, time);
        }
        if !is_new {
            self.fault(Fault::Rma, index, time);
        }
    }

    pub(super) fn completion(&mut self, index: usize, time: u64, transfer: (u32, u64)) {
        if !self.sources[index].transfers.remove(&transfer) {
            self.fault(Fault::Rma, index, time);
        }
    }
}
