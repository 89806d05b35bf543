//! The formats that a timeline is exported to: one line per format.

use std::io::Write;

use crate::chrome::Chrome;
use crate::perfetto::Perfetto;
use crate::sink::Sink;
use crate::text::Text;

/// An export format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What `--to` takes.
    pub name: &'static str,
    /// The usual end of its files' names.
    pub extension: &'static str,
    /// What it is good for, in one line.
    pub description: &'static str,
    sink: fn(Box<dyn Write + Send>) -> Box<dyn Sink>,
}

/// All formats, in the order of the help text.
pub const FORMATS: &[Format] = &[
    Format {
        name: "chrome",
        extension: "json",
        description: "Chrome trace events (JSON), for ui.perfetto.dev and chrome://tracing",
        sink: |target| Box::new(Chrome::new(target)),
    },
    Format {
        name: "perfetto",
        extension: "pftrace",
        description: "Perfetto's own format, for ui.perfetto.dev: a fifth of the bytes, and more to see",
        sink: |target| Box::new(Perfetto::new(target)),
    },
    Format {
        name: "text",
        extension: "txt",
        description: "indented text, one block per thread, for reading and comparing",
        sink: |target| Box::new(Text::new(target)),
    },
];

impl Format {
    /// The format of that name.
    pub fn by_name(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// A sink that writes this format into `target`.
    pub fn sink(&self, target: Box<dyn Write + Send>) -> Box<dyn Sink> {
        (self.sink)(target)
    }
}
