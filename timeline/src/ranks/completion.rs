//! Requests that are complete, and what they stood for.

use crate::ranks::calls::Calls;
use crate::ranks::posting::Span;
use crate::ranks::process_calls::ReceiveState;
use crate::ranks::requests::{Completed, Meaning, Request};

/// The peer of a request that was cancelled, as the tracer writes it.
const CANCELLED: i32 = -5;

impl Calls {
    pub(super) fn complete(&mut self, completed: Completed, span: Span, is_single: bool) {
        let Completed { handle, number, peer, tag, bytes } = completed;
        let Some(all) = self.requests.get_mut(&handle) else { return };
        let Some(place) = all.iter().position(|request| request.number == number) else { return };
        all[place].is_awaited = false;
        self.gaps.completes((all[place].thread, all[place].posted));
        let is_cancelled = peer == CANCELLED;
        let (mut send, mut receive, mut collective) = (None, None, None);
        match &mut all[place].meaning {
            Meaning::PersistentSend { started, is_synchronous, .. } => {
                send = started.pop_front().map(|send| (send, *is_synchronous));
            }
            Meaning::PersistentReceive { started, .. } => receive = started.pop_front(),
            Meaning::PersistentCollective { started, .. } => collective = started.pop_front(),
            _ => match all.remove(place).meaning {
                Meaning::Send { place, is_synchronous } => send = Some((place, is_synchronous)),
                Meaning::Receive { place } => receive = Some(place),
                Meaning::Both { send: of_send, receive: of_receive } => {
                    send = of_send.map(|send| (send, false));
                    receive = Some(of_receive);
                }
                Meaning::Collective { place } => collective = Some(place),
                _ => {}
            },
        }
        if all.is_empty() {
            self.requests.remove(&handle);
        }
        if let Some((place, is_synchronous)) = send
            && let Some(send) = self.all.sends.get_mut(place)
        {
            send.is_cancelled |= is_cancelled;
            (send.done, send.may_wait) = (Some(span), is_synchronous || is_single);
            send.is_settled = true;
        }
        if let Some(place) = receive {
            self.received(place, (peer, tag, bytes), span);
        }
        if let Some(place) = collective {
            self.takes_part(place, span);
        }
    }

    /// An operation is complete in a call.
    pub(super) fn takes_part(&mut self, place: usize, span: Span) {
        self.arrivals += 1;
        if let Some(collective) = self.all.collectives.get_mut(place) {
            (collective.wait, collective.is_settled) = (Some(span), true);
        }
    }

    /// A receive is complete, with this status.
    pub(super) fn received(&mut self, place: usize, (peer, tag, bytes): (i32, i32, u64), span: Span) {
        let Some(receive) = self.all.receives.get_mut(place) else { return };
        self.arrivals += u64::from(!receive.is_probe);
        // A message that was looked for before was waited for there.
        receive.wait = receive.wait.or(Some(span));
        receive.done = Some(span);
        receive.is_settled = true;
        receive.state = match peer {
            0.. => ReceiveState::Complete,
            CANCELLED => ReceiveState::Cancelled,
            _ if receive.state == ReceiveState::Complete => ReceiveState::Complete,
            _ => ReceiveState::Nothing,
        };
        if peer >= 0 {
            (receive.peer, receive.tag, receive.bytes) = (peer, tag, bytes);
        }
    }

    /// No call will complete what a request stands for.
    pub(super) fn settle(&mut self, request: &Request) {
        let (mut sends, mut receives, mut collectives) = (Vec::new(), Vec::new(), Vec::new());
        match &request.meaning {
            Meaning::Send { place, .. } => sends.push(*place),
            Meaning::Receive { place } => receives.push(*place),
            Meaning::Both { send, receive } => {
                sends.extend(send);
                receives.push(*receive);
            }
            Meaning::Collective { place } => collectives.push(*place),
            Meaning::PersistentSend { started, .. } => sends.extend(started),
            Meaning::PersistentReceive { started, .. } => receives.extend(started),
            Meaning::PersistentCollective { started, .. } => collectives.extend(started),
            Meaning::Other => {}
        }
        for place in sends {
            self.all.sends.get_mut(place).into_iter().for_each(|send| send.is_settled = true);
        }
        for place in receives {
            self.all.receives.get_mut(place).into_iter().for_each(|receive| receive.is_settled = true);
        }
        for place in collectives {
            let part = self.all.collectives.get_mut(place);
            part.into_iter().for_each(|collective| collective.is_settled = true);
        }
    }
}
