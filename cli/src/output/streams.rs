//! stdout and stderr: nothing else writes to them, which `clippy.toml` sees to. What traces bring along never drives the
//! terminal that it is printed on.
//!
//! ```text
//! text for people ---> text ----> Printable ----------------------------> stdout
//! JSON, CSV, exports -> data ---> as it is; to a terminal, Printable ---> stdout
//! messages -----------> message - printable: one line for each ---------> stderr
//! ```
//!
//! Line breaks are those of the layout: tables, paragraphs and lines show those of names as escapes (`omptrace_symbols::printable`).

use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, Write};

use omptrace_symbols::printable::Printable;

/// The writer of text for people.
#[expect(clippy::disallowed_methods, reason = "it becomes printable")]
pub(crate) fn text() -> BufWriter<Printable<Stdout>> {
    BufWriter::new(Printable::new(io::stdout()))
}

/// The writer of what programs read: it comes as it is, but on a terminal.
#[expect(clippy::disallowed_methods, reason = "a terminal gets what is printable")]
pub(crate) fn data() -> Box<dyn Write + Send> {
    let stdout = io::stdout();
    match stdout.is_terminal() {
        true => Box::new(BufWriter::new(Printable::new(stdout))),
        false => Box::new(BufWriter::new(stdout)),
    }
}

/// stdout itself, to ask what it is.
#[expect(clippy::disallowed_methods, reason = "to ask what it is")]
pub(crate) fn stdout() -> Stdout {
    io::stdout()
}

/// stderr itself: for [`crate::output::message`], and to ask what it is.
#[expect(clippy::disallowed_methods, reason = "messages are made printable line by line")]
pub(crate) fn stderr() -> Stderr {
    io::stderr()
}
