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
    /// Larger files, before compression, are more than a viewer bears.
    pub viewer_bytes: Option<u64>,
    sink: fn(Box<dyn Write + Send>) -> Box<dyn Sink>,
}

/// All formats, in the order of the help text.
pub const FORMATS: &[Format] = &[
    Format {
        name: "chrome",
        extension: "json",
        description: "Chrome trace events (JSON), for ui.perfetto.dev and chrome://tracing",
        // Catapult keeps the text as one string, of which V8 allows 2^29 - 24 characters.
        viewer_bytes: Some(500_000_000),
        sink: |target| Box::new(Chrome::new(target)),
    },
    Format {
        name: "perfetto",
        extension: "pftrace",
        description: "Perfetto's own format, for ui.perfetto.dev: a quarter of the bytes, and more to see",
        // The importer takes 150 bytes of memory per slice and 75 per argument; 4 GB is what 32 bits address.
        viewer_bytes: Some(800_000_000),
        sink: |target| Box::new(Perfetto::new(target)),
    },
    Format {
        name: "text",
        extension: "txt",
        description: "indented text, one block per thread, for reading and comparing",
        viewer_bytes: None,
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
