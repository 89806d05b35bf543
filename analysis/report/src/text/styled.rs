//! Styled lines: colours and bars on terminals that support them, the same words everywhere else.
//!
//! Names come from traces. All characters that could control a terminal are escaped before they become part of a line,
//! so colours are the only control sequences in the text.

use omptrace_analysis::printable;

use super::table::letters;
use omptrace_analysis::answers::Cause;

/// How text is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Width of a line, in columns.
    pub width: usize,
    /// Whether to use colours.
    pub colours: bool,
    /// Whether bars consist of block characters instead of `#`.
    pub blocks: bool,
}

impl Look {
    /// The style for pipes and files.
    pub const PLAIN: Look = Look { width: 80, colours: false, blocks: false };
}

/// How a part of a line is highlighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    /// Not highlighted.
    Plain,
    /// To be read first.
    Bold,
    /// Less important.
    Dim,
    /// A source location.
    Place,
    /// A reason to doubt the numbers.
    Warning,
    /// In the colour of a cause.
    Of(Cause),
}

impl Tint {
    /// The parameters of the terminal's escape sequence. The colours are those of the HTML report.
    fn sequence(self) -> &'static str {
        match self {
            Tint::Plain => "",
            Tint::Bold => "1",
            Tint::Dim => "2",
            Tint::Place => "36",
            Tint::Warning => "1;33",
            Tint::Of(cause) => match cause {
                Cause::Useful => "38;2;86;180;233",
                Cause::Imbalance => "38;2;230;159;0",
                Cause::Fork | Cause::Join | Cause::Barrier | Cause::Reduction => "38;2;240;228;66",
                Cause::Lock | Cause::Critical | Cause::Ordered | Cause::Atomic => "38;2;213;94;0",
                Cause::TaskWait | Cause::TaskStarvation => "38;2;204;121;167",
                _ => "38;2;190;197;207",
            },
        }
    }
}

/// A part of a line.
#[derive(Clone, Debug)]
struct Part {
    tint: Tint,
    text: String,
    /// The address that a terminal opens from this part.
    address: Option<String>,
}

impl Part {
    /// The text with escape sequences: its colour, and OSC 8 if it is a link.
    fn coloured(&self, text: &str) -> String {
        let text = match self.tint.sequence() {
            "" => text.to_owned(),
            sequence => format!("\x1b[{sequence}m{text}\x1b[0m"),
        };
        match &self.address {
            Some(address) => format!("\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"),
            None => text,
        }
    }
}

/// A line.
#[derive(Clone, Debug, Default)]
pub struct Line(Vec<Part>);

impl Line {
    /// A line that starts with this text.
    pub fn of(tint: Tint, text: impl AsRef<str>) -> Line {
        Line::default().and(tint, text)
    }

    /// Appends this text.
    pub fn and(mut self, tint: Tint, text: impl AsRef<str>) -> Line {
        self.0.push(Part { tint, text: printable(text.as_ref()).into_owned(), address: None });
        self
    }

    /// Appends this text as a link.
    pub(crate) fn and_link(mut self, tint: Tint, text: impl AsRef<str>, address: &str) -> Line {
        let address = Some(printable(address).into_owned());
        self.0.push(Part { tint, text: printable(text.as_ref()).into_owned(), address });
        self
    }

    /// Appends blanks up to a column.
    pub(crate) fn up_to(self, column: usize) -> Line {
        let missing = column.saturating_sub(self.columns());
        self.and(Tint::Plain, " ".repeat(missing))
    }

    /// Appends a bar of `full` cells, followed by dim cells up to `of`.
    pub(crate) fn bar(self, cause: Cause, full: u32, of: u32, look: Look) -> Line {
        let (cell, rest) = if look.blocks { ("█", "░") } else { ("#", ".") };
        let bar = self.and(Tint::Of(cause), cell.repeat(full as usize));
        match of.saturating_sub(full) {
            0 => bar,
            missing => bar.and(Tint::Dim, rest.repeat(missing as usize)),
        }
    }

    /// The width of the line, in columns.
    pub fn columns(&self) -> usize {
        self.0.iter().map(|part| letters(&part.text)).sum()
    }

    /// Appends the line as text to `out`, without trailing blanks.
    fn render(&self, look: Look, out: &mut String) {
        let is_blank = |part: &&Part| part.text.trim_end().is_empty();
        let trailing = self.0.iter().rev().take_while(is_blank).count();
        let parts = &self.0[..self.0.len() - trailing];
        for (index, part) in parts.iter().enumerate() {
            let text = if index + 1 == parts.len() { part.text.trim_end() } else { &part.text };
            match look.colours && !text.is_empty() {
                true => out.push_str(&part.coloured(text)),
                false => out.push_str(text),
            }
        }
        out.push('\n');
    }
}

/// Consecutive lines.
#[derive(Clone, Debug, Default)]
pub struct Lines(Vec<Line>);

impl Lines {
    /// Appends a line.
    pub fn push(&mut self, line: Line) {
        self.0.push(line);
    }

    /// Appends an empty line, unless there are no lines yet.
    pub fn gap(&mut self) {
        if !self.0.is_empty() {
            self.0.push(Line::default());
        }
    }

