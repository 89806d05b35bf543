//! Tables: text of a given width, or Markdown.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use omptrace_analysis::printable;
pub use omptrace_analysis::with_commas;

/// Minimum width of the name column. Other columns are left out to preserve it.
const MIN_FOR_NAMES: usize = 28;

/// The layout of tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Maximum width of a line, in columns; `None` for no limit.
    pub width: Option<usize>,
    /// Maximum number of rows per table, except for threads and processes; `None` for all.
    pub top: Option<usize>,
    /// Whether `top` also applies to the tables of threads and processes.
    pub is_short: bool,
    /// The notation.
    pub style: Style,
}

impl Layout {
    /// The layout of a table in which users look for single rows, such as threads.
    pub(crate) fn of_all(&self) -> Layout {
        Layout { top: self.top.filter(|_| self.is_short), ..*self }
    }
}

/// The notation of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Aligned columns, for terminals.
    #[default]
    Text,
    /// Markdown, for tickets and CI summaries.
    Markdown,
}

/// A column of numbers.
#[derive(Clone)]
pub(crate) struct Column {
    heading: Cow<'static, str>,
    /// If there is no room for all columns, those with the highest rank are left out first.
    rank: u8,
    /// Whether the column is shown if it has no content.
    empty: Empty,
}

/// Whether a column without content is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Empty {
    Shown,
    /// Shown, but the first to be left out if there is no room.
    IfThereIsRoom,
    Never,
}

/// Like [`column()`], with a heading that is created at run time.
pub(crate) fn column_of(heading: String, rank: u8) -> Column {
    Column { heading: Cow::Owned(heading), ..column("", rank) }
}

pub(crate) const fn column(heading: &'static str, rank: u8) -> Column {
    Column { heading: Cow::Borrowed(heading), rank, empty: Empty::Shown }
}

impl Column {
    /// A column whose heading is known only at run time.
    pub(crate) fn named(heading: String, rank: u8) -> Column {
        Column { heading: Cow::Owned(heading), rank, empty: Empty::Shown }
    }

    pub(crate) const fn if_empty(mut self, empty: Empty) -> Column {
        self.empty = empty;
        self
    }
}

pub(crate) struct Row {
    name: String,
    cells: Vec<String>,
    /// Text on a line below the row.
    below: Option<String>,
}

/// A table: the first column contains names, the others contain numbers.
pub(crate) struct Table {
    heading: &'static str,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

pub(crate) fn letters(text: &str) -> usize {
    text.chars().count()
}

fn one_line(text: String) -> String {
    match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown,
    }
}

impl Table {
    pub(crate) fn new(heading: &'static str, columns: &[Column]) -> Table {
        let mut columns = columns.to_vec();
        for column in &mut columns {
            if let Cow::Owned(heading) = &mut column.heading {
                *heading = one_line(std::mem::take(heading));
            }
        }
        Table { heading, columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, name: String, cells: impl IntoIterator<Item = String>) {
        self.row_above(name, cells, None);
    }

    /// Adds a row with a line of text below it. Names come from traces, so characters that could control a terminal or
    /// break a line are escaped.
    pub(crate) fn row_above(
        &mut self,
        name: String,
        cells: impl IntoIterator<Item = String>,
        below: Option<String>,
    ) {
        let cells: Vec<String> = cells.into_iter().map(one_line).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(Row { name: one_line(name), cells, below: below.map(one_line) });
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The width of a column.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| letters(&row.cells[column]));
        let heading = letters(&self.columns[column].heading);
        cells.max().unwrap_or(0).max(heading)
    }

