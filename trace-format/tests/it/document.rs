//! `docs/format.md` ends with the event table, generated from the table in the code.

use std::fs;
use std::path::Path;

use omptrace_trace_format::event::{EventSchema, schema};

use crate::build::is_blessing;

const BEGIN: &str = "<!-- Made from trace-format/src/event/table.rs: OMPTRACE_BLESS=1 cargo test -p omptrace-trace-format -->\n";

/// One event as in the document.
fn section(event: &EventSchema) -> String {
    let kind = match event.kind {
        0 => String::new(),
        kind => format!(", kind {kind}"),
    };
    let doc: Vec<&str> = event.doc.split_whitespace().collect();
    let mut text = format!("#### {} ({}{kind})\n\n{}\n\n", event.name, event.number, doc.join(" "));
    for group in event.arguments.chunk_by(|a, b| a.group == b.group) {
        let arguments: Vec<String> =
            group.iter().map(|argument| format!("`{}`: {}", argument.name, argument.type_name)).collect();
        let arguments = arguments.join(", ");
        text += &match (event.kind, group[0].predictor) {
            (0, _) => format!("- {arguments}\n"),
            (_, None) => format!("- ({arguments})\n"),
            (_, Some(predictor)) => format!("- [{arguments}] = `{predictor}`\n"),
        };
    }
    text + "\n"
}

#[test]
fn the_document_has_the_event_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/format.md");
    let document = fs::read_to_string(&path).unwrap();
    let by_hand = document.split(BEGIN).next().unwrap_or_default();
    let table: String = schema().iter().map(section).collect();
    let expected = format!("{by_hand}{BEGIN}\n{}", table.trim_end().to_owned() + "\n");
    if is_blessing() {
        fs::write(&path, &expected).unwrap();
    } else {
        assert!(document == expected, "the event table changed: run with OMPTRACE_BLESS=1");
    }
}
