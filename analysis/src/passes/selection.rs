//! Which threads are analysed.

use omptrace_timeline::filter::ThreadName;

/// The threads that the user names; all where none is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectedThreads(pub(crate) Vec<String>);

impl SelectedThreads {
    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the thread of this name, place in its process and number in the operating system is one.
    pub(crate) fn has(&self, name: &str, place: u32, os_tid: u32) -> bool {
        if self.is_all() {
            return true;
        }
        let thread = ThreadName { name: name.to_owned(), place, os_tid };
        self.0.iter().any(|wanted| thread.is_meant_by(wanted))
    }
}
