//! Answers for programs: JSON, cut to what was asked for and to a size that its readers take.
//!
//! ```text
//! value --select--> part --top, or MAX_BYTES--> shorter part, with what was left out --> a line
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Result};

/// The longest answer where nobody says how long it may be.
pub(crate) const MAX_BYTES: usize = 16 << 10;
/// The bytes of it that the field `left_out` may take.
const FOR_LEFT_OUT: usize = 2 << 10;
/// The letters that a string keeps at least.
const MIN_LETTERS: usize = 200;
/// The key of what was left out.
const LEFT_OUT: &str = "left_out";
/// How to get it.
const HOW: &str = "--all gives everything, --select PATH a part, --top N the first N of each list";

/// How much of an answer is printed, and for whom.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AnswerOptions {
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,
    /// Of the JSON, only the part at this path, as in findings.0.text. Behind a list, a name is that of each element's field, as
    /// in regions.line
    #[arg(long, value_name = "PATH")]
    pub(crate) select: Option<String>,
    /// The first N of each list or table; 0 is all [default: as many as 16 KiB hold]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// All of it, however long
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,
}

/// How much of lists is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    All,
    /// The first rows of each list.
    Rows(usize),
    /// The bytes that fit.
    Bytes,
}

impl AnswerOptions {
    /// Whether the answer is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.select.is_some()
    }

    pub(crate) fn limit(&self) -> Limit {
        match self.top {
            _ if self.all => Limit::All,
            Some(0) => Limit::All,
            Some(rows) => Limit::Rows(rows),
            None => Limit::Bytes,
        }
    }

    /// The rows of tables; `None` for all.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.top.filter(|rows| *rows > 0)
    }

    /// Prints one answer, on a line.
    ///
    /// # Errors
    /// The path that is selected is not there, or `out` cannot be written to.
    pub(crate) fn print(&self, out: &mut dyn Write, answer: &impl Serialize) -> Result<()> {
        self.print_all(out, std::iter::once(answer))
    }

    /// Prints several answers, a line for each: together no longer than one may be.
    ///
    /// # Errors
    /// As for [`AnswerOptions::print`].
    pub(crate) fn print_all<A: Serialize>(
        &self,
        out: &mut dyn Write,
        answers: impl IntoIterator<Item = A>,
    ) -> Result<()> {
        let mut values = Vec::new();
        for answer in answers {
            let value = serde_json::to_value(answer).map_err(io::Error::from)?;
            values.push(match &self.select {
                Some(path) => select(&value, path)?,
                None => value,
            });
        }
        let lines: Vec<String> = match self.limit() {
            Limit::All => values.iter().map(Value::to_string).collect(),
            Limit::Rows(rows) => {
                let values = values.into_iter();
                values
                    .map(|value| first_rows(value, rows).to_string())
                    .collect()
            }
            Limit::Bytes => lines_in(values, MAX_BYTES),
        };
        for line in lines {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// Lines of JSON that come one after the other, too many to keep: the first ones that there is room for.
pub(crate) struct AnswerLines {
    out: Box<dyn Write + Send>,
    limit: Limit,
    select: Option<String>,
    /// The begin of a line whose end has not come.
    begun: Vec<u8>,
    lines: usize,
    bytes: usize,
    left_out: u64,
}

impl AnswerLines {
    pub(crate) fn new(options: &AnswerOptions, out: Box<dyn Write + Send>) -> AnswerLines {
        AnswerLines {
            out,
            limit: options.limit(),
            select: options.select.clone(),
            begun: Vec::new(),
            lines: 0,
            bytes: 0,
            left_out: 0,
        }
    }

    /// Says how many lines were left out.
    ///
    /// # Errors
    /// There is no room to write to.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.left_out > 0 {
            let rest = json!({ LEFT_OUT: { "lines": self.left_out, "how": HOW } });
            writeln!(self.out, "{rest}")?;
        }
        self.out.flush()
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let selected = self.select.as_ref().map(|path| {
            let value = serde_json::from_slice(line).unwrap_or_default();
            // Events have different arguments.
            select(&value, path).unwrap_or_default().to_string()
        });
        let line = selected.as_ref().map_or(line, String::as_bytes);
        let has_room = match self.limit {
            Limit::All => true,
            Limit::Rows(rows) => self.lines < rows,
            Limit::Bytes => self.bytes + line.len() + 1 + FOR_LEFT_OUT <= MAX_BYTES,
        };
        // What comes after a gap would look as if it followed.
        if !has_room || self.left_out > 0 {
            self.left_out += 1;
            return Ok(());
        }
        self.lines += 1;
        self.bytes += line.len() + 1;
        self.out.write_all(line)?;
        self.out.write_all(b"\n")
    }
}

