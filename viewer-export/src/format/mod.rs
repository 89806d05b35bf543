//! The export formats, one row per format.

pub(crate) mod convert_options;
pub(crate) mod options;

use std::io;
use std::path::Path;

use omptrace_timeline::model::Sink;

use crate::chrome::{self, Chrome};
use crate::firefox::Firefox;
use crate::folded::Folded;
use crate::format::options::{FolderParts, FormatOption, FormatOptions};
use crate::otf2::Otf2;
use crate::otf2::options as otf2_options;
use crate::otf2::options::Otf2Options;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::perfetto::{self, Perfetto};
use crate::phase_frames::{self, OPTIONS as PHASE_OPTIONS};
use crate::pprof::Pprof;
use crate::text::Text;
use crate::writer::output::Output;
use crate::writer::share::Share;

/// An export format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name for `--to`.
    pub name: &'static str,
    /// The usual file name extension.
    pub extension: &'static str,
    /// The purpose of the format, in one line.
    pub description: &'static str,
    /// Viewers cannot open larger files (size before compression).
    pub viewer_bytes: Option<u64>,
    /// Regions that are nested more deeply are left out, because viewers drop them.
    pub(crate) max_depth: Option<usize>,
    /// Whether the format contains only samples.
    pub needs_samples: bool,
    /// Options of this format only.
    pub options: &'static [FormatOption],
    kind: Kind,
}

/// What a format is written to.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A file of records, which several sinks can write.
    Records {
        sink: fn(Output, Share) -> Box<dyn Sink>,
        /// The end of the file, written after all sinks are finished.
        end: fn(&Share) -> Vec<u8>,
        /// Whether the file may consist of segments of a process that are written separately.
        has_segments: bool,
    },
    File(fn(Output, &FormatOptions) -> Box<dyn Sink>),
    /// A directory of files.
    Folder {
        /// Writes to an empty directory; receives the approximate number of locations.
        sink: fn(&Path, &FormatOptions, usize) -> io::Result<Box<dyn Sink>>,
        /// The files that an export may replace.
        parts: FolderParts,
    },
    /// A directory of tables, with separate files for each process.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "no other is there"))]
    Tables {
        /// The files that an export may replace.
        parts: FolderParts,
    },
}

/// Perfetto's importer supports 512 levels.
const PERFETTO_DEPTH: Option<usize> = Some(500);

/// All formats, in the order of the help text.
pub const FORMATS: &[Format] = &[
    Format {
        name: "chrome",
        extension: "json",
        description: "Chrome trace events (JSON), for ui.perfetto.dev and chrome://tracing",
        // Catapult keeps the text as a single string, which V8 limits to 2^29 - 24 characters.
        viewer_bytes: Some(500_000_000),
        max_depth: PERFETTO_DEPTH,
        needs_samples: false,
        options: &[],
        kind: Kind::Records {
            sink: |out, share| Box::new(Chrome::new(out, share)),
            end: |_| chrome::END.to_vec(),
            has_segments: false,
        },
    },
    Format {
        name: "perfetto",
        extension: "pftrace",
        description: "Perfetto's own format, for ui.perfetto.dev; a third of the size of Chrome's JSON, and more details",
        // The importer needs 150 bytes of memory per slice and 75 per argument, and a 32-bit address space has 4 GB.
        viewer_bytes: Some(800_000_000),
        max_depth: PERFETTO_DEPTH,
        needs_samples: false,
        options: &[],
        kind: Kind::Records {
            sink: |out, share| Box::new(Perfetto::new(out, share)),
            end: perfetto::end,
            has_segments: true,
        },
    },
    Format {
        name: "text",
        extension: "txt",
        description: "indented text, one block per thread, for reading and for comparing traces",
        viewer_bytes: None,
        max_depth: None,
        needs_samples: false,
        options: &[],
        kind: Kind::File(|out, _| Box::new(Text::new(out))),
    },
    Format {
        name: "firefox",
        extension: "firefox.json",
        description: "a profile for profiler.firefox.com, with the samples of each thread, and with regions as markers",
        viewer_bytes: Some(1_000_000_000),
        max_depth: None,
        needs_samples: true,
        options: &[],
        kind: Kind::File(|out, _| Box::new(Firefox::new(out))),
    },
    Format {
        name: "folded",
        extension: "folded",
        description: "folded stacks of samples, for flame graphs (flamegraph.pl, speedscope)",
        viewer_bytes: None,
        max_depth: None,
        needs_samples: true,
        options: PHASE_OPTIONS,
        kind: Kind::File(|out, options| Box::new(Folded::new(out, phase_frames::are_wanted(options)))),
    },
    Format {
        name: "pprof",
        extension: "pb.gz",
        description: "a profile for pprof (go tool pprof, speedscope, Grafana), with the threads and source lines of samples",
        viewer_bytes: None,
        max_depth: None,
        needs_samples: true,
        options: PHASE_OPTIONS,
        kind: Kind::File(|out, options| Box::new(Pprof::new(out, phase_frames::are_wanted(options)))),
    },
    Format {
        name: "otf2",
        extension: "otf2",
        description: "an OTF2 archive (a directory), for Vampir, Scalasca, Cube and other HPC tools",
        viewer_bytes: None,
        max_depth: None,
        needs_samples: false,
        options: otf2_options::OPTIONS,
        kind: Kind::Folder {
            sink: |folder, options, locations| {
                let options = Otf2Options::of(options);
                Ok(Box::new(Otf2::new(folder, options, locations)?))
            },
            parts: otf2_options::PARTS,
        },
    },
    #[cfg(feature = "parquet")]
    Format {
        name: "parquet",
        extension: "tables",
        description: "tables in Parquet files (a directory), for DuckDB, Spark, Polars, pandas and other SQL engines",
        viewer_bytes: None,
        max_depth: None,
        needs_samples: false,
        options: parquet::OPTIONS,
        kind: Kind::Tables { parts: parquet::PARTS },
    },
];

