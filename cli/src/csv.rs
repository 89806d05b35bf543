//! Rows of JSON as CSV, by RFC 4180.

use std::io::{self, Write};

use serde_json::Value;

/// Writes `rows`, each an object, below the names of their fields. Fields of an object inside have both names, with a dot.
///
/// # Errors
/// `out` cannot be written to.
pub(crate) fn write(out: &mut dyn Write, rows: &[Value]) -> io::Result<()> {
    let rows: Vec<Vec<(String, String)>> = rows.iter().map(fields).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut line = |cells: &[&str]| {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
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
        Value::String(text) => text.clone(),
        Value::Array(elements) => elements.iter().map(cell).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
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
        write(&mut out, &rows).expect("it is written");
        assert_eq!(
            String::from_utf8(out).expect("UTF-8"),
            "name,ns,of.x,list\r\n\"a, \"\"b\"\"\",1,2.5,\r\nc,,,d; e\r\n"
        );
    }
}