impl Write for AnswerLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.limit == Limit::All && self.select.is_none() {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(end) => {
                    let mut line = std::mem::take(&mut self.begun);
                    line.extend_from_slice(end);
                    self.line(&line)?;
                }
                None => self.begun.extend_from_slice(part),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// `values` on lines that take at most `bytes` together. The last line counts those that have no room.
fn lines_in(values: Vec<Value>, bytes: usize) -> Vec<String> {
    let whole: Vec<String> = values.iter().map(Value::to_string).collect();
    let length = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if length(&whole) <= bytes {
        return whole;
    }
    let each = match values.len() {
        1 => bytes - 1,
        count => (bytes / count).max(FOR_LEFT_OUT),
    };
    let count = values.len();
    let rest = |lines: usize| json!({ LEFT_OUT: { "lines": lines, "how": HOW } }).to_string();
    let mut lines = Vec::new();
    for value in values {
        let line = fitted(value, each).to_string();
        let is_last = lines.len() + 1 == count;
        let for_rest = if is_last { 0 } else { rest(count).len() + 1 };
        if length(&lines) + line.len() + 1 + for_rest > bytes {
            lines.push(rest(count - lines.len()));
            break;
        }
        lines.push(line);
    }
    lines
}

/// The part of `value` at a path such as `regions.file` or `findings.0`.
///
/// # Errors
/// There is no such part.
fn select(value: &Value, path: &str) -> Result<Value> {
    let names: Vec<&str> = path.split('.').filter(|name| !name.is_empty()).collect();
    part(value, &names).map_err(|(missing, known)| {
        let failure = Failure::new(format!("--select {path}: there is no {missing}"));
        match &known[..] {
            [] => failure,
            known => failure.hint(format!("there are {}", known.join(", "))),
        }
    })
}

/// Finds the part by the names of the path. Returns else the name that is missing, with those that are there.
fn part(value: &Value, names: &[&str]) -> std::result::Result<Value, (String, Vec<String>)> {
    let Some((name, rest)) = names.split_first() else {
        return Ok(value.clone());
    };
    match value {
        Value::Object(fields) => match fields.get(*name) {
            Some(field) => part(field, rest),
            None => Err(((*name).to_owned(), fields.keys().cloned().collect())),
        },
        Value::Array(elements) => match name.parse::<usize>() {
            Ok(index) => match elements.get(index) {
                Some(element) => part(element, rest),
                None => Err((format!("element {index} of {}", elements.len()), Vec::new())),
            },
            Err(_) => {
                let parts: Vec<_> = elements
                    .iter()
                    .map(|element| part(element, names))
                    .collect();
                // Fields that some elements lack are null there.
                if parts.iter().any(std::result::Result::is_ok) || parts.is_empty() {
                    let parts = parts
                        .into_iter()
                        .map(std::result::Result::unwrap_or_default);
                    return Ok(parts.collect());
                }
                parts.into_iter().collect()
            }
        },
        // A list of what some elements lack.
        Value::Null => Ok(Value::Null),
        _ => Err(((*name).to_owned(), Vec::new())),
    }
}

/// The number of rows left out, by the path of their list.
type LeftOut = BTreeMap<String, u64>;

/// `value` with the first rows of each list.
fn first_rows(mut value: Value, rows: usize) -> Value {
    let mut left_out = LeftOut::new();
    cut_lists(&mut value, rows, "", &mut left_out);
    with_left_out(value, &left_out)
}

/// `value` in at most `bytes`, or in little more where `bytes` are few.
fn fitted(value: Value, bytes: usize) -> Value {
    if value.to_string().len() <= bytes {
        return value;
    }
    let bytes = bytes.saturating_sub(FOR_LEFT_OUT.min(bytes / 4));
    // Short lists stay whole: each list has the same room.
    let (mut low, mut high) = (0, bytes);
    let mut best = None;
    while low < high {
        let room = (low + high).div_ceil(2);
        let (shorter, left_out) = lists_in(&value, room);
        if shorter.to_string().len() <= bytes {
            best = Some((shorter, left_out));
            low = room;
        } else {
            high = room - 1;
        }
    }
    let (mut value, mut left_out) = best.unwrap_or_else(|| lists_in(&value, 0));
    // What is left is no list of the first level.
    for rows in [8, 4, 2, 1, 0] {
        if value.to_string().len() > bytes {
            cut_lists(&mut value, rows, "", &mut left_out);
        }
    }
    if value.to_string().len() > bytes {
        cut_strings(&mut value, &mut left_out);
    }
    if let Value::Object(fields) = &mut value {
        drop_fields(fields, bytes, &mut left_out);
    }
    with_left_out(value, &left_out)
}

/// `value` with as many rows of each list at its first level as have room in `bytes`.
fn lists_in(value: &Value, bytes: usize) -> (Value, LeftOut) {
    let mut left_out = LeftOut::new();
    let cut = |elements: &[Value], path: &str, left_out: &mut LeftOut| {
        let mut used = 0;
        let fits = |element: &&Value| {
            used += element.to_string().len() + 1;
            used <= bytes
        };
        let kept: Vec<Value> = elements.iter().take_while(fits).cloned().collect();
        note(left_out, path, elements.len() - kept.len());
        Value::Array(kept)
    };
    let value = match value {
        Value::Array(elements) => cut(elements, "", &mut left_out),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| {
                let field = match field {
                    Value::Array(elements) => cut(elements, name, &mut left_out),
                    other => other.clone(),
                };
                (name.clone(), field)
            });
            fields.collect()
        }
        other => other.clone(),
    };
    (value, left_out)
}

