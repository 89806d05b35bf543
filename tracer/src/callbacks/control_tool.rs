//! `omp_control_tool` (OpenMP 5.2, 18.14): the program starts, pauses, flushes and ends recording, and names phases.
//!
//! | command | what happens | answer |
//! | --- | --- | --- |
//! | 1 start | recording continues after a pause | success |
//! | 2 pause | callbacks give ids and store nothing | success |
//! | 3 flush | all events recorded so far are in the file | success |
//! | 4 end | nothing more is recorded | success |
//! | 64, 65 | a phase named by the string at `arg` begins, ends | success |
//! | above | an instant with number and modifier | success |
//! | other | recorded, and otherwise ignored | ignored |

use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use omptrace_device::memory;
use omptrace_trace_format::event::ControlTool;
use omptrace_trace_format::field::{Address, MonitoringChange, Text};

use crate::recorder::recorder::Mode;
use crate::session::cold_path;
use crate::session::{self, hooks};

/// `omp_control_tool_result_t`.
const SUCCESS: c_int = 0;
const IGNORED: c_int = 1;
/// Maximum length of a phase's name in bytes.
const MAX_NAME: usize = 256;

/// Set by command 4 (end) until the next session.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Executes `command` and records the call: after recording resumes, or before it stops.
pub(crate) fn control(command: u64, modifier: u64, arg: *mut c_void, codeptr_ra: *const c_void) -> c_int {
    let record = || {
        cold_path::wide(|_| ControlTool {
            command,
            modifier,
            arg: Address(arg as usize as u64),
            text: match command {
                64 | 65 => Text(memory::text(arg.cast(), MAX_NAME).map(Cow::Owned)),
                _ => Text(None),
            },
            codeptr_ra: Address(codeptr_ra as usize as u64),
        });
    };
    match command {
        1 => {
            resume();
            hooks::pause(false);
            record();
        }
        2 | 4 => {
            record();
            if command == 2 {
                hooks::pause(true);
            } else {
                hooks::stop();
            }
            stop(if command == 2 { MonitoringChange::pause } else { MonitoringChange::end });
        }
        3 => {
            record();
            hooks::flush();
            cold_path::with_session(|session, recorder| {
                session::report_monitoring(recorder, MonitoringChange::flush);
                session.flush(recorder);
            });
        }
        _ => {
            record();
            return if command >= 64 { SUCCESS } else { IGNORED };
        }
    }
    SUCCESS
}

fn resume() {
    // Relaxed: the program orders its own calls.
    if Mode::current() != Mode::Pause || ENDED.load(Ordering::Relaxed) {
        return;
    }
    if let Some(session) = session::current() {
        session.record();
        cold_path::with_session(|_, recorder| session::report_monitoring(recorder, MonitoringChange::resume));
    }
}

fn stop(change: MonitoringChange) {
    if change == MonitoringChange::end {
        ENDED.store(true, Ordering::Relaxed);
    }
    if Mode::current() == Mode::Record {
        cold_path::with_session(|_, recorder| session::report_monitoring(recorder, change));
        Mode::Pause.set();
    }
}

/// A new session records even if the previous one was paused.
pub(crate) fn reset() {
    ENDED.store(false, Ordering::Relaxed);
}