    /// Appends words on as many lines as necessary: `first` precedes the first line, and the other lines are indented
    /// by its width.
    pub fn words(&mut self, first: Line, words: &str, tint: Tint, look: Look) {
        let indent = first.columns();
        let width = look.width.saturating_sub(indent).max(1);
        let mut front = Some(first);
        for line in wrapped(&printable(words), width) {
            let begin = front.take().unwrap_or_default().up_to(indent);
            self.push(begin.and(tint, line));
        }
    }

    /// Appends other lines.
    pub fn extend(&mut self, other: Lines) {
        self.0.extend(other.0);
    }

    /// All lines as text.
    pub fn text(&self, look: Look) -> String {
        self.0.iter().fold(String::new(), |mut text, line| {
            line.render(look, &mut text);
            text
        })
    }
}

/// Divides words into lines of at most `width` columns. A longer word is not divided, so that users can copy it.
fn wrapped(words: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let line = lines.last_mut().expect("there is one from the start");
        match line.is_empty() {
            true => line.push_str(word),
            false if letters(line) + 1 + letters(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Text of at most `width` columns. The middle of longer text is removed, because start and end distinguish names.
pub fn shortened(text: &str, width: usize) -> String {
    let length = letters(text);
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(3);
    let behind = kept.div_ceil(2);
    let begin = text.chars().take(kept - behind);
    let end = text.chars().skip(length - behind);
    begin.chain("...".chars()).chain(end).take(width).collect()
}

/// Like [`shortened`], for a place: the name of serial code loses the middle of the file's or function's name at its end,
/// rather than the words before it.
pub(crate) fn shortened_place(place: &str, width: usize) -> String {
    /// A shorter name tells nothing.
    const MIN_NAME: usize = 8;
    let is_serial = ["serial code ", "before ", "after "].iter().any(|words| place.starts_with(words));
    let words = place.strip_prefix("serial code ").unwrap_or(place);
    let ends = words.rmatch_indices(' ').map(|(at, _)| place.split_at(place.len() - words.len() + at + 1));
    let mut with_room = ends.filter(|(words, _)| is_serial && letters(words) + MIN_NAME <= width);
    match with_room.next() {
        Some((words, name)) => format!("{words}{}", shortened(name, width - letters(words))),
        None => shortened(place, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_all_that_drives_the_terminal() {
        let mut lines = Lines::default();
        lines.push(Line::of(Tint::Bold, "a\x1b[2Jb").and(Tint::Plain, " c\n  "));
        let colours = Look { colours: true, ..Look::PLAIN };
        assert_eq!(lines.text(colours), "\x1b[1ma\\x1b[2Jb\x1b[0m c\\n\n");
        assert_eq!(lines.text(Look::PLAIN), "a\\x1b[2Jb c\\n\n");
    }

    #[test]
    fn links_are_for_terminals() {
        let mut lines = Lines::default();
        lines.push(Line::of(Tint::Plain, "1. ").and_link(Tint::Bold, "Serial code", "https://a.b/c.md"));
        let colours = Look { colours: true, ..Look::PLAIN };
        let link = "\x1b]8;;https://a.b/c.md\x1b\\\x1b[1mSerial code\x1b[0m\x1b]8;;\x1b\\";
        assert_eq!(lines.text(colours), format!("1. {link}\n"));
        assert_eq!(lines.text(Look::PLAIN), "1. Serial code\n");
    }

    #[test]
    fn bars_are_blocks_where_the_terminal_has_them() {
        let bar = |look| {
            let mut lines = Lines::default();
            lines.push(Line::default().bar(Cause::Useful, 2, 3, look));
            lines.text(look)
        };
        assert_eq!(bar(Look::PLAIN), "##.\n");
        assert_eq!(bar(Look { blocks: true, ..Look::PLAIN }), "██░\n");
    }

    #[test]
    fn words_are_folded_behind_what_is_in_front() {
        let mut lines = Lines::default();
        let look = Look { width: 12, ..Look::PLAIN };
        lines.words(Line::of(Tint::Warning, "! "), "one two three four", Tint::Plain, look);
        assert_eq!(lines.text(look), "! one two\n  three four\n");
    }

    #[test]
    fn long_names_lose_their_middle() {
        for (width, expected) in
            [(20, "abcdefghij"), (10, "abcdefghij"), (9, "abc...hij"), (8, "ab...hij"), (2, "..")]
        {
            assert_eq!(shortened("abcdefghij", width), expected, "{width}");
        }
    }

    #[test]
    fn the_name_after_serial_code_loses_its_middle() {
        for (place, width, expected) in [
            ("serial code before stencil.F90:45", 40, "serial code before stencil.F90:45"),
            ("serial code before stencil.F90:45", 30, "serial code before sten...0:45"),
            ("serial code before parallel @main", 30, "serial code before para...main"),
            ("before stencil.F90:45", 18, "before sten...0:45"),
            ("solve_a_long_name stencil.F90:45", 20, "solve_a_...il.F90:45"),
        ] {
            assert_eq!(shortened_place(place, width), expected);
        }
    }
}
