//! What each call of a process does, for formats that show messages.
//!
//! An entry says which call, and where in [`ProcessCalls`] to find what it does: 24 bytes for each.

use crate::model::{Collective, CommunicatorId, Message, MpiEvent, Ns, OtherEnd, RequestId, Root};
use crate::ranks::communicators::Communicators;
use crate::ranks::posting::Posting;
use crate::ranks::process_calls::{self as calls, ProcessCalls, ReceiveState};

/// The events within the calls of one process.
#[derive(Debug, Default)]
pub(crate) struct CallEvents {
    /// By thread, begin of the call, and whether they come at its end.
    entries: Vec<Entry>,
    calls: ProcessCalls,
    /// The number in the job of each communicator.
    communicators: Vec<Option<CommunicatorId>>,
}

/// Where in a call events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// It has begun.
    Begin,
    /// It is about to end.
    End,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    begin: Ns,
    thread: u32,
    place: u32,
    moment: Moment,
    what: What,
}

/// What an entry's place is that of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Send,
    Receive,
    Collective,
    Communicator,
}

impl Entry {
    fn begins(of: Posting, what: What, place: u32) -> Entry {
        Entry { begin: of.begin, thread: of.thread, place, moment: Moment::Begin, what }
    }

    fn ends(of: Posting, what: What, place: u32) -> Entry {
        Entry { moment: Moment::End, ..Entry::begins(of, what, place) }
    }
}

impl CallEvents {
    /// Those of the process at this place of the job.
    pub(super) fn of(process: usize, calls: ProcessCalls, communicators: &Communicators) -> CallEvents {
        let numbers = (0..calls.communicators.len() as u32)
            .map(|place| communicators.number(process, place).map(CommunicatorId));
        let communicators = numbers.collect();
        let mut entries = Vec::new();
        for (place, send) in calls.sends.iter() {
            entries.push(Entry::begins(send.posted, What::Send, place));
            let done = send.done.filter(|_| send.request.is_some());
            entries.extend(done.map(|done| Entry::ends(done.posting(), What::Send, place)));
        }
        for (place, receive) in calls.receives.iter().filter(|(_, receive)| !receive.is_probe) {
            if receive.request.is_some() {
                entries.push(Entry::begins(receive.posted, What::Receive, place));
            }
            entries.extend(receive.done.map(|done| Entry::ends(done.posting(), What::Receive, place)));
        }
        for (place, collective) in calls.collectives.iter() {
            entries.push(Entry::begins(collective.posted, What::Collective, place));
            let done = collective.wait;
            entries.extend(done.map(|done| Entry::ends(done.posting(), What::Collective, place)));
        }
        for (place, communicator) in (0..).zip(&calls.communicators) {
            let (made, freed) = (communicator.made, communicator.freed);
            entries.extend(made.map(|made| Entry::ends(made, What::Communicator, place)));
            entries.extend(freed.map(|freed| Entry::begins(freed, What::Communicator, place)));
        }
        // What is equal stays in its order.
        entries.sort_by_key(|entry| (entry.thread, entry.begin, entry.moment));
        CallEvents { entries, calls, communicators }
    }

    /// The same, of communicators whose numbers begin at `first`.
    pub(super) fn numbered_from(mut self, first: u32) -> CallEvents {
        self.communicators.iter_mut().flatten().for_each(|number| number.0 += first);
        self
    }

    /// Those of the call that a thread began at this time.
    pub(crate) fn of_call(&self, thread: usize, begin: Ns, moment: Moment) -> impl Iterator<Item = MpiEvent> {
        let key = (u32::try_from(thread).unwrap_or(u32::MAX), begin, moment);
        let key_of = |entry: &Entry| (entry.thread, entry.begin, entry.moment);
        let first = self.entries.partition_point(|entry| key_of(entry) < key);
        let all = self.entries[first..].iter().take_while(move |entry| key_of(entry) == key);
        all.filter_map(|entry| self.event(*entry))
    }

    /// The communicator that has this handle at this time.
    pub(crate) fn communicator(&self, handle: u64, time: Ns) -> Option<CommunicatorId> {
        let place = self.calls.objects.communicator(handle, time)?;
        self.number(place)
    }

    /// All communicators of the process, in the order in which they were made.
    pub(crate) fn communicators(&self) -> impl Iterator<Item = CommunicatorId> {
        self.communicators.iter().copied().flatten()
    }

    fn number(&self, place: u32) -> Option<CommunicatorId> {
        *self.communicators.get(place as usize)?
    }

    fn event(&self, entry: Entry) -> Option<MpiEvent> {
        let place = entry.place as usize;
        let is_begin = entry.moment == Moment::Begin;
        match entry.what {
            What::Send => self.send(&self.calls.sends[place], is_begin),
            What::Receive => self.receive(&self.calls.receives[place], is_begin),
            What::Collective => self.collective(&self.calls.collectives[place], is_begin),
            What::Communicator => {
                let communicator = self.number(entry.place)?;
                Some(if is_begin { MpiEvent::Freed(communicator) } else { MpiEvent::Created(communicator) })
            }
        }
    }

    fn send(&self, send: &calls::Send, is_begin: bool) -> Option<MpiEvent> {
        let request = send.request.map(RequestId);
        let message = Message {
            communicator: self.number(send.communicator)?,
            peer: u32::try_from(send.peer).ok()?,
            peer_in_world: send.peer_in_world,
            tag: send.tag,
            bytes: send.bytes,
            other: send.other.map(other),
        };
        match (is_begin, request) {
            // It has failed.
            (true, None) if send.is_cancelled => None,
            (true, request) => Some(MpiEvent::Send(message, request)),
            (false, request) if send.is_cancelled => request.map(MpiEvent::Cancelled),
            (false, request) => request.map(MpiEvent::SendComplete),
        }
    }

    fn receive(&self, receive: &calls::Receive, is_begin: bool) -> Option<MpiEvent> {
        let request = receive.request.map(RequestId);
        let communicator = self.number(receive.communicator)?;
        if is_begin {
            return request.map(MpiEvent::ReceiveRequest);
        }
        if receive.state != ReceiveState::Complete {
            // It is over all the same.
            return request.map(MpiEvent::Cancelled);
        }
        let message = Message {
            communicator,
            peer: u32::try_from(receive.peer).ok()?,
            peer_in_world: receive.peer_in_world,
            tag: receive.tag,
            bytes: receive.bytes,
            other: receive.other.map(other),
        };
        Some(MpiEvent::Receive(message, request))
    }

    fn collective(&self, collective: &calls::Collective, is_begin: bool) -> Option<MpiEvent> {
        /// As the tracer writes them.
        const PROC_NULL: i32 = -2;
        const ROOT: i32 = -3;

        let request = collective.request.map(RequestId);
        let part = Collective {
            number: collective.number?,
            communicator: self.number(collective.communicator)?,
            function: collective.function,
            root: match collective.root {
                ROOT => Root::This,
                PROC_NULL => Root::OfGroup,
                root => u32::try_from(root).map_or(Root::None, Root::Rank),
            },
            sent: collective.sent,
            received: collective.received,
            posted: collective.posted.begin,
        };
        Some(match (is_begin, request) {
            (true, None) => MpiEvent::CollectiveBegin(part),
            (true, Some(request)) => MpiEvent::CollectiveRequest(part, request),
            (false, None) => MpiEvent::CollectiveEnd(part),
            (false, Some(request)) => MpiEvent::CollectiveComplete(part, request),
        })
    }
}

fn other(other: calls::Match) -> OtherEnd {
    OtherEnd { message: other.message, time: other.time }
}
