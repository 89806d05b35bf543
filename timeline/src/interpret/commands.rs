//! The old form of data operations, the user's control commands, and pauses of the recording.

use super::*;

impl Interpreter<'_, '_> {
    pub(super) fn target_data_op(&mut self, thread: usize, time: Ns, e: &TargetDataOp) {
        let op = self.dialect.data_op(e);
        let construct = Construct::TargetDataOp(op.optype);
        let arguments = arguments![
            "bytes": uint(op.bytes),
            "src_device_num": int(op.src_device_num),
            "dest_device_num": int(op.dest_device_num),
            "host_op_id": hex(op.host_op_id),
        ];
        match op.endpoint {
            Some(endpoint) => {
                let scope = Scope::new(endpoint, construct).with_key(op.host_op_id).at(op.codeptr_ra);
                self.scope(thread, time, scope, arguments);
                // An event with start and end contains as much as the newer form.
                let newer = TargetDataOpEmi {
                    endpoint,
                    target_task_data: Id::NULL,
                    target_data: Id::NULL,
                    host_op_id: Id(op.host_op_id),
                    optype: op.optype,
                    src_addr: op.src_addr,
                    src_device_num: op.src_device_num,
                    dest_addr: op.dest_addr,
                    dest_device_num: op.dest_device_num,
                    bytes: op.bytes,
                    codeptr_ra: op.codeptr_ra,
                };
                let at = self.threads[thread].point(time);
                self.devices.data_op(self.stage, thread, at, &newer);
            }
            None => self.instant(thread, time, construct, op.codeptr_ra, arguments),
        }
    }

    /// Commands 64 and 65 start and end a phase of the user, by name.
    pub(super) fn control_tool(&mut self, thread: usize, time: Ns, e: &ControlTool<'_>) {
        const PHASE_BEGIN: u64 = 64;
        const PHASE_END: u64 = 65;
        let name = e.text.lossy();
        match e.command {
            PHASE_BEGIN => {
                let name = phase_name(&name);
                let region = self.stage.names.named(self.stage.sink, Construct::Phase, name.clone());
                self.note_phase(region, &name);
                let frame = Frame::new(Construct::Phase, region.0.into(), region);
                self.threads[thread].open(self.stage, time, frame, arguments!["modifier": uint(e.modifier)]);
            }
            PHASE_END => self.phase_end(thread, time, &name),
            _ => {
                let arguments = arguments!["command": uint(e.command), "modifier": uint(e.modifier)];
                self.instant(thread, time, Construct::ControlTool, e.codeptr_ra, arguments);
            }
        }
    }

    /// If there is no name, ends the newest phase of the thread.
    fn phase_end(&mut self, thread: usize, time: Ns, name: &str) {
        let key = if name.is_empty() {
            let phases = |frame: &&Frame| frame.construct == Construct::Phase;
            self.threads[thread].stack().iter().rev().find(phases).map_or(0, |frame| frame.key)
        } else {
            self.stage.names.named(self.stage.sink, Construct::Phase, phase_name(name)).0.into()
        };
        self.close(thread, time, Construct::Phase, key);
    }

    /// An event of a newer tracer, whose own table contains the event's name.
    pub(super) fn unknown(&mut self, thread: usize, time: Ns, e: &UnknownEvent) {
        self.repair(thread, time, Cause::UnknownEvent);
        let row = self.schema.iter().find(|row| row.number == e.number);
        let name = row.map_or("unknown event", |row| &row.name).to_owned();
        let stage = &mut *self.stage;
        let region = stage.names.named(stage.sink, Construct::Unknown, name);
        let at = self.threads[thread].instant(time);
        let number = arguments!["number": uint(e.number)];
        self.stage.instant(at, region, number);
    }

    pub(super) fn monitoring(&mut self, thread: usize, time: Ns, change: MonitoringChange) {
        match change {
            MonitoringChange::pause | MonitoringChange::end => {
                self.recording.paused_since.get_or_insert(time);
                self.counting.paused();
                self.devices.paused(time);
                self.thread_event(thread, time, ThreadEvent::Recording { on: false });
            }
            MonitoringChange::resume => {
                // Regions that ended during the pause are reported later, but ended at its start.
                let at = self.threads[thread].point_ahead(time);
                let event = ThreadEvent::Recording { on: true };
                self.stage.thread_event(at, event);
                self.devices.resumed(time);
                if let Some(begin) = self.recording.paused_since.take() {
                    self.recording_was_off(begin, time);
                    self.stage.pause = Some((begin, time));
                }
            }
            // The command starts the session, or flushes buffers, which changes nothing.
            _ => {}
        }
    }

    pub(super) fn recording_was_off(&mut self, begin: Ns, end: Ns) {
        if begin >= end {
            return;
        }
        let stage = &mut *self.stage;
        let new_track = || stage.location(LocationKind::Track, "recording".to_owned());
        let track = *self.recording.track.get_or_insert_with(new_track);
        stage.interval(Interval {
            track,
            name: "recording off",
            category: Category::Omptrace,
            begin,
            end,
            arguments: &[],
            work: None,
        });
    }
}

fn phase_name(name: &str) -> String {
    if name.is_empty() { "phase".to_owned() } else { name.to_owned() }
}
