//! Plays a script, and reports what was played.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::argument::Slots;
use super::call::Call;
use super::report::lock;
pub use super::report::{PlayedRound, PlayedThread, Report};
use super::script::{End, How, Round, Script, Step};
use super::{callback_table, context, device, tool};
use crate::old::tr2;

/// Plays all rounds. If a round ends the process, `publish` gets the report before, and this function returns only for
/// [`How::Return`].
///
/// # Errors
/// The script names an unknown callback.
pub fn play(script: &Script, publish: impl Fn(&Report)) -> Result<(), String> {
    script.dialect.speak();
    if script.tr2.is_none() {
        callback_table::grant(&script.grants)?;
    }
    device::make(&script.devices)?;
    let mut report = Report::default();
    for round in &script.rounds {
        let version = &script.runtime_version;
        let tool = match script.tr2 {
            Some(entry) => tr2::activate(entry, version, &script.grants),
            None => tool::activate(version),
        };
        let stage = Stage::new(round);
        let threads = stage.play(round);
        wait_for(round.end, &threads);
        threads.iter().for_each(Performer::note_end);
        device::settle();
        if round.end.how == How::Finalize {
            let finalized = tool::finalize();
            let threads = threads.into_iter().map(Performer::join).collect();
            // Callbacks are no longer possible, so the tool may be unloaded.
            drop(finalized);
            let devices = device::played();
            report.rounds.push(PlayedRound { tool, threads, devices });
        } else {
            let threads = threads.iter().map(|thread| thread.played().clone()).collect();
            let devices = device::played();
            report.rounds.push(PlayedRound { tool, threads, devices });
            publish(&report);
            return end_process(round.end.how);
        }
    }
    publish(&report);
    Ok(())
}

/// Waits until the round should end.
fn wait_for(end: End, threads: &[Performer]) {
    let is_time = |thread: &Performer| {
        thread.is_done() || end.after_calls.is_some_and(|calls| thread.played().played.len() >= calls)
    };
    while !threads.iter().all(is_time) {
        thread::sleep(Duration::from_micros(50));
    }
}

fn end_process(how: How) -> Result<(), String> {
    match how {
        How::Finalize | How::Return => Ok(()),
        How::Exit => std::process::exit(0),
        // SAFETY: only ends the process.
        How::QuickExit => unsafe { libc::_exit(0) },
        How::Abort => std::process::abort(),
    }
}

/// The state that the threads of a round share.
#[derive(Debug)]
struct Stage {
    slots: Slots,
    /// By step number.
    barriers: BTreeMap<u32, Barrier>,
    /// Where all threads wait at the end, so that no thread id is reused.
    curtain: Barrier,
}

impl Stage {
    fn new(round: &Round) -> Arc<Stage> {
        let mut highest_slot = None;
        let mut meetings = BTreeMap::new();
        for steps in &round.threads {
            let mut numbers = Vec::new();
            look_through(steps, &mut highest_slot, &mut numbers);
            numbers.sort_unstable();
            numbers.dedup();
            numbers.iter().for_each(|number| *meetings.entry(*number).or_insert(0) += 1);
        }
        Arc::new(Stage {
            slots: Slots::new(highest_slot.map_or(0, |slot| slot as usize + 1)),
            barriers: meetings.into_iter().map(|(number, threads)| (number, Barrier::new(threads))).collect(),
            curtain: Barrier::new(round.threads.len()),
        })
    }

    fn play(self: &Arc<Stage>, round: &Round) -> Vec<Performer> {
        let start = |steps: &Vec<Step>| {
            let played = Arc::new(Mutex::new(PlayedThread::default()));
            let (stage, log, steps) = (self.clone(), played.clone(), steps.clone());
            let done = Arc::new(());
            let witness = done.clone();
            let handle = thread::spawn(move || {
                // SAFETY: only queries the kernel.
                lock(&log).os_tid = unsafe { libc::gettid() };
                stage.take(&steps, &log);
                drop(witness);
                stage.curtain.wait();
            });
            Performer { handle, played, done }
        };
        round.threads.iter().map(start).collect()
    }

    fn take(&self, steps: &[Step], log: &Mutex<PlayedThread>) {
        for step in steps {
            match step {
                Step::Sync(number) => {
                    self.barriers[number].wait();
                }
                Step::Repeat { times, steps } => (0..*times).for_each(|_| self.take(steps, log)),
                Step::Call(call) => self.make(call, log),
                Step::Tr2(event) => lock(log).played.extend(event.play()),
                Step::Collect(event) => lock(log).played.extend(event.play()),
                Step::Fork(fork) => {
                    let children = fork.play(|steps, log| self.take(steps, log));
                    lock(log).children.extend(children);
                }
                Step::Offload(offload) => offload.play(&self.slots, |call| self.make(call, log)),
                Step::Storm { device, records } => device::storm(*device, *records),
            }
        }
    }

    fn make(&self, call: &Call, log: &Mutex<PlayedThread>) {
        if let Call::DeviceInitialize { device_num, .. } | Call::DeviceFinalize { device_num } = call
            && device::is_unannounced(*device_num)
        {
            return;
        }
        if let Call::DeviceFinalize { device_num } = call {
            device::finalizes(*device_num);
        }
        context::enter(call, &self.slots);
        let made = call.make(&self.slots);
        context::leave(call, &self.slots);
        if matches!(call, Call::DeviceUnload { .. }) {
            device::unloaded();
        }
        let Some((line, returned)) = made else {
            return;
        };
        let mut log = lock(log);
        if call.name() == "control_tool" {
            log.control_tool_results.push(returned);
        }
        log.played.push(line);
    }
}

/// Collects the highest slot and the numbers of the synchronization steps in `steps`.
fn look_through(steps: &[Step], highest_slot: &mut Option<u32>, meetings: &mut Vec<u32>) {
    for step in steps {
        match step {
            Step::Call(call) => *highest_slot = (*highest_slot).max(call.highest_slot()),
            Step::Sync(number) => meetings.push(*number),
            Step::Offload(offload) => *highest_slot = (*highest_slot).max(Some(offload.highest_slot())),
            Step::Fork(fork) => look_through(&fork.steps, highest_slot, meetings),
            Step::Tr2(_) | Step::Collect(_) | Step::Storm { .. } => {}
            Step::Repeat { steps, .. } => look_through(steps, highest_slot, meetings),
        }
    }
}

/// A thread of a round.
#[derive(Debug)]
struct Performer {
    handle: thread::JoinHandle<()>,
    played: Arc<Mutex<PlayedThread>>,
    /// Shared with the thread until it has played its last step.
    done: Arc<()>,
}

impl Performer {
    fn is_done(&self) -> bool {
        Arc::strong_count(&self.done) == 1
    }

    fn played(&self) -> MutexGuard<'_, PlayedThread> {
        lock(&self.played)
    }

    fn note_end(&self) {
        let mut played = self.played();
        played.played_before_end = played.played.len();
    }

    fn join(self) -> PlayedThread {
        self.handle.join().expect("no step panics");
        lock(&self.played).clone()
    }
}