    /// The columns that are shown, those that are left out for lack of room, and the width of the gap between columns.
    fn fit(&self, layout: &Layout) -> (Vec<usize>, Vec<usize>, usize) {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let is_empty = |column: usize, empty: Empty| {
            let says_nothing = |row: &Row| ["", "0", "0 ns"].contains(&&*row.cells[column]);
            self.columns[column].empty == empty && self.rows.iter().all(says_nothing)
        };
        shown.retain(|column| !is_empty(*column, Empty::Never));
        let Some(width) = layout.width else {
            return (shown, Vec::new(), 2);
        };
        let names = self.rows.iter().map(|row| letters(&row.name));
        let longest = names.max().unwrap_or(0).max(letters(self.heading));
        let room = width.saturating_sub(longest.min(MIN_FOR_NAMES));
        let fits = |shown: &[usize], gap: usize| {
            let widths = shown.iter().map(|column| gap + self.width(*column));
            widths.sum::<usize>() <= room
        };
        let mut left_out = Vec::new();
        while !fits(&shown, 2)
            && let Some(place) = shown.iter().rposition(|column| is_empty(*column, Empty::IfThereIsRoom))
        {
            shown.remove(place);
        }
        while !fits(&shown, 1) && shown.len() > 1 {
            let rank = |column: &usize| (self.columns[*column].rank, *column);
            let Some(least) = shown.iter().copied().max_by_key(rank) else {
                break;
            };
            shown.retain(|column| *column != least);
            left_out.push(least);
        }
        left_out.sort_unstable();
        let gap = if fits(&shown, 2) { 2 } else { 1 };
        (shown, left_out, gap)
    }

    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        if layout.style == Style::Markdown {
            return self.write_markdown(f, layout);
        }
        let (shown, left_out, gap) = self.fit(layout);
        let widths: Vec<usize> = shown.iter().map(|column| self.width(*column)).collect();
        let numbers: usize = widths.iter().map(|width| gap + width).sum();
        // If the width is unlimited, longer names than this would move all numbers far to the right.
        let most = layout.width.map_or(64, |width| width.saturating_sub(numbers));
        let beside = self.rows.iter().map(|row| letters(&row.name));
        let beside = beside.filter(|letters| *letters <= most);
        let names = beside.max().unwrap_or(0).max(letters(self.heading));
        let line = |f: &mut fmt::Formatter<'_>, name: &str, cells: &[&str]| -> fmt::Result {
            // The heading of the rows below it.
            if cells.iter().all(|cell| cell.is_empty()) {
                let own = name.trim_start_matches(' ');
                return write_wrapped(f, own, name.len() - own.len(), layout);
            }
            if letters(name) > names {
                let own = name.trim_start_matches(' ');
                write_wrapped(f, own, name.len() - own.len(), layout)?;
                write!(f, "{:names$}", "")?;
            } else {
                write!(f, "{name:<names$}")?;
            }
            let mut numbers = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(numbers, "{:gap$}{cell:>width$}", "");
            }
            writeln!(f, "{}", numbers.trim_end())
        };
        let headings: Vec<&str> = shown.iter().map(|column| &*self.columns[*column].heading).collect();
        line(f, self.heading, &headings)?;
        let rows = self.rows.len().min(layout.top.unwrap_or(usize::MAX));
        for row in &self.rows[..rows] {
            let cells: Vec<&str> = shown.iter().map(|column| &*row.cells[*column]).collect();
            line(f, &row.name, &cells)?;
            if let Some(below) = &row.below {
                write_wrapped(f, below, 2, layout)?;
            }
        }
        if !left_out.is_empty() {
            let headings = left_out.iter();
            let headings = headings.map(|column| &*self.columns[*column].heading);
            let words = format!(
                "(columns left out: {}; use --json or COLUMNS=160 to see them)",
                headings.collect::<Vec<_>>().join(", ")
            );
            write_wrapped(f, &words, 0, layout)?;
        }
        Ok(())
    }

    /// Writes all columns, because Markdown is shown on pages that can be scrolled.
    fn write_markdown(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let (shown, _, _) = self.fit(&Layout::default());
        write!(f, "\n| {} |", self.heading)?;
        for column in &shown {
            write!(f, " {} |", markdown(&self.columns[*column].heading))?;
        }
        write!(f, "\n| --- |")?;
        for _ in &shown {
            write!(f, " ---: |")?;
        }
        writeln!(f)?;
        for row in self.rows.iter().take(layout.top.unwrap_or(usize::MAX)) {
            write!(f, "| {}", markdown(&row.name))?;
            if let Some(below) = &row.below {
                write!(f, "<br>{}", markdown(below))?;
            }
            write!(f, " |")?;
            for column in &shown {
                write!(f, " {} |", markdown(&row.cells[*column]))?;
            }
            writeln!(f)?;
        }
        writeln!(f)
    }
}

/// Escapes text for Markdown, as a cell, paragraph or title. Leading blanks are kept, line breaks are replaced, and
/// nothing is interpreted as markup. Code hosts turn even escaped words into mentions, references and links, but not
/// code, so such words become code.
pub fn markdown(text: &str) -> String {
    let text = printable(text);
    let inner = text.trim_start_matches(' ');
    let mut escaped = "&nbsp;".repeat(letters(&text) - letters(inner));
    for (index, word) in inner.split(' ').enumerate() {
        if index > 0 {
            escaped.push(' ');
        }
        if !is_linked(word) {
            escape_word(&mut escaped, word, index == 0);
        } else if word.contains(['`', '|', '\\']) {
            // Code is impossible within a cell here. Zero-width characters prevent the link.
            let torn = word.split_inclusive(['@', '#', ':', '.']);
            for (index, piece) in torn.enumerate() {
                if index > 0 {
                    escaped += "&#8203;";
                }
                escape_word(&mut escaped, piece, index == 0);
            }
        } else {
            // Trailing punctuation is not part of the name.
            let name = word.trim_end_matches([',', ';', ')']);
            escaped.extend(["`", name, "`", &word[name.len()..]]);
        }
    }
    escaped
}

