//! Prints every event of a trace with its arguments, in chronological order and without interpretation.
//!
//! The output is readable text, or one JSON object per line. An object has `schema`, `stream`, `time_ns` (since the
//! session's start) and `event`. The arguments follow under their OMPT names, with `endpoint` if the event has one.
//! Ids, addresses, flags and unknown enumerators are hex strings. An id is `null` for a null pointer and `"0x0"` for
//! data that was never set. Other numbers above 2^53, which many JSON readers round, are decimal strings, and so are
//! all times since 1970. For an MPI call, `function_name` follows the number `function`; the text output contains the
//! name instead of the number.

use std::io::{self, Write};
use std::ops::ControlFlow;

use omptrace_symbols::printable::printable;
use omptrace_timeline::model::called_function;
use omptrace_timeline::records_in_order;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::field::{Dependence, Id, Value};
use omptrace_trace_format::{Diagnostic, Reader, Record};

use crate::writer::json;
use crate::writer::output::Output;

/// Writes all events as text, one per line. Returns the problems of the chunks; [`Reader::diagnostics`] contains the
/// others.
///
/// # Errors
/// The first write error.
pub fn dump_text(reader: &Reader, out: Box<dyn Write + Send>) -> io::Result<Vec<Diagnostic>> {
    dump(reader, out, text_line)
}

/// Writes all events as JSON, one object per line. Returns the problems of the chunks; [`Reader::diagnostics`] contains
/// the others.
///
/// # Errors
/// The first write error.
pub fn dump_json(reader: &Reader, out: Box<dyn Write + Send>) -> io::Result<Vec<Diagnostic>> {
    dump(reader, out, json_line)
}

/// The version of the fields in JSON.
const SCHEMA: u32 = 2;

/// Larger numbers may not be exact as doubles, to which many JSON readers convert them.
const MAX_EXACT: u64 = 1 << 53;

/// The argument that contains the number of an API function that the program calls.
const FUNCTION: &str = "function";

/// Writes one event.
type WriteLine = fn(&mut Vec<u8>, &Reader, u32, &Record);

fn dump(reader: &Reader, out: Box<dyn Write + Send>, write: WriteLine) -> io::Result<Vec<Diagnostic>> {
    let mut out = Output::new(out);
    let diagnostics = records_in_order(reader, &mut |stream, record| {
        write(out.buffer(), reader, stream, record);
        out.buffer().push(b'\n');
        out.written();
        match out.failed() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    out.finish().map(|()| diagnostics)
}

/// The event's name; for an event of a newer tracer, the name in that tracer's own table.
fn name<'n>(reader: &'n Reader, event: &Event<'_>) -> &'n str {
    match event {
        Event::Unknown(unknown) => {
            let schema = &reader.metadata().schema;
            let row = schema.iter().find(|row| row.number == unknown.number);
            row.map_or(event.name(), |row| &row.name)
        }
        _ => event.name(),
    }
}

fn json_line(out: &mut Vec<u8>, reader: &Reader, stream: u32, record: &Record) {
    out.extend_from_slice(b"{\"schema\":");
    json::uint(out, SCHEMA);
    out.extend_from_slice(b",\"stream\":");
    json::uint(out, stream);
    out.extend_from_slice(b",\"time_ns\":");
    json::int(out, reader.clock().ns(record.ticks));
    out.extend_from_slice(b",\"event\":");
    json::string(out, name(reader, &record.event));
    record.event.visit(&mut |name, value| {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        let is_exact = |number: u64| number <= MAX_EXACT && name != "modified_ns";
        match value {
            Value::Uint(number) if !is_exact(number) => json::string(out, &number.to_string()),
            Value::Int(number) if !is_exact(number.unsigned_abs()) => {
                json::string(out, &number.to_string());
            }
            value => json_value(out, reader, &value),
        }
        if let Some(function) = called_function(&record.event).filter(|_| name == FUNCTION) {
            out.extend_from_slice(b",\"function_name\":");
            json::string(out, function);
        }
    });
    out.push(b'}');
}

fn json_value(out: &mut Vec<u8>, reader: &Reader, value: &Value<'_>) {
    match *value {
        Value::Id(Id::NULL) | Value::Text(None) => out.extend_from_slice(b"null"),
        Value::Id(Id::UNSET) => json::hex_string(out, 0),
        Value::Id(Id(number)) | Value::Address(number) => json::hex_string(out, number),
        Value::Uint(number) => json::uint(out, number),
        Value::Int(number) => json::int(out, number),
        Value::Enum(_, Some(name)) => json::string(out, name),
        Value::Enum(number, None) | Value::Flags(number, _) => json::hex_string(out, number.into()),
        Value::Ticks(ticks) => json::int(out, reader.clock().ns(ticks)),
        Value::Seconds(seconds) if seconds.is_finite() => {
            out.extend_from_slice(format!("{seconds:?}").as_bytes());
        }
        Value::Seconds(_) => out.extend_from_slice(b"null"),
        // Bytes are for other programs, so the text shows only their number.
        Value::Bytes(bytes) => json::uint(out, bytes.len() as u64),
        Value::Text(Some(bytes)) => json::string(out, &String::from_utf8_lossy(bytes)),
        Value::Dependences(dependences) => list(out, dependences, json_dependence),
        Value::Numbers(numbers) => list(out, numbers, |out, number| json::hex_string(out, *number)),
    }
}

fn list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn json_dependence(out: &mut Vec<u8>, dependence: &Dependence) {
    out.extend_from_slice(b"{\"variable\":");
    json::hex_string(out, dependence.variable);
    out.extend_from_slice(b",\"dependence_type\":");
    match dependence.dependence_type.name() {
        Some(name) => json::string(out, name),
        None => json::hex_string(out, dependence.dependence_type.0.into()),
    }
    out.push(b'}');
}

/// Time, stream and event in columns, followed by the arguments.
fn text_line(out: &mut Vec<u8>, reader: &Reader, stream: u32, record: &Record) {
    let ns = reader.clock().ns(record.ticks);
    let name = printable(name(reader, &record.event));
    out.extend_from_slice(format!("{ns:>15} {stream:>4} {name:<20}").as_bytes());
    record.event.visit(&mut |name, value| {
        out.push(b' ');
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        match called_function(&record.event).filter(|_| name == FUNCTION) {
            Some(function) => out.extend_from_slice(function.as_bytes()),
            None => text_value(out, reader, &value),
        }
    });
}

fn text_value(out: &mut Vec<u8>, reader: &Reader, value: &Value<'_>) {
    match *value {
        Value::Id(Id::NULL) => out.extend_from_slice(b"null"),
        Value::Id(Id::UNSET) => out.extend_from_slice(b"unset"),
        Value::Id(Id(number)) | Value::Address(number) => json::hex(out, number),
        Value::Enum(_, Some(name)) => out.extend_from_slice(name.as_bytes()),
        Value::Enum(number, None) => json::hex(out, number.into()),
        Value::Flags(number, names) => text_flags(out, number, names),
        Value::Text(Some(bytes)) => json::printable_string(out, &String::from_utf8_lossy(bytes)),
        _ => json_value(out, reader, value),
    }
}

/// The number, and the names of the flags that are set.
fn text_flags(out: &mut Vec<u8>, number: u32, names: &[(&str, u32)]) {
    json::hex(out, number.into());
    let set = names.iter().filter(|(_, bits)| *bits != 0 && number & bits == *bits);
    for (index, (name, _)) in set.enumerate() {
        out.push(if index == 0 { b':' } else { b'|' });
        out.extend_from_slice(name.strip_prefix("ompt_").unwrap_or(name).as_bytes());
    }
}
