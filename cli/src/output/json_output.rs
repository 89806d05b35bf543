//! Answers for programs: JSON, whole unless less was asked for.
//!
//! ```text
//! value --select--> part --limit, --max-bytes--> shorter part, with what was left out --> a line
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZero;

use clap::Args;
use omptrace_analysis::answers::SCHEMA;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::options::units;
use crate::output::failure::{Failure, Result};
use crate::output::streams;

/// The key of what was left out.
const LEFT_OUT: &str = "left_out";

/// An answer with the version of its fields, which all answers share.
#[derive(Serialize)]
pub(crate) struct WithSchema<A> {
    schema: u32,
    #[serde(flatten)]
    answer: A,
}

impl<A> WithSchema<A> {
    pub(crate) fn new(answer: A) -> WithSchema<A> {
        WithSchema { schema: SCHEMA, answer }
    }
}

/// How much of an answer is printed, and for whom.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AnswerOptions {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print one value of the JSON output, for example findings.0.text. A field name after the name of a list selects
    /// this field of every element of the list, for example regions.line
    #[arg(long, value_name = "PATH")]
    pub(crate) select: Option<String>,
    /// Print at most N rows of each list or table; 0 means no limit
    #[arg(long = "limit", alias = "top", value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print at most SIZE bytes of JSON, or of `stats` tables, for example 16K; rows that do not fit are left out
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, conflicts_with_all = ["top", "all"])]
    pub(crate) max_bytes: Option<u64>,
    /// Do not truncate tables on a terminal. JSON, and tables in files and pipes, are truncated only if --limit or
    /// --max-bytes is given
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,
}

impl AnswerOptions {
    /// Whether the answer is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.select.is_some()
    }

    /// Whether all rows of tables were asked for.
    pub(crate) fn wants_all(&self) -> bool {
        self.all || self.top == Some(0)
    }

    /// The rows of tables; `None` for all.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.top.filter(|rows| *rows > 0)
    }

    /// The most bytes of the answer; `None` for all.
    pub(crate) fn max_bytes(&self) -> Option<NonZero<u64>> {
        NonZero::new(self.max_bytes?)
    }

    /// The part of the answer that was asked for, before its bytes count.
    fn asked_for(&self, answer: &impl Serialize) -> Result<Value> {
        let mut value = serde_json::to_value(answer).map_err(io::Error::from)?;
        if let Some(path) = &self.select {
            value = select(&value, path)?;
        }
        Ok(match self.rows() {
            Some(rows) => first_rows(&value, rows),
            None => value,
        })
    }

    /// Prints one answer to stdout, on a line.
    ///
    /// # Errors
    /// The path that is selected is not there, the answer cannot be as short as it has to be, or stdout cannot be written to.
    pub(crate) fn print(&self, answer: &impl Serialize) -> Result<()> {
        let mut stdout = streams::data();
        self.write(&mut stdout, answer)?;
        Ok(stdout.flush()?)
    }

    /// Prints several answers of a kind to stdout, a line for each.
    ///
    /// # Errors
    /// As for [`AnswerOptions::print`].
    pub(crate) fn print_all<A: Serialize>(&self, answers: impl IntoIterator<Item = A>) -> Result<()> {
        let mut stdout = streams::data();
        self.write_all(&mut stdout, answers)?;
        Ok(stdout.flush()?)
    }

    fn write(&self, out: &mut dyn Write, answer: &impl Serialize) -> Result<()> {
        let mut value = self.asked_for(answer)?;
        if let Some(max_bytes) = self.max_bytes() {
            value = fitted(value, max_bytes)?;
        }
        writeln!(out, "{value}")?;
        Ok(())
    }

    fn write_all<A: Serialize>(
        &self,
        out: &mut dyn Write,
        answers: impl IntoIterator<Item = A>,
    ) -> Result<()> {
        let mut answers = answers.into_iter();
        let Some(max_bytes) = self.max_bytes() else {
            return answers.try_for_each(|answer| self.write(out, &answer));
        };
        let parts: Vec<Value> = answers.map(|answer| self.asked_for(&answer)).collect::<Result<_>>()?;
        // One answer has something to be shortened.
        if let [part] = &parts[..] {
            writeln!(out, "{}", fitted(part.clone(), max_bytes)?)?;
            return Ok(());
        }
        let mut lines = AnswerLines::new(self, out);
        // Each is a part already.
        lines.select = None;
        for part in parts {
            writeln!(lines, "{part}")?;
        }
        lines.finish()?;
        Ok(())
    }
}