impl Format {
    /// The format with this name.
    pub fn by_name(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// The format whose files have this name, compressed or not; if there are two, the one with the longer extension.
    pub fn by_extension(path: &Path) -> Option<&'static Format> {
        let plain = |name: &str| name.strip_suffix(".gz").unwrap_or(name).to_owned();
        let name = path.file_name()?.to_str()?;
        let is_compressed = name.ends_with(".gz");
        let name = plain(name);
        let is_of = |format: &&Format| {
            let stem = name.strip_suffix(&plain(format.extension));
            let fits = stem.is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'));
            fits && !(is_compressed && format.is_folder())
        };
        let formats = FORMATS.iter().filter(is_of);
        formats.max_by_key(|format| format.extension.len())
    }

    /// Whether the format is a directory of files.
    pub fn is_folder(&self) -> bool {
        self.folder_parts().is_some()
    }

    /// The files of a directory format.
    pub fn folder_parts(&self) -> Option<&FolderParts> {
        match &self.kind {
            Kind::Folder { parts, .. } | Kind::Tables { parts } => Some(parts),
            Kind::Records { .. } | Kind::File(_) => None,
        }
    }

    /// Whether the format consists of tables: complete ones, from which engines select what they need.
    pub fn is_tables(&self) -> bool {
        matches!(self.kind, Kind::Tables { .. })
    }

    /// Whether the format supports a series of files that are each complete by themselves. Other formats keep all data
    /// until the end, or are directories.
    pub fn can_be_split(&self) -> bool {
        self.has_shares()
    }

    /// Whether several sinks can write a file of this format.
    pub(crate) fn has_shares(&self) -> bool {
        matches!(self.kind, Kind::Records { .. })
    }

    /// Whether a file of this format may consist of segments of a process.
    pub(crate) fn has_segments(&self) -> bool {
        matches!(self.kind, Kind::Records { has_segments, .. } if has_segments)
    }

    /// The end of a file that several sinks have written, one of them `share`.
    pub(crate) fn end(&self, share: &Share) -> Vec<u8> {
        match self.kind {
            Kind::Records { end, .. } => end(share),
            Kind::File(_) | Kind::Folder { .. } | Kind::Tables { .. } => Vec::new(),
        }
    }

    /// A sink that writes `share` of a file of this format to `out`.
    ///
    /// # Errors
    /// The format is a directory.
    pub(crate) fn sink(
        &self,
        out: Output,
        share: Share,
        options: &FormatOptions,
    ) -> io::Result<Box<dyn Sink>> {
        match self.kind {
            Kind::Records { sink, .. } => Ok(sink(out, share)),
            Kind::File(sink) => Ok(sink(out, options)),
            Kind::Folder { .. } | Kind::Tables { .. } => Err(self.is_not("a file")),
        }
    }

    /// A sink that writes this format to the existing, empty directory `folder`. `locations`: their approximate number.
    ///
    /// # Errors
    /// The directory is not writable, or the format is a file.
    pub fn folder_sink(
        &self,
        folder: &Path,
        options: &FormatOptions,
        locations: usize,
    ) -> io::Result<Box<dyn Sink>> {
        match self.kind {
            Kind::File(_) | Kind::Records { .. } | Kind::Tables { .. } => {
                Err(self.is_not("a directory by a single writer"))
            }
            Kind::Folder { sink, .. } => sink(folder, options, locations),
        }
    }

    fn is_not(&self, what: &str) -> io::Error {
        let text = format!("{} cannot be written to {what}", self.name);
        io::Error::new(io::ErrorKind::InvalidInput, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_format() {
        let of = |name: &str| Format::by_extension(Path::new(name)).map(|format| format.name);
        for format in FORMATS {
            assert_eq!(of(&format!("out/app.{}", format.extension)), Some(format.name));
        }
        assert_eq!(of("a.pftrace.gz"), Some("perfetto"));
        assert_eq!(of("a.firefox.json.gz"), Some("firefox"));
        assert_eq!(of("a.7.json.gz"), Some("chrome"));
        assert_eq!(of("a.pb"), Some("pprof"));
        for name in ["-", "a", "json", ".json", "a.otf2.gz", "a.gz", "a.svg", "a.json/.."] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
