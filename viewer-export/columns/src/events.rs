//! The uninterpreted events of a process.

use std::io;
use std::ops::ControlFlow;

use omptrace_timeline::records_in_order;
use omptrace_trace_format::Reader;
use omptrace_trace_format::field::{Id, Value};
use parquet::data_type::ByteArray;
use serde_json::{Map, Value as Json, json};

use crate::process::Folders;
use crate::schema::EventRow;
use crate::table::Table;

/// Writes all events of the trace. `start`: the session's start, in nanoseconds since the job's start.
///
/// # Errors
/// The first error of writing.
pub(crate) fn write(reader: &Reader, start: i64, folders: &Folders) -> io::Result<()> {
    let mut table: Table<EventRow> = folders.table();
    records_in_order(reader, &mut |stream, record| {
        let mut arguments = Map::new();
        record.event.visit(&mut |name, value| {
            arguments.insert(name.to_owned(), argument(reader, &value));
        });
        table.push(EventRow {
            stream: stream.cast_signed(),
            time_ns: start + reader.clock().ns(record.ticks),
            event: ByteArray::from(record.event.name()),
            arguments: ByteArray::from(Json::Object(arguments).to_string().as_str()),
        });
        match table.failed() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    table.finish(true)
}

/// The value as in `omptrace dump --json`.
fn argument(reader: &Reader, value: &Value<'_>) -> Json {
    let hex = |number: u64| json!(format!("{number:#x}"));
    match *value {
        Value::Id(Id::NULL) | Value::Text(None) => Json::Null,
        Value::Id(Id::UNSET) => hex(0),
        Value::Id(Id(number)) | Value::Address(number) => hex(number),
        Value::Uint(number) => json!(number),
        Value::Int(number) => json!(number),
        Value::Enum(_, Some(name)) => json!(name),
        Value::Enum(number, None) | Value::Flags(number, _) => hex(number.into()),
        Value::Ticks(ticks) => json!(reader.clock().ns(ticks)),
        Value::Seconds(seconds) => json!(seconds),
        Value::Bytes(bytes) => json!(bytes.len()),
        Value::Text(Some(bytes)) => json!(String::from_utf8_lossy(bytes)),
        Value::Dependences(dependences) => dependences
            .iter()
            .map(|dependence| {
                let kind = dependence.dependence_type;
                json!({
                    "variable": hex(dependence.variable),
                    "dependence_type": kind.name().map_or(hex(kind.0.into()), |name| json!(name)),
                })
            })
            .collect(),
        Value::Numbers(numbers) => numbers.iter().map(|number| hex(*number)).collect(),
    }
}