fn note(left_out: &mut LeftOut, path: &str, rows: usize) {
    if rows > 0 {
        *left_out.entry(path.to_owned()).or_default() += rows as u64;
    }
}

/// Leaves `rows` of each list, at any depth.
fn cut_lists(value: &mut Value, rows: usize, path: &str, left_out: &mut LeftOut) {
    match value {
        Value::Array(elements) => {
            note(left_out, path, elements.len().saturating_sub(rows));
            elements.truncate(rows);
            for element in elements {
                cut_lists(element, rows, path, left_out);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                cut_lists(field, rows, &path, left_out);
            }
        }
        _ => {}
    }
}

/// Cuts long strings, and counts their letters.
fn cut_strings(value: &mut Value, left_out: &mut LeftOut) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(MIN_LETTERS) {
                note(left_out, "letters", text[end..].chars().count());
                text.truncate(end);
                text.push_str("...");
            }
        }
        Value::Array(elements) => {
            for element in elements {
                cut_strings(element, left_out);
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                cut_strings(field, left_out);
            }
        }
        _ => {}
    }
}

/// Leaves the longest fields out until the others fit; their lengths are in bytes.
fn drop_fields(fields: &mut Map<String, Value>, bytes: usize, left_out: &mut LeftOut) {
    let mut lengths: Vec<(usize, String)> = fields
        .iter()
        .map(|(name, field)| (field.to_string().len(), name.clone()))
        .collect();
    lengths.sort_by(|a, b| b.cmp(a));
    let mut length: usize = lengths
        .iter()
        .map(|(bytes, name)| bytes + name.len() + 4)
        .sum();
    for (of_field, name) in lengths {
        if length <= bytes {
            break;
        }
        fields.shift_remove(&name);
        left_out.insert(format!("{name} (bytes)"), of_field as u64);
        length -= of_field + name.len() + 4;
    }
}

