//! The selection of threads.

use omptrace_timeline::filter::ThreadName;

/// The threads that the user selected; all threads if empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectedThreads(pub(crate) Vec<String>);

impl SelectedThreads {
    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the thread with this name, position in its process and operating system id is selected.
    pub(crate) fn has(&self, name: &str, place: u32, os_tid: u32) -> bool {
        if self.is_all() {
            return true;
        }
        let thread = ThreadName { name: name.to_owned(), place, os_tid };
        self.0.iter().any(|wanted| thread.is_meant_by(wanted))
    }
}
