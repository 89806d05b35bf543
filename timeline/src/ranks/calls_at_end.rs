//! What the calls wait for that threads are in when the trace ends.

use omptrace_trace_format::field::CallClass;

use crate::ranks::calls::{Calls, OpenCall};
use crate::ranks::open_call;
use crate::ranks::requests::{Meaning, Posted};

impl Calls {
    /// What a call that is open waits for.
    pub(super) fn open_call(&self, call: &OpenCall) -> open_call::OpenCall {
        let mut open = open_call::OpenCall { function: call.function, ..open_call::OpenCall::default() };
        match (&call.posted, call.class) {
            (Posted::Send { place }, CallClass::send) => open.sends.push(*place),
            (Posted::Receive { place }, CallClass::receive | CallClass::probe) => open.receives.push(*place),
            (Posted::Both { send, receive }, _) => {
                open.sends.extend(send);
                open.receives.push(*receive);
            }
            (Posted::Collective { place }, CallClass::collective) => open.collectives.push(*place),
            (Posted::Fence { place }, _) => open.fences.push(*place),
            _ => {}
        }
        for (handle, number) in &call.awaited {
            let mut requests = self.requests.get(handle).into_iter().flatten();
            let Some(request) = requests.find(|request| request.number == *number) else { continue };
            match &request.meaning {
                Meaning::Send { place, .. } => open.sends.push(*place),
                Meaning::Receive { place } => open.receives.push(*place),
                Meaning::Both { send, receive } => {
                    open.sends.extend(send);
                    open.receives.push(*receive);
                }
                Meaning::Collective { place } => open.collectives.push(*place),
                Meaning::PersistentSend { started, .. } => open.sends.extend(started.front()),
                Meaning::PersistentReceive { started, .. } => open.receives.extend(started.front()),
                Meaning::PersistentCollective { started, .. } => open.collectives.extend(started.front()),
                Meaning::Other => {}
            }
        }
        open
    }
}
