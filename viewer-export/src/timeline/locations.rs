//! The threads of a process: which there are, what they are called, in which order people expect them.

use ompt_sys as ompt;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::reader::Reader;

/// Events at the start of a stream among which its thread introduces itself.
const INTRODUCTION: usize = 8;

/// A stream's thread, as far as the start of its stream tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadIntroduction {
    pub(crate) stream: u32,
    pub(crate) os_tid: u32,
    /// The operating system's name of the thread; empty where it is not known.
    pub(crate) os_name: String,
    /// Why the thread exists; `None` where it never said so.
    pub(crate) thread_type: Option<ompt::ompt_thread_t>,
    /// What people call it; unique within the process.
    pub(crate) name: String,
}

/// The threads of all streams, in the order of [`Reader::streams`], named.
pub(crate) fn introductions(reader: &Reader) -> Vec<ThreadIntroduction> {
    let mut threads: Vec<ThreadIntroduction> = reader
        .streams()
        .iter()
        .map(|stream| introduction(reader, stream))
        .collect();
    name(&mut threads, reader.header().pid);
    threads
}

fn introduction(
    reader: &Reader,
    stream: &omptrace_trace_format::reader::Stream,
) -> ThreadIntroduction {
    let mut thread = ThreadIntroduction {
        stream: stream.number,
        ..Default::default()
    };
    for record in reader.events(stream).take(INTRODUCTION) {
        match record.event {
            Event::ThreadInfo(info) => {
                thread.os_tid = u32::try_from(info.os_tid).unwrap_or(0);
                thread.os_name = info.name.lossy().into_owned();
            }
            Event::ThreadBegin(begin) => thread.thread_type = Some(begin.thread_type),
            _ => {}
        }
    }
    thread
}

fn name(threads: &mut [ThreadIntroduction], pid: u32) {
    let (mut initial, mut workers, mut others) = (1, 0, 0);
    let main = main_thread(threads, pid);
    for (index, thread) in threads.iter_mut().enumerate() {
        thread.name = match thread.thread_type {
            _ if Some(index) == main => "main".to_owned(),
            Some(ompt::ompt_thread_initial) => numbered("initial thread", &mut initial),
            Some(ompt::ompt_thread_worker) => numbered("OpenMP worker", &mut workers),
            _ => numbered("thread", &mut others),
        };
    }
}

fn numbered(what: &str, count: &mut u32) -> String {
    *count += 1;
    format!("{what} {count}")
}

/// The thread whose id is the process's; where no thread has it, the first that is initial.
fn main_thread(threads: &[ThreadIntroduction], pid: u32) -> Option<usize> {
    let is_initial =
        |thread: &ThreadIntroduction| thread.thread_type == Some(ompt::ompt_thread_initial);
    threads
        .iter()
        .position(|thread| thread.os_tid == pid && pid != 0)
        .or_else(|| threads.iter().position(is_initial))
}

/// The places of `threads` in the order of display: main, further initial threads, workers, the rest.
pub(crate) fn display_order(threads: &[ThreadIntroduction]) -> Vec<usize> {
    let rank = |thread: &ThreadIntroduction| match thread.thread_type {
        _ if thread.name == "main" => 0,
        Some(ompt::ompt_thread_initial) => 1,
        Some(ompt::ompt_thread_worker) => 2,
        _ => 3,
    };
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|index| rank(&threads[*index]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_named_by_their_role() {
        let thread = |stream, os_tid, thread_type| ThreadIntroduction {
            stream,
            os_tid,
            thread_type,
            ..Default::default()
        };
        let mut threads = vec![
            thread(1, 11, Some(ompt::ompt_thread_initial)),
            thread(2, 12, Some(ompt::ompt_thread_worker)),
            thread(3, 10, Some(ompt::ompt_thread_initial)),
            thread(4, 13, None),
            thread(5, 14, Some(ompt::ompt_thread_worker)),
        ];
        name(&mut threads, 10);
        let names: Vec<&str> = display_order(&threads)
            .into_iter()
            .map(|index| &threads[index].name[..])
            .collect();
        assert_eq!(
            names,
            [
                "main",
                "initial thread 2",
                "OpenMP worker 1",
                "OpenMP worker 2",
                "thread 1"
            ]
        );
    }
}