/// `value` with a field that says what was left out, and how to get it.
fn with_left_out(value: Value, left_out: &LeftOut) -> Value {
    /// Of many lists, the first ones show what there is.
    const MAX_LISTS: usize = 20;

    if left_out.is_empty() {
        return value;
    }
    let mut said: Map<String, Value> = left_out
        .iter()
        .take(MAX_LISTS)
        .map(|(path, rows)| (path.clone(), json!(rows)))
        .collect();
    if left_out.len() > MAX_LISTS {
        said.insert("other lists".to_owned(), json!(left_out.len() - MAX_LISTS));
    }
    match value {
        Value::Object(mut fields) => {
            said.insert("how".to_owned(), json!(HOW));
            fields.insert(LEFT_OUT.to_owned(), Value::Object(said));
            Value::Object(fields)
        }
        other => {
            let rows = left_out.values().sum::<u64>();
            json!({ "selected": other, LEFT_OUT: { "selected": rows, "how": HOW } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(answer: &AnswerOptions, values: &[Value]) -> String {
        let mut out = Vec::new();
        answer.print_all(&mut out, values).expect("it is written");
        String::from_utf8(out).expect("UTF-8")
    }

    fn value(printed: &str) -> Value {
        serde_json::from_str(printed).expect("JSON")
    }

    fn large() -> Value {
        let row = |index: usize| json!({ "name": format!("construct {index}"), "ns": index });
        json!({
            "schema": 1,
            "few": (0..3).map(row).collect::<Vec<_>>(),
            "many": (0..10_000).map(row).collect::<Vec<_>>(),
            "more": (0..20_000).map(row).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn small_answers_are_whole() {
        let small = json!({ "a": [1, 2, 3], "b": null });
        let small = std::slice::from_ref(&small);
        assert_eq!(
            printed(&AnswerOptions::default(), small),
            "{\"a\":[1,2,3],\"b\":null}\n"
        );
    }

    #[test]
    fn large_answers_fit_and_say_what_is_missing() {
        let text = printed(&AnswerOptions::default(), &[large()]);
        assert!(
            text.len() <= MAX_BYTES && text.len() > MAX_BYTES / 2,
            "{}",
            text.len()
        );
        let answer = value(&text);
        let rows = |list: &str| answer[list].as_array().expect("a list").len() as u64;
        assert_eq!((&answer["schema"], rows("few")), (&json!(1), 3));
        assert!(rows("many") > 100);
        assert_eq!(answer["left_out"]["many"], json!(10_000 - rows("many")));
        assert_eq!(answer["left_out"]["more"], json!(20_000 - rows("more")));
        assert_eq!(answer["left_out"]["how"], HOW);
    }

    #[test]
    fn whatever_is_long_is_cut() {
        let long = "x".repeat(30_000);
        let deep: Vec<Value> = (0..9_000).map(|index| json!([index])).collect();
        let many: Map<String, Value> = (0..9_000)
            .map(|index| (index.to_string(), json!(1)))
            .collect();
        for value in [
            json!({ "text": long }),
            json!({ "a": { "b": { "c": deep } } }),
            json!([[deep.clone(), deep]]),
            json!({ "fields": many }),
            Value::Object(many),
        ] {
            let text = printed(&AnswerOptions::default(), &[value]);
            assert!(text.len() <= MAX_BYTES, "{}", text.len());
        }
    }

    #[test]
    fn all_and_top_are_as_long_as_asked_for() {
        let all = AnswerOptions {
            all: true,
            ..AnswerOptions::default()
        };
        let zero = AnswerOptions {
            top: Some(0),
            ..AnswerOptions::default()
        };
        for answer in [all, zero] {
            assert_eq!(value(&printed(&answer, &[large()])), large());
        }
        let two = AnswerOptions {
            top: Some(2),
            ..AnswerOptions::default()
        };
        let answer = value(&printed(&two, &[large()]));
        assert_eq!(answer["few"].as_array().map(Vec::len), Some(2));
        assert_eq!(answer["left_out"]["few"], 1);
    }

    #[test]
    fn parts_are_selected() {
        let answers = json!({ "a": [{ "b": 1, "c": [5, 6] }, { "b": 2 }], "d": {} });
        let selected = |path: &str| select(&answers, path).map_err(|failure| failure.to_string());
        assert_eq!(selected("a.0.c.1"), Ok(json!(6)));
        assert_eq!(selected("a.b"), Ok(json!([1, 2])));
        assert_eq!(selected("a.c"), Ok(json!([[5, 6], null])));
        assert_eq!(selected("d"), Ok(json!({})));
        assert_eq!(selected("").as_ref(), Ok(&answers));
        assert_eq!(selected("x"), Err("--select x: there is no x".to_owned()));
        assert_eq!(
            selected("a.x"),
            Err("--select a.x: there is no x".to_owned())
        );
        assert_eq!(
            selected("a.7"),
            Err("--select a.7: there is no element 7 of 2".to_owned())
        );
        assert_eq!(
            selected("a.b.x"),
            Err("--select a.b.x: there is no x".to_owned())
        );
    }

    #[test]
    fn several_answers_share_the_room() {
        let lines = vec![json!({ "list": (0..3_000).collect::<Vec<u32>>() }); 40];
        let text = printed(&AnswerOptions::default(), &lines);
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
        let last = value(text.lines().last().expect("a line"));
        let shown = text.lines().count() as u64 - 1;
        assert_eq!(last["left_out"]["lines"], json!(40 - shown));
        let small = vec![json!({ "name": "x" }); 100];
        assert_eq!(
            printed(&AnswerOptions::default(), &small).lines().count(),
            100
        );
    }
}
