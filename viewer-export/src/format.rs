//! The formats that a timeline is exported to: one line per format.

use std::io;
use std::path::Path;

use crate::chrome::{self, Chrome};
use crate::otf2::{Otf2, Otf2Options};
use crate::output::Output;
use crate::perfetto::{self, Perfetto};
use crate::shard::Share;
use crate::text::Text;
use omptrace_timeline::sink::Sink;

/// An export format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What `--to` takes.
    pub name: &'static str,
    /// The usual end of its files' names.
    pub extension: &'static str,
    /// What it is good for, in one line.
    pub description: &'static str,
    /// Larger files, before compression, are more than a viewer can open.
    pub viewer_bytes: Option<u64>,
    /// Regions that lie in more others are left out, since viewers drop them.
    pub(crate) max_depth: Option<usize>,
    kind: Kind,
}

/// What a format is written into.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A file of records, which several sinks can write.
    Records {
        sink: fn(Output, Share) -> Box<dyn Sink>,
        /// What ends the file when all sinks were finished.
        end: fn(&Share) -> Vec<u8>,
    },
    File(fn(Output) -> Box<dyn Sink>),
    /// A folder that is empty, with the number of locations, about.
    Folder(fn(&Path, Otf2Options, usize) -> io::Result<Box<dyn Sink>>),
}

/// Perfetto's importer has room for 512.
const PERFETTO_DEPTH: Option<usize> = Some(500);

/// All formats, in the order of the help text.
pub const FORMATS: &[Format] = &[
    Format {
        name: "chrome",
        extension: "json",
        description: "Chrome trace events (JSON), for ui.perfetto.dev and chrome://tracing",
        // Catapult keeps the text as one string, of which V8 allows 2^29 - 24 characters.
        viewer_bytes: Some(500_000_000),
        max_depth: PERFETTO_DEPTH,
        kind: Kind::Records {
            sink: |out, share| Box::new(Chrome::new(out, share)),
            end: |_| chrome::END.to_vec(),
        },
    },
    Format {
        name: "perfetto",
        extension: "pftrace",
        description: "Perfetto's own format, for ui.perfetto.dev: a third of the bytes, and more to see",
        // The importer takes 150 bytes of memory per slice and 75 per argument; 4 GB is what 32 bits address.
        viewer_bytes: Some(800_000_000),
        max_depth: PERFETTO_DEPTH,
        kind: Kind::Records {
            sink: |out, share| Box::new(Perfetto::new(out, share)),
            end: perfetto::end,
        },
    },
    Format {
        name: "text",
        extension: "txt",
        description: "indented text, one block per thread, for reading and comparing",
        viewer_bytes: None,
        max_depth: None,
        kind: Kind::File(|out| Box::new(Text::new(out))),
    },
    Format {
        name: "otf2",
        extension: "otf2",
        description: "an OTF2 archive (a folder), for Vampir, Scalasca, Cube and other tools of HPC",
        viewer_bytes: None,
        max_depth: None,
        kind: Kind::Folder(|folder, options, locations| {
            Ok(Box::new(Otf2::new(folder, options, locations)?))
        }),
    },
];

impl Format {
    /// The format of that name.
    pub fn by_name(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Whether the format is a folder of files.
    pub fn is_folder(&self) -> bool {
        matches!(self.kind, Kind::Folder(_))
    }

    /// Whether several sinks can write a file of this format.
    pub(crate) fn has_shares(&self) -> bool {
        matches!(self.kind, Kind::Records { .. })
    }

    /// What ends a file that several sinks have written, of which `share` is one.
    pub(crate) fn end(&self, share: &Share) -> Vec<u8> {
        match self.kind {
            Kind::Records { end, .. } => end(share),
            Kind::File(_) | Kind::Folder(_) => Vec::new(),
        }
    }

    /// A sink that writes `share` of a file of this format into `out`.
    ///
    /// # Errors
    /// The format is a folder.
    pub(crate) fn sink(&self, out: Output, share: Share) -> io::Result<Box<dyn Sink>> {
        match self.kind {
            Kind::Records { sink, .. } => Ok(sink(out, share)),
            Kind::File(sink) => Ok(sink(out)),
            Kind::Folder(_) => Err(self.is_not("a file")),
        }
    }

    /// A sink that writes this format into `folder`, which is there and empty. `locations` is the number of them, about.
    ///
    /// # Errors
    /// The folder cannot be written to, or the format is a file.
    pub fn folder_sink(
        &self,
        folder: &Path,
        options: Otf2Options,
        locations: usize,
    ) -> io::Result<Box<dyn Sink>> {
        match self.kind {
            Kind::File(_) | Kind::Records { .. } => Err(self.is_not("a folder")),
            Kind::Folder(sink) => sink(folder, options, locations),
        }
    }

    fn is_not(&self, what: &str) -> io::Error {
        let text = format!("{} is not written into {what}", self.name);
        io::Error::new(io::ErrorKind::InvalidInput, text)
    }
}