/// Whether code hosts turn a word into a link: a mention, a ticket number, an address.
fn is_linked(word: &str) -> bool {
    let comes_before = |mark: char, is_name: fn(char) -> bool| {
        let mut behind = word.split(mark).skip(1);
        behind.any(|name| name.starts_with(is_name))
    };
    comes_before('@', |letter| letter.is_alphanumeric())
        || comes_before('#', |letter| letter.is_ascii_digit())
        || word.contains("://")
        || word.to_ascii_lowercase().contains("www.")
}

fn escape_word(escaped: &mut String, word: &str, is_first: bool) {
    for (index, letter) in word.char_indices() {
        let is_markup = match letter {
            // Within a word, an underscore does not mark emphasis.
            '_' => {
                let is_in_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
                let behind = word[index + 1..].chars().next();
                !is_in_word(word[..index].chars().next_back()) || !is_in_word(behind)
            }
            '|' | '<' | '*' | '`' | '[' | '\\' | '&' | '~' => true,
            // Some hosts render text between two dollar signs as mathematics.
            '$' => !word[index..].starts_with("$omp"),
            // At the start of a line.
            '#' | '>' | '+' | '-' | '=' | ':' => is_first && index == 0,
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
}

/// Writes words on as many lines as necessary, indented by `indent` blanks. Characters that could control a terminal or
/// break a line are escaped; in Markdown, no word is interpreted as markup.
pub(crate) fn write_wrapped(
    f: &mut fmt::Formatter<'_>,
    words: &str,
    indent: usize,
    layout: &Layout,
) -> fmt::Result {
    let words = match layout.style {
        Style::Text => printable(words),
        Style::Markdown => Cow::Owned(markdown(words)),
    };
    let width = layout.width.unwrap_or(usize::MAX).saturating_sub(indent);
    let width = width.max(1);
    let mut line = String::new();
    for mut word in words.split(' ') {
        let sum = letters(&line) + letters(word);
        if !line.is_empty() && sum < width {
            line.push(' ');
        } else if !line.is_empty() {
            writeln!(f, "{:indent$}{line}", "")?;
            line.clear();
        }
        // A name longer than a line.
        while letters(word) > width {
            let end = word.char_indices().nth(width).map_or(word.len(), |at| at.0);
            writeln!(f, "{:indent$}{}", "", &word[..end])?;
            word = &word[end..];
        }
        line += word;
    }
    writeln!(f, "{:indent$}{line}", "")
}

/// A time with at least three digits: `1.23 ms`.
pub fn time(ns: u64) -> String {
    let in_unit = |unit: f64, name: &str| {
        let value = ns as f64 / unit;
        let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        format!("{value:.decimals$} {name}")
    };
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => in_unit(1e3, "us"),
        1_000_000..1_000_000_000 => in_unit(1e6, "ms"),
        _ => in_unit(1e9, "s"),
    }
}

/// Like [`time`], for a value that may be unknown.
pub(crate) fn known_time(ns: Option<u64>) -> String {
    ns.map_or_else(|| UNKNOWN.to_owned(), time)
}

/// A share, 0 to 1, in percent without the sign: `24.1`.
pub fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A number and a noun: `1 thread`, `2,000 threads`.
pub fn counted(number: u64, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {thing}{s}", with_commas(number))
}

/// A number of bytes with three digits, in decimal units.
pub fn bytes(value: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let mut scaled = value as f64;
    let mut unit = None;
    for next in units {
        // A value that would be rounded to 1000 is shown in the next unit.
        if scaled < 999.5 {
            break;
        }
        scaled /= 1000.0;
        unit = Some(next);
    }
    match unit {
        None => format!("{value} B"),
        Some(unit) if scaled < 9.995 => format!("{scaled:.2} {unit}"),
        Some(unit) if scaled < 99.95 => format!("{scaled:.1} {unit}"),
        Some(unit) => format!("{scaled:.0} {unit}"),
    }
}

/// The text for an unknown number.
pub(crate) const UNKNOWN: &str = "-";

/// A number that may be unknown.
pub(crate) fn known(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}

/// Writes how many rows are not shown.
pub(crate) fn write_more(
    f: &mut fmt::Formatter<'_>,
    rows: usize,
    top: Option<usize>,
    thing: &str,
) -> fmt::Result {
    match rows.saturating_sub(top.unwrap_or(usize::MAX)) as u64 {
        0 => Ok(()),
        1 => writeln!(f, "and 1 more {thing}"),
        more => writeln!(f, "and {} more {thing}s", with_commas(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown(Table, Layout);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write(f, &self.1)
        }
    }

    fn table(rows: &[(&str, [&str; 3])]) -> Table {
        let columns = [column("count", 0), column("min", 2), column("max", 1)];
        let mut table = Table::new("construct", &columns);
        for (name, cells) in rows {
            table.row((*name).to_owned(), cells.map(str::to_owned));
        }
        table
    }

    #[test]
    fn bytes_have_three_digits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_600, "1.00 MB"),
            (123_456_789, "123 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (value, text) in cases {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn long_names_leave_the_columns_where_they_are() {
        let long = "x".repeat(65);
        let rows = [
            (&*long, ["12345678", "1 ns", "2 ns"]),
            ("short", ["1", "3 ns", "4 ns"]),
            (&*format!("  {long}"), ["2", "3 ns", "4 ns"]),
        ];
        assert_eq!(
            Shown(table(&rows), Layout::default()).to_string(),
            format!(
                "construct     count   min   max\n\
                 {long}\n           12345678  1 ns  2 ns\n\
                 short             1  3 ns  4 ns\n  \
                 {long}\n                  2  3 ns  4 ns\n"
            )
        );
    }

    #[test]
    fn what_has_no_room_is_left_out_and_said() {
        let rows = [("a name of 20 letters", ["7", "1 ns", "2 ns"])];
        let shown = |width| {
            let layout = Layout { width: Some(width), ..Layout::default() };
            Shown(table(&rows), layout).to_string()
        };
        assert_eq!(
            shown(40),
            "construct             count   min   max\na name of 20 letters      7  1 ns  2 ns\n"
        );
        assert_eq!(
            shown(34),
            "construct             count   max\n\
             a name of 20 letters      7  2 ns\n\
             (columns left out: min; use --json\n\
             or COLUMNS=160 to see them)\n"
        );
    }

    #[test]
    fn markdown_has_no_markup_of_names() {
        let mut table = table(&[("  a|b_c", ["7", "1 ns", "2 ns"])]);
        table.rows[0].below = Some("schedule *".to_owned());
        let layout = Layout { style: Style::Markdown, ..Layout::default() };
        assert_eq!(
            Shown(table, layout).to_string(),
            "\n| construct | count | min | max |\n| --- | ---: | ---: | ---: |\n\
             | &nbsp;&nbsp;a\\|b_c<br>schedule \\* | 7 | 1 ns | 2 ns |\n\n"
        );
    }

    #[test]
    fn names_stay_on_their_lines() {
        let mut table = table(&[("a\n\x1b[2Jb", ["7", "1\r", "2 ns"])]);
        table.rows[0].below = None;
        table.row_above("c".to_owned(), [(); 3].map(|()| String::new()), Some("d\n1. forged".to_owned()));
        assert_eq!(
            Shown(table, Layout::default()).to_string(),
            "construct    count  min   max\na\\n\\x1b[2Jb      7  1\\r  2 ns\n\
             c\n  d\\n1. forged\n"
        );
    }

    #[test]
    fn nothing_in_a_name_is_markdown() {
        let cases = [
            ("app<img src=x> &lt;b>", "app\\<img src=x> \\&lt;b>"),
            ("_a_ b_c _d", "\\_a\\_ b_c \\_d"),
            ("[l](u) ~~x~~ $y$", "\\[l](u) \\~\\~x\\~\\~ \\$y\\$"),
            ("!$omp parallel @a.c:3", "!$omp parallel `@a.c:3`"),
            ("@all #12 a@b.c #if", "`@all` `#12` `a@b.c` #if"),
            ("https://a.b www.c.d", "`https://a.b` `www.c.d`"),
            ("@a`b", "@&#8203;a\\`b"),
            ("x|@y", "x\\|@&#8203;y"),
            ("# a\n# b", "\\# a\\\\n# b"),
        ];
        for (name, escaped) in cases {
            assert_eq!(markdown(name), escaped);
        }
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let texts = [0, 999, 1_000, 12_345, 123_456, 9_999_999, 1_500_000_000].map(time);
        assert_eq!(texts, ["0 ns", "999 ns", "1.00 us", "12.3 us", "123 us", "10.00 ms", "1.50 s"]);
    }

    #[test]
    fn numbers_have_commas() {
        let texts = [0, 999, 1_000, 900_000, 1_234_567].map(with_commas);
        assert_eq!(texts, ["0", "999", "1,000", "900,000", "1,234,567"]);
    }
}
