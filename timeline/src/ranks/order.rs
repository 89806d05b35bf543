//! Waits for messages in the wrong order: while a message that was sent before has not been asked for.
//!
//! Which message was sent before, and when it is asked for, may be known only when more events were read.

use crate::model::Ns;
use crate::ranks::joints::{Joint, WaitKind};

/// The messages that a process gets, and its waits for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// When each message was sent, and when its receive was posted.
    messages: Vec<(Ns, Ns)>,
    /// The waits of which nothing is known so far.
    waits: Vec<Wait>,
}

/// A wait for a message.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Its place among the waits of the process.
    place: usize,
    begin: Ns,
    sent: Ns,
}

impl Order {
    /// A wait with this place, from `begin` for a message that is sent at some time.
    pub(super) fn wait(&mut self, place: usize, (begin, sent): (Ns, Ns)) {
        self.waits.push(Wait { place, begin, sent });
    }

    /// A message, and when its receive was posted.
    pub(super) fn message(&mut self, sent: Ns, posted: Ns) {
        self.messages.push((sent, posted));
    }

    /// Sets the kind of waits that are in the wrong order. Of messages that were sent before `known`, all are known.
    pub(super) fn decide(&mut self, known: Ns, waits: &mut [Joint]) {
        // When each is sent, and when the last receive is posted of those that were sent until then.
        self.messages.sort_unstable();
        let mut last = Ns::MIN;
        let latest = self.messages.iter().map(|(sent, posted)| {
            last = last.max(*posted);
            (*sent, last)
        });
        let latest: Vec<(Ns, Ns)> = latest.collect();
        self.waits.retain(|wait| {
            let before = latest.partition_point(|(other, _)| *other < wait.sent);
            let is_wrong = before.checked_sub(1).is_some_and(|last| latest[last].1 > wait.begin);
            if let Some(joint) = waits.get_mut(wait.place).filter(|_| is_wrong) {
                joint.kind = WaitKind::WrongOrder;
            }
            !is_wrong && known < wait.sent
        });
    }

    /// Forgets the messages that tell nothing about waits that begin at this time or later.
    pub(super) fn forget(&mut self, begin: Ns) {
        self.messages.retain(|(_, posted)| *posted > begin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two waits: from 100 for a message that is sent at 300, and from 400 for one that is sent at 500.
    fn waits() -> (Order, Vec<Joint>) {
        let joint =
            Joint { thread: 0, rank: 1, of_thread: 0, begin: 100, until: 300, kind: WaitKind::LateSender };
        let mut order = Order::default();
        order.wait(0, (100, 300));
        order.wait(1, (400, 500));
        (order, vec![joint, Joint { begin: 400, until: 500, ..joint }])
    }

    fn kinds(waits: &[Joint]) -> Vec<bool> {
        waits.iter().map(|wait| wait.kind == WaitKind::WrongOrder).collect()
    }

    #[test]
    fn a_message_that_is_received_much_later_decides_about_waits_before() {
        let (mut order, mut waits) = waits();
        // One that was sent at 350 is not received yet.
        order.message(300, 100);
        order.message(500, 400);
        order.decide(350, &mut waits);
        assert_eq!((kinds(&waits), order.waits.len()), (vec![false, false], 1));
        order.message(350, 900);
        order.decide(Ns::MAX, &mut waits);
        assert_eq!((kinds(&waits), order.waits.len()), (vec![false, true], 0));
    }

    #[test]
    fn messages_are_kept_only_for_waits_that_may_follow() {
        let (mut order, _) = waits();
        order.message(50, 120);
        order.message(60, 400);
        order.message(70, 401);
        order.forget(400);
        assert_eq!(order.messages, [(70, 401)]);
    }
}