/// Lines of JSON that come one after the other, too many to keep: the first ones that there is room for.
pub(crate) struct AnswerLines<W> {
    out: W,
    rows: Option<usize>,
    max_bytes: Option<NonZero<u64>>,
    select: Option<String>,
    /// The begin of a line whose end has not come.
    begun: Vec<u8>,
    lines: usize,
    bytes: u64,
    left_out: u64,
}

impl<W: Write> AnswerLines<W> {
    /// The longest line that counts others.
    const FOR_LEFT_OUT: u64 = 64;

    pub(crate) fn new(options: &AnswerOptions, out: W) -> AnswerLines<W> {
        AnswerLines {
            out,
            rows: options.rows(),
            max_bytes: options.max_bytes(),
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
            let rest = json!({ LEFT_OUT: { "lines": self.left_out } });
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
        let bytes = self.bytes + line.len() as u64 + 1;
        let has_room = self.rows.is_none_or(|rows| self.lines < rows)
            && self.max_bytes.is_none_or(|max| bytes + Self::FOR_LEFT_OUT <= max.get());
        // After the first line that is left out, no more are printed: readers would take them as adjacent.
        if !has_room || self.left_out > 0 {
            self.left_out += 1;
            return Ok(());
        }
        self.lines += 1;
        self.bytes = bytes;
        self.out.write_all(line)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Write for AnswerLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.rows.is_none() && self.max_bytes.is_none() && self.select.is_none() {
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

/// The part of `value` at a path such as `regions.file` or `findings.0`.
///
/// # Errors
/// There is no such part.
fn select(value: &Value, path: &str) -> Result<Value> {
    let names: Vec<&str> = path.split('.').filter(|name| !name.is_empty()).collect();
    part(value, &names).map_err(|(missing, known)| {
        let failure = Failure::new(format!("--select {path}: the output has no {missing}"));
        match &known[..] {
            [] => failure,
            known => failure.hint(format!("the fields are {}", known.join(", "))),
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
                None => {
                    Err((format!("element {index} (the list has {} elements)", elements.len()), Vec::new()))
                }
            },
            Err(_) => {
                let parts: Vec<_> = elements.iter().map(|element| part(element, names)).collect();
                // Fields that some elements lack are null there.
                if parts.iter().any(std::result::Result::is_ok) || parts.is_empty() {
                    let parts = parts.into_iter().map(std::result::Result::unwrap_or_default);
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

/// `value` with the first rows of each list, at any depth. A field counts what was left out, by the path of the list.
fn first_rows(value: &Value, rows: usize) -> Value {
    let (mut value, mut left_out) = (value.clone(), BTreeMap::new());
    cut_lists(&mut value, rows, "", &mut left_out);
    if left_out.is_empty() {
        return value;
    }
    let said: Map<String, Value> = left_out.iter().map(|(path, rows)| (path.clone(), json!(rows))).collect();
    match value {
        Value::Object(mut fields) => {
            fields.insert(LEFT_OUT.to_owned(), Value::Object(said));
            Value::Object(fields)
        }
        other => {
            let rows = left_out.values().sum::<u64>();
            json!({ "selected": other, LEFT_OUT: { "selected": rows } })
        }
    }
}

/// Leaves `rows` of each list.
fn cut_lists(value: &mut Value, rows: usize, path: &str, left_out: &mut BTreeMap<String, u64>) {
    match value {
        Value::Array(elements) => {
            let more = elements.len().saturating_sub(rows) as u64;
            if more > 0 {
                *left_out.entry(path.to_owned()).or_default() += more;
            }
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

/// `value` on a line of at most this many bytes: with as many rows of each list as there is room for.
///
/// # Errors
/// It is longer even without the rows of its lists.
fn fitted(value: Value, max_bytes: NonZero<u64>) -> Result<Value> {
    let fits = |value: &Value| (value.to_string().len() as u64) < max_bytes.get();
    if fits(&value) {
        return Ok(value);
    }
    let mut shorter = first_rows(&value, 0);
    if !fits(&shorter) {
        return Err(Failure::new(format!(
            "--max-bytes {max_bytes}: the output has {} bytes even if all lists are empty",
            shorter.to_string().len() + 1
        ))
        .hint("use --select PATH to print only a part of the output"));
    }
    let (mut low, mut high) = (0, longest_list(&value));
    while low + 1 < high {
        let rows = low + (high - low) / 2;
        let tried = first_rows(&value, rows);
        match fits(&tried) {
            true => (low, shorter) = (rows, tried),
            false => high = rows,
        }
    }
    Ok(shorter)
}

/// The rows of the longest list.
fn longest_list(value: &Value) -> usize {
    match value {
        Value::Array(elements) => {
            let inside = elements.iter().map(longest_list).max();
            elements.len().max(inside.unwrap_or(0))
        }
        Value::Object(fields) => fields.values().map(longest_list).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(answer: &AnswerOptions, values: &[Value]) -> String {
        let mut out = Vec::new();
        answer.write_all(&mut out, values).expect("it is written");
        String::from_utf8(out).expect("UTF-8")
    }

    fn value(printed: &str) -> Value {
        serde_json::from_str(printed).expect("JSON")
    }

    fn large() -> Value {
        let row = |index: usize| json!({ "name": format!("construct {index}"), "ns": index });
        json!({
            "schema": 2,
            "few": (0..3).map(row).collect::<Vec<_>>(),
            "many": (0..10_000).map(row).collect::<Vec<_>>(),
            "nested": { "more": (0..20_000).map(row).collect::<Vec<_>>() },
        })
    }

    fn within(bytes: u64) -> AnswerOptions {
        AnswerOptions { max_bytes: Some(bytes), ..AnswerOptions::default() }
    }

    #[test]
    fn answers_are_whole_unless_less_is_asked_for() {
        let small = json!({ "a": [1, 2, 3], "b": null });
        let small = std::slice::from_ref(&small);
        assert_eq!(printed(&AnswerOptions::default(), small), "{\"a\":[1,2,3],\"b\":null}\n");
        let all = AnswerOptions { all: true, ..AnswerOptions::default() };
        let zero = AnswerOptions { top: Some(0), ..AnswerOptions::default() };
        for answer in [AnswerOptions::default(), all, zero] {
            assert_eq!(value(&printed(&answer, &[large()])), large());
        }
        let two = AnswerOptions { top: Some(2), ..AnswerOptions::default() };
        let answer = value(&printed(&two, &[large()]));
        assert_eq!(answer["few"].as_array().map(Vec::len), Some(2));
        assert_eq!(answer["left_out"], json!({ "few": 1, "many": 9_998, "nested.more": 19_998 }));
    }

    #[test]
    fn bytes_are_limited_and_what_is_missing_is_said() {
        for bytes in [200, 1_000, 16 << 10, 1 << 20] {
            let text = printed(&within(bytes), &[large()]);
            let length = text.len() as u64;
            assert!(length <= bytes && (length > bytes / 2 || bytes > 500_000), "{length}");
            let answer = value(&text);
            for (path, list, all) in
                [("many", &answer["many"], 10_000), ("nested.more", &answer["nested"]["more"], 20_000)]
            {
                let rows = list.as_array().expect("a list").len();
                let left_out = answer["left_out"][path].as_u64().unwrap_or(0);
                assert_eq!(rows as u64 + left_out, all, "{path}");
            }
        }
        let mut out = Vec::new();
        let failure = within(50).write(&mut out, &large()).unwrap_err();
        assert!(failure.to_string().contains("the output has"), "{failure}");
        assert!(out.is_empty());
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
        assert_eq!(selected("x"), Err("--select x: the output has no x".to_owned()));
        assert_eq!(selected("a.x"), Err("--select a.x: the output has no x".to_owned()));
        assert_eq!(
            selected("a.7"),
            Err("--select a.7: the output has no element 7 (the list has 2 elements)".to_owned())
        );
        assert_eq!(selected("a.b.x"), Err("--select a.b.x: the output has no x".to_owned()));
    }

    #[test]
    fn lines_are_limited_together() {
        let lines = vec![json!({ "list": (0..300).collect::<Vec<u32>>() }); 40];
        assert_eq!(printed(&AnswerOptions::default(), &lines).lines().count(), 40);
        let text = printed(&within(10_000), &lines);
        assert!(text.len() <= 10_000 && text.len() > 8_000, "{}", text.len());
        let last = value(text.lines().last().expect("a line"));
        let shown = text.lines().count() as u64 - 1;
        assert_eq!(last["left_out"]["lines"], json!(40 - shown));
    }
}
