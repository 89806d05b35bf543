//! Rows of JSON as CSV, by RFC 4180. Cells of text that a spreadsheet would run as formulas (CWE-1236) have a `'` in front, as OWASP
//! says.

use std::borrow::Cow;
use std::io::{self, Write};

use omptrace_symbols::printable::printable;
use serde_json::Value;

/// Writes `rows`, each an object, below the names of their fields. Fields of an object inside have both names, with a dot.
/// Where there are no rows, the names are those of `sample`. On a terminal, a line break in a cell would forge a line: it is shown.
///
/// # Errors
/// `out` cannot be written to.
pub(crate) fn write(
    out: &mut dyn Write,
    rows: &[Value],
    sample: &Value,
    is_for_terminal: bool,
) -> io::Result<()> {
    let rows: Vec<Vec<(String, String)>> = rows.iter().map(fields).collect();
    let sample = fields(sample);
    let mut names: Vec<&str> = Vec::new();
    let of_sample = sample.iter().filter(|_| rows.is_empty());
    for (name, _) in rows.iter().flatten().chain(of_sample) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut line = |cells: &[&str]| {
        let shown = cells.iter().map(|cell| match is_for_terminal {
            true => printable(cell),
            false => Cow::Borrowed(*cell),
        });
        let cells: Vec<String> = shown.map(|cell| quoted(&cell)).collect();
        write!(out, "{}\r\n", cells.join(","))
    };
    line(&names)?;
    for row in &rows {
        let cell = |name: &&str| {
            let field = row.iter().find(|(field, _)| field == name);
            field.map_or("", |(_, cell)| cell)
        };
        line(&names.iter().map(cell).collect::<Vec<&str>>())?;
    }
    Ok(())
}

/// The fields of a row and their cells. What is not known is empty.
fn fields(row: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (name, value) in row.as_object().into_iter().flatten() {
        match value {
            Value::Object(inner) => {
                let inner = inner.iter();
                fields.extend(inner.map(|(part, value)| (format!("{name}.{part}"), cell(value))));
            }
            value => fields.push((name.clone(), cell(value))),
        }
    }
    fields
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => guarded(text),
        Value::Array(elements) => elements.iter().map(cell).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// Text that no spreadsheet takes for a formula. Numbers are not text.
fn guarded(text: &str) -> String {
    let begins_formulas = |letter| {
        matches!(
            letter,
            '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '\u{ff1d}' | '\u{ff0b}' | '\u{ff0d}' | '\u{ff20}'
        )
    };
    match text.starts_with(begins_formulas) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_have_all_fields() {
        let rows = [
            json!({ "name": "a, \"b\"", "ns": 1, "of": { "x": 2.5 } }),
            json!({ "name": "c", "ns": null, "list": ["d", "e"] }),
        ];
        let mut out = Vec::new();
        write(&mut out, &rows, &json!({ "other": 0 }), false).expect("it is written");
        assert_eq!(
            String::from_utf8(out).expect("UTF-8"),
            "name,ns,of.x,list\r\n\"a, \"\"b\"\"\",1,2.5,\r\nc,,,d; e\r\n"
        );
    }

    #[test]
    fn a_table_without_rows_has_its_names() {
        let mut out = Vec::new();
        let sample = json!({ "name": "", "of": { "x": 0 } });
        write(&mut out, &[], &sample, false).expect("it is written");
        assert_eq!(out, b"name,of.x\r\n");
    }

    #[test]
    fn text_is_no_formula() {
        let texts = ["=1+1", "+1", "-x", "@SUM(A1)", "\tx", "\r=1", "a=1", ""];
        let rows = texts.map(|text| json!({ "text": text, "list": [text], "ns": -1.5 }));
        let mut out = Vec::new();
        write(&mut out, &rows, &json!({}), false).expect("it is written");
        assert_eq!(
            String::from_utf8(out).expect("UTF-8"),
            "text,list,ns\r\n'=1+1,'=1+1,-1.5\r\n'+1,'+1,-1.5\r\n'-x,'-x,-1.5\r\n\
             '@SUM(A1),'@SUM(A1),-1.5\r\n'\tx,'\tx,-1.5\r\n\"'\r=1\",\"'\r=1\",-1.5\r\n\
             a=1,a=1,-1.5\r\n,,-1.5\r\n"
        );
    }

    #[test]
    fn a_terminal_gets_a_line_for_each_row() {
        let rows = [json!({ "name": "a\nFORGED", "ns": 1 })];
        let written = |is_for_terminal| {
            let mut out = Vec::new();
            write(&mut out, &rows, &json!({}), is_for_terminal).expect("it is written");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(written(false), "name,ns\r\n\"a\nFORGED\",1\r\n");
        assert_eq!(written(true), "name,ns\r\na\\nFORGED,1\r\n");
    }
}
