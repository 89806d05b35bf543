//! Makes names safe to display. Names come from programs and their files, and traces are passed on to others. Control
//! characters in a name could control the reader's terminal, a line break could forge a line, and marks of the writing
//! direction could make one text look like another. Such characters are shown as escapes, such as `\x1b`, `\n` and
//! `\u{202e}`.
//!
//! ```text
//! name --> printable --> table, line, message --> Printable --> terminal
//!          (no line breaks)                       (escapes what was missed; line breaks come from the layout)
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a character is escaped: control characters, including line breaks and tabs; marks of the writing direction;
/// separators of lines and paragraphs; and invisible characters, which could hide text, except for the joiners that
/// scripts and emoji need.
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Whether `text` contains no characters that are escaped.
#[inline]
pub fn is_printable(text: &str) -> bool {
    // Nearly all text is plain ASCII, which is recognised without a branch for each byte.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    let all_plain = text.bytes().fold(true, |all, byte| all & is_plain(&byte));
    all_plain || !text.contains(is_unprintable)
}

/// `text` on one line, with unprintable characters as escapes.
pub fn printable(text: &str) -> Cow<'_, str> {
    if is_printable(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        push(&mut shown, character);
    }
    Cow::Owned(shown)
}

fn push(shown: &mut String, character: char) {
    match character {
        '\n' => *shown += "\\n",
        '\r' => *shown += "\\r",
        '\t' => *shown += "\\t",
        character if !is_unprintable(character) => shown.push(character),
        character => {
            // Writing to memory does not fail.
            let _infallible = match u32::from(character) {
                code @ 0..0x100 => write!(shown, "\\x{code:02x}"),
                code => write!(shown, "\\u{{{code:x}}}"),
            };
        }
    }
}

/// A writer in front of a terminal or a file with readable text. Unprintable characters become escapes, except for line
/// breaks; invalid UTF-8 becomes U+FFFD.
#[derive(Debug)]
pub struct Printable<W: Write> {
    out: W,
    /// The start of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> Printable<W> {
    /// A writer in front of `out`.
    pub fn new(out: W) -> Printable<W> {
        Printable { out, begun: Vec::new() }
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let is_shown = |character| character != '\n' && is_unprintable(character);
        if !text.contains(is_shown) {
            return self.out.write_all(text.as_bytes());
        }
        let lines: Vec<Cow<'_, str>> = text.split('\n').map(printable).collect();
        self.out.write_all(lines.join("\n").as_bytes())
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let mut rest = match self.begun.is_empty() {
            true => bytes,
            false => {
                joined = [&std::mem::take(&mut self.begun)[..], bytes].concat();
                &joined[..]
            }
        };
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.write_text(text)?;
                    return Ok(bytes.len());
                }
                Err(error) => {
                    let (text, other) = rest.split_at(error.valid_up_to());
                    self.write_text(&String::from_utf8_lossy(text))?;
                    let Some(invalid) = error.error_len() else {
                        self.begun = other.to_vec();
                        return Ok(bytes.len());
                    };
                    self.write_text("\u{fffd}")?;
                    rest = &other[invalid..];
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_shown() {
        let cases = [
            ("plain \u{e4}\u{4e2d}\u{1f600}", "plain \u{e4}\u{4e2d}\u{1f600}"),
            ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
            ("two\nlines\r\tx\0\x7f", "two\\nlines\\r\\tx\\x00\\x7f"),
            ("\u{9b}2J", "\\x9b2J"),
            ("a\u{202e}b\u{2028}\u{feff}", "a\\u{202e}b\\u{2028}\\u{feff}"),
        ];
        for (name, shown) in cases {
            assert_eq!(printable(name), shown);
        }
    }

    #[test]
    fn a_writer_keeps_line_breaks_only() {
        let text = "a\u{9b}b\n\x1b[2J\u{e4}".as_bytes();
        let text = [text, b"\xff\n\x9b\xc3"].concat();
        let shown = "a\\x9bb\n\\x1b[2J\u{e4}\u{fffd}\n\u{fffd}";
        // For any division into pieces.
        for piece in 1..=text.len() {
            let mut out = Vec::new();
            let mut writer = Printable::new(&mut out);
            for piece in text.chunks(piece) {
                writer.write_all(piece).unwrap();
            }
            writer.flush().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), shown, "{piece}");
        }
    }
}
