//! A conversion with what is said about it: its progress, where the export is, and what it lacks.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use omptrace_timeline::Report;
use omptrace_timeline::model::Ns;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{
    ConvertOptions, FolderParts, Format, convert, convert_split, convert_to_folder,
};
use parking_lot::Mutex;

use crate::output::failure::{Failure, Result};
use crate::output::gaps::report_gaps;
use crate::output::message;
use crate::output::output_path::{Target, cannot_write};
use crate::output::progress;
use crate::output::replace_folder::Folder;

/// A conversion that is about to be made.
pub(crate) struct Conversion<'r> {
    /// The traces.
    pub(crate) inputs: Vec<&'r Reader>,
    /// The format.
    pub(crate) format: &'static Format,
    /// The rest.
    pub(crate) options: ConvertOptions,
}

impl Conversion<'_> {
    /// Converts into one file, or to stdout.
    ///
    /// # Errors
    /// The output cannot be written, or holds what must not be replaced.
    pub(crate) fn to_one(&self, output: &Path, readers: &[Reader]) -> Result<()> {
        let target = Target::open(output, &paths(readers))?;
        let report = self
            .with_progress(|progress| {
                let writer = target.writer()?;
                convert(&self.inputs, self.format, &self.options, writer, progress)
            })
            .map_err(cannot_write(output))?;
        print_written(output, target)?;
        self.print_size(report.exported_bytes);
        self.print_window(report.end);
        report_gaps(&report);
        Ok(())
    }

    /// Converts into a folder of the format's parts.
    ///
    /// # Errors
    /// The output cannot be written, or holds what must not be replaced.
    pub(crate) fn to_folder(&self, output: &Path, parts: &FolderParts, readers: &[Reader]) -> Result<()> {
        let is_part = self.options.part.is_some();
        let folder = Folder::open(output, *parts, is_part, readers)?;
        let report = self
            .with_progress(|progress| {
                convert_to_folder(&self.inputs, self.format, &self.options, folder.path(), progress)
            })
            .map_err(cannot_write(output))?;
        let bytes = folder.finish().map_err(cannot_write(output))?;
        message::note(&format!("{}: {}", output.display(), message::bytes(bytes)));
        self.print_window(report.end);
        report_gaps(&report);
        Ok(())
    }

    /// Converts into files of about this size, each complete by itself.
    ///
    /// # Errors
    /// The output cannot be written, or holds what must not be replaced.
    pub(crate) fn to_series(&self, output: &Path, limit_bytes: u64, readers: &[Reader]) -> Result<()> {
        if output == Path::new("-") {
            return Err(
                Failure::new("several files cannot be written to stdout").hint("give a file name with -o")
            );
        }
        // Said before anything is written: whether the first can be.
        let first = numbered(output, 1);
        let targets = Arc::new(Mutex::new(vec![(first.clone(), Target::open(&first, &paths(readers))?)]));
        let series = Arc::clone(&targets);
        let output = output.to_owned();
        let next_file = move |number: usize| {
            let mut series = series.lock();
            if number > series.len() {
                let path = numbered(&output, number);
                let target =
                    Target::open(&path, &[]).map_err(|failure| io::Error::other(failure.to_string()))?;
                series.push((path, target));
            }
            series[number - 1].1.writer()
        };
        let report = self
            .with_progress(|progress| {
                let next_file = Box::new(next_file);
                convert_split(&self.inputs, self.format, &self.options, limit_bytes, next_file, progress)
            })
            .map_err(cannot_write(&first))?;
        for (path, target) in std::mem::take(&mut *targets.lock()) {
            print_written(&path, target)?;
        }
        if report.cut_arrows > 0 {
            let arrows = message::number(report.cut_arrows);
            message::note(&format!("arrows from one file to another were left out: {arrows}"));
        }
        self.print_window(report.end);
        report_gaps(&report);
        Ok(())
    }

    /// Converts into a file without a name.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn to_file(&self, file: &File) -> io::Result<Report> {
        let report = self.with_progress(|progress| {
            let writer = Box::new(file.try_clone()?);
            convert(&self.inputs, self.format, &self.options, writer, progress)
        })?;
        self.print_size(report.exported_bytes);
        self.print_window(report.end);
        report_gaps(&report);
        Ok(report)
    }

    fn with_progress(
        &self,
        convert: impl FnOnce(&mut (dyn FnMut(u64) + Send)) -> io::Result<Report>,
    ) -> io::Result<Report> {
        let bar = progress::events("converting", about_events(&self.inputs));
        let report = convert(&mut |events| bar.set_position(events));
        bar.finish_and_clear();
        report
    }

    /// Warns that nothing is in the window, for the timeline ends before it.
    fn print_window(&self, end: Ns) {
        if let Some((begin, _)) = self.options.selection.window
            && begin > end
        {
            message::warning(&format!("the window is empty: the timeline ends at {}s", end as f64 / 1e9));
        }
    }

    /// Warns that a file is more than viewers can open.
    fn print_size(&self, bytes: u64) {
        if self.format.viewer_bytes.is_some_and(|most| bytes > most) {
            message::warning(&format!(
                "the output has a size of {}, which is more than viewers can open in {} format",
                message::bytes(bytes),
                self.format.name
            ));
            message::hint(
                "to reduce the size, use --window 2.0s..2.5s, --min-duration 10us, --thread NAME or --args none; to write several files, use --split 500M",
            );
        }
    }
}

fn paths(readers: &[Reader]) -> Vec<&Path> {
    readers.iter().map(Reader::path).collect()
}

/// The file of that number in a series: `app-001.json.gz`.
fn numbered(output: &Path, number: usize) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extensions) = match name.trim_start_matches('.').find('.') {
        Some(_) if name.ends_with(".gz") => {
            let inner = name.trim_end_matches(".gz");
            name.split_at(inner.rfind('.').unwrap_or(inner.len()))
        }
        Some(_) => name.split_at(name.rfind('.').unwrap_or(name.len())),
        None => (&name[..], ""),
    };
    output.with_file_name(format!("{stem}-{number:03}{extensions}"))
}

/// The target is complete: says where it is.
fn print_written(path: &Path, target: Target) -> Result<()> {
    if let Some(bytes) = target.finish().map_err(cannot_write(path))? {
        message::note(&format!("{}: {}", path.display(), message::bytes(bytes)));
    }
    Ok(())
}

/// How many events there are: the files give bytes, and most events take eight to ten.
pub(crate) fn about_events(readers: &[&Reader]) -> u64 {
    const USUAL_BYTES: u64 = 9;

    readers.iter().map(|reader| reader.summary().event_bytes / USUAL_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_series_keep_their_extensions() {
        let name = |path: &str| numbered(Path::new(path), 7).display().to_string();
        assert_eq!(name("out/app.4242.json.gz"), "out/app.4242-007.json.gz");
        assert_eq!(name("app.pftrace"), "app-007.pftrace");
        assert_eq!(name("app"), "app-007");
        assert_eq!(name("v1.0/app"), "v1.0/app-007");
    }
}
