//! The part of HTTP that one browser needs for a few files: one request per connection, GET and OPTIONS, no bodies of
//! requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A client that says nothing for this long is dropped.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A longer head is no browser's: it would fill the memory.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// Browsers send about 20 headers.
const MAX_HEADERS: usize = 100;

/// A client's request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path, without query and fragment.
    pub(super) path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// It is none, or does not come.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Request> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut input = BufReader::new(stream.take(MAX_HEAD_BYTES));
        let mut head = Vec::new();
        loop {
            let line = head.len();
            input.read_until(b'\n', &mut head)?;
            match &head[line..] {
                b"\r\n" | b"\n" => break,
                [.., b'\n'] => {}
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(&head);
        parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Ok(Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: request
                .headers
                .iter()
                .map(|header| (header.name.to_owned(), text(header.value)))
                .collect(),
        })
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |header: &&(String, String)| header.0.eq_ignore_ascii_case(name);
        Some(&self.headers.iter().find(is_it)?.1)
    }
}

/// The answer to a client.
pub(super) struct Answer {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Box<dyn Read>,
    bytes: u64,
}

impl Answer {
    /// No more than a status, such as `404 Not Found`.
    pub(super) fn status(status: &'static str) -> Answer {
        Answer::new(status, Box::new(io::empty()), 0)
    }

    /// A text.
    pub(super) fn text(content_type: &str, text: String) -> Answer {
        let bytes = text.len() as u64;
        let body = Box::new(io::Cursor::new(text.into_bytes()));
        Answer::new("200 OK", body, bytes).with("Content-Type", content_type)
    }

    /// An answer with the content of `body`, which is as long as `bytes` says.
    pub(super) fn content(content_type: &str, body: Box<dyn Read>, bytes: u64) -> Answer {
        Answer::new("200 OK", body, bytes).with("Content-Type", content_type)
    }

    fn new(status: &'static str, body: Box<dyn Read>, bytes: u64) -> Answer {
        Answer { status, headers: Vec::new(), body, bytes }
    }

    /// Returns it with a header.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    /// Sends it and ends the connection.
    ///
    /// # Errors
    /// The client went away, or the body is shorter than was said.
    pub(super) fn send(self, mut stream: &TcpStream) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {}\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n", self.bytes));
        head.push_str("X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let sent = io::copy(&mut self.body.take(self.bytes), &mut stream)?;
        stream.shutdown(Shutdown::Write)?;
        if sent == self.bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
