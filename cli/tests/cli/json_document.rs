//! `docs/json.md` has each field of the answers, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use omptrace_analysis::answers::SCHEMA;
use serde_json::Value;

use crate::answers::two_sets;
use crate::support::{folder, omptrace, run};

/// The fields in a section of the document, and whether each may be left out.
type Fields = BTreeMap<String, bool>;

/// The fields of each section.
fn documented() -> BTreeMap<String, Fields> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md");
    let document = fs::read_to_string(document).unwrap();
    let mut sections: BTreeMap<String, Fields> = BTreeMap::new();
    let mut section = String::new();
    for line in document.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            section = title.to_owned();
        } else if line.starts_with("| field of a part ") {
            section = "parts".to_owned();
        } else if let Some((field, is)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) {
            let fields = sections.entry(section.clone()).or_default();
            fields.insert(field.to_owned(), is.contains("left out"));
        }
    }
    sections
}

/// The paths of all fields. Objects whose names are not fixed are documented as `name{}`.
fn paths(value: &Value, path: &str, fields: &Fields, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                let mut path = format!("{path}{dot}{name}");
                let map = format!("{path}{{}}");
                let of_map = |field: &String| field.starts_with(&map);
                match value {
                    Value::Object(values) if fields.keys().any(of_map) => {
                        found.insert(map.clone());
                        for value in values.values() {
                            let list = if value.is_array() { "[]" } else { "" };
                            found.insert(format!("{map}{list}"));
                            paths(value, &format!("{map}{list}"), fields, found);
                        }
                        continue;
                    }
                    Value::Array(_) => path += "[]",
                    _ => {}
                }
                found.insert(path.clone());
                paths(value, &path, fields, found);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                paths(element, path, fields, found);
            }
        }
        _ => {}
    }
}

/// Traces of 0.2.0, of many kinds.
fn traces() -> Vec<PathBuf> {
    let sets = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/0.2.0")).unwrap();
    let sets = sets.map(|set| set.unwrap().path()).filter(|path| path.is_dir());
    let files = sets.flat_map(|set| fs::read_dir(set).unwrap());
    let files = files.map(|file| file.unwrap().path());
    let mut traces: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "omptrace")).collect();
    traces.sort();
    traces
}

#[test]
fn the_document_has_every_field() {
    let folder = two_sets("the_document_has_every_field");
    let sampled = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/0.2.0/sampled");
    let sampled = sampled.display();
    let traces = traces();
    let of_traces = |words: &[&str]| {
        let said = run(omptrace(&folder).args(words).args(&traces));
        assert!(said.status < Some(2), "{said:?}");
        said.stdout
    };
    let of_runs = |words: &str| {
        let said = run(omptrace(&folder).args(words.split_whitespace()));
        assert!(said.status < Some(2), "{said:?}");
        said.stdout
    };
    let answers = [
        ("info", of_traces(&["info", "--json"])),
        ("parts", of_traces(&["info", "--json", "--splits", "10K"])),
        ("check", of_traces(&["check", "--json"])),
        ("doctor", of_runs("doctor --json --tool libomptrace.so /bin/true")),
        (
            "diff",
            of_runs("diff --json a0.json a1.json -- b0.json b1.json")
                + &of_runs("diff --json --fail-on duration>5% a0.json b0.json")
                + &of_runs("diff --json a0.json slow.json")
                + &of_runs(&format!("diff --json {sampled} {sampled}")),
        ),
        (
            "scaling",
            of_runs("scaling --json --weak a0.json more.json") + &of_runs("scaling --json a0.json slow.json"),
        ),
    ];
    let documented = documented();
    let mut wrong = Vec::new();
    for (section, text) in answers {
        let fields = &documented[section];
        let mut found = BTreeSet::new();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["schema"], SCHEMA, "{section}: {line}");
            paths(&value, "", fields, &mut found);
        }
        for field in &found {
            // A list may be `null`, and objects whose names are not fixed may be empty.
            let is_known = |name: &str| fields.contains_key(name);
            let is_documented = is_known(field)
                || is_known(&format!("{field}[]"))
                || fields.keys().any(|name| name.starts_with(&format!("{field}[]")))
                || field.ends_with("{}") && is_known(field.trim_end_matches("{}"));
            if !is_documented {
                wrong.push(format!("{section}: {field} is not in the document"));
            }
        }
        for (field, may_lack) in fields {
            let is_found = found.contains(field) || found.contains(field.trim_end_matches("[]"));
            if !is_found && !may_lack {
                wrong.push(format!("{section}: {field} is in the document only"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Its arguments are the event's own.
#[test]
fn each_line_of_a_dump_has_the_documented_fields() {
    let folder = folder("each_line_of_a_dump_has_the_documented_fields");
    let fields = &documented()["dump"];
    for trace in traces() {
        let said = run(omptrace(&folder).args(["dump", "--json"]).arg(trace));
        for line in said.stdout.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            for (field, may_lack) in fields {
                assert!(*may_lack || event.get(field).is_some(), "{field}: {line}");
            }
            assert_eq!(event["schema"], SCHEMA);
            // JavaScript and others read numbers as doubles.
            let exact = 1_i64 << 53;
            for (name, value) in event.as_object().unwrap() {
                let is_exact = value.as_i64().is_none_or(|number| number.abs() <= exact)
                    && value.as_u64().is_none_or(|number| number <= exact.unsigned_abs());
                assert!(is_exact, "{name}: {line}");
            }
        }
    }
}
