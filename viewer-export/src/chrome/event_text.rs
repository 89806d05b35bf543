//! The text of events. Repeated text is kept and copied at once.

use crate::writer::decimal::{Pieces, ShortText, put};
use crate::writer::interned_text::ByWord;
use crate::writer::json;
use omptrace_timeline::model::{Argument, Category, LinkKind, Ns, Source, Value, split_place};

/// A repeated text; if it fits into `N` bytes, it is copied as a block of fixed size.
#[derive(Default)]
pub(super) struct Constant<const N: usize> {
    pub(super) text: Vec<u8>,
    pub(super) short: Option<ShortText<N>>,
}

impl<const N: usize> Constant<N> {
    pub(super) fn new(text: Vec<u8>) -> Constant<N> {
        let short = ShortText::of(&text);
        Constant { text, short }
    }
}

/// The text after the time in the start and end of a slice.
#[derive(Default)]
pub(super) struct Called {
    /// `,"name":...,"cat":...` and the place.
    pub(super) begin: Constant<96>,
    /// `,"name":...`
    pub(super) end: Constant<48>,
}

/// `"name":` of an argument.
pub(super) type ArgumentName = Constant<32>;

/// The text after the id in both ends of a flow: `","name":...,"cat":"flow"}`; and the names of the flow's marks.
#[derive(Default)]
pub(super) struct FlowTexts {
    pub(super) start: ShortText<64>,
    pub(super) finish: ShortText<64>,
    pub(super) marks: [Called; 2],
}

impl FlowTexts {
    pub(super) fn of(kind: LinkKind) -> FlowTexts {
        let name = kind.name();
        let text = |more| {
            let text = format!("\",\"name\":\"{name}\",\"cat\":\"flow\"{more}}}");
            ShortText::of(text.as_bytes()).expect("the kinds' names are short")
        };
        let (cause, effect) = kind.marks();
        FlowTexts {
            start: text(""),
            finish: text(",\"bp\":\"e\""),
            marks: [cause, effect].map(|mark| Called::new(mark, kind.category(), None)),
        }
    }
}

/// The text around the time in each sample of a counter.
pub(super) struct CounterTexts {
    /// `{"ph":"C","pid":1,"tid":1,"name":"threads","cat":...,"ts":`
    pub(super) before_time: Vec<u8>,
    /// `,"args":{"in parallel regions":`
    pub(super) before_value: Vec<u8>,
}

/// The text between phase and time in each event of a track: `","pid":1,"tid":2,"ts":`.
pub(super) type BeforeTime = ShortText<48>;

/// Viewers read numbers as doubles, which can represent all integers below this one.
pub(super) const EXACT: u64 = 1 << 53;

/// `{"ph":"B","pid":1,"tid":2,"ts":0.001`: up to 73 bytes, and room for 4 more.
#[inline(always)]
pub(super) fn begin<const N: usize>(
    pieces: &mut Pieces<'_, N>,
    phase: u8,
    before_time: &BeforeTime,
    time: Ns,
) {
    pieces.text(&[b'{', b'"', b'p', b'h', b'"', b':', b'"', phase]);
    pieces.short(before_time);
    pieces.micros(time.unsigned_abs());
}

/// `{"ph":"B","pid":1,"tid":2`
pub(super) fn head(out: &mut Vec<u8>, phase: u8, pid: u32, tid: u32) {
    out.extend_from_slice(b"{\"ph\":\"");
    out.push(phase);
    out.extend_from_slice(b"\",");
    numbers(out, pid, tid);
}

/// `"pid":1,"tid":2`
pub(super) fn numbers(out: &mut Vec<u8>, pid: u32, tid: u32) {
    out.extend_from_slice(b"\"pid\":");
    json::uint(out, pid);
    out.extend_from_slice(b",\"tid\":");
    json::uint(out, tid);
}

/// `,"name":...`
pub(super) fn name_text(name: &str) -> Vec<u8> {
    let mut text = b",\"name\":".to_vec();
    json::string(&mut text, name);
    text
}

/// `,"name":...,"cat":...`
pub(super) fn name_and_category(name: &str, category: Category) -> Vec<u8> {
    let mut text = name_text(name);
    text.extend_from_slice(b",\"cat\":\"");
    text.extend_from_slice(category.name().as_bytes());
    text.push(b'"');
    text
}

impl Called {
    pub(super) fn new(name: &str, category: Category, source: Option<&Source>) -> Called {
        let mut begin = name_and_category(name, category);
        if source.and_then(Source::own_line).is_some() {
            begin.extend_from_slice(b",\"loc\":");
            let place = split_place(name).1;
            json::string(&mut begin, place.strip_prefix(" @").unwrap_or(place));
        }
        Called { begin: Constant::new(begin), end: Constant::new(name_text(name)) }
    }
}

/// Appends the arguments, each followed by a comma, with a text before the first.
#[inline(always)]
pub(super) fn write_arguments(
    out: &mut Vec<u8>,
    names: &mut ByWord<ArgumentName>,
    arguments: &[Argument<'_>],
) {
    if !arguments.is_empty() {
        write_some_arguments(out, names, arguments);
    }
}

/// Like [`write_arguments`], for at least one argument. The ends of most slices have none, and need no call.
pub(super) fn write_some_arguments(
    out: &mut Vec<u8>,
    names: &mut ByWord<ArgumentName>,
    arguments: &[Argument<'_>],
) {
    if out.is_empty() {
        out.extend_from_slice(b",\"args\":{");
    }
    for argument in arguments {
        let name = names.get(argument.name, || ArgumentName::new(format!("\"{}\":", argument.name).into()));
        match (argument.value, &name.short) {
            (Value::Hex(number), Some(short)) => {
                put::<56>(out, |pieces| {
                    pieces.short(short);
                    pieces.text(b"\"0x");
                    pieces.hex(number);
                    pieces.text(b"\",");
                });
                continue;
            }
            (Value::Uint(number @ ..EXACT), Some(short)) => {
                put::<64>(out, |pieces| {
                    pieces.short(short);
                    pieces.decimal(number);
                    pieces.text(b",");
                });
                continue;
            }
            _ => out.extend_from_slice(&name.text),
        }
        match argument.value {
            Value::Uint(number @ ..EXACT) => json::uint(out, number),
            Value::Uint(number) | Value::Hex(number) => json::hex_string(out, number),
            Value::Int(number) => json::int(out, number),
            Value::Text(text) => json::string(out, text),
        }
        out.push(b',');
    }
}

/// Appends all arguments except ids and addresses as one text, the additional argument `detail`.
#[inline]
pub(super) fn write_detail(out: &mut Vec<u8>, arguments: &[Argument<'_>]) {
    let is_for_people = |argument: &&Argument<'_>| !matches!(argument.value, Value::Hex(_));
    let mut shown = arguments.iter().filter(is_for_people).peekable();
    if shown.peek().is_none() {
        return;
    }
    out.extend_from_slice(b"\"detail\":\"");
    while let Some(argument) = shown.next() {
        out.extend_from_slice(argument.name.as_bytes());
        out.push(b'=');
        match argument.value {
            Value::Uint(number) | Value::Hex(number) => put::<24>(out, |pieces| {
                pieces.decimal(number);
            }),
            Value::Int(number) => json::int(out, number),
            Value::Text(text) => json::escape(out, text),
        }
        if shown.peek().is_some() {
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(b"\",");
}

/// Ends an event with arguments that were written earlier, if there are any.
#[inline]
pub(super) fn end(out: &mut Vec<u8>, arguments: &[u8]) {
    match arguments.split_last() {
        Some((_comma, members)) => {
            out.extend_from_slice(members);
            out.extend_from_slice(b"}}");
        }
        None => out.push(b'}'),
    }
}

/// The start of a slice.
#[inline]
pub(super) fn slice_begin(
    out: &mut Vec<u8>,
    before_time: &BeforeTime,
    time: Ns,
    called: &Called,
    arguments: &[u8],
) {
    if let Some(called) = &called.begin.short {
        put::<176>(out, |pieces| {
            begin(pieces, b'B', before_time, time);
            pieces.short(called);
        });
    } else {
        put::<80>(out, |pieces| begin(pieces, b'B', before_time, time));
        out.extend_from_slice(&called.begin.text);
    }
    end(out, arguments);
}

/// An event without duration.
pub(super) fn instant_event(
    out: &mut Vec<u8>,
    before_time: &BeforeTime,
    time: Ns,
    called: &Called,
    arguments: &[u8],
) {
    put::<80>(out, |pieces| begin(pieces, b'i', before_time, time));
    out.extend_from_slice(b",\"s\":\"t\"");
    out.extend_from_slice(&called.begin.text);
    end(out, arguments);
}

/// The end of a slice.
#[inline]
pub(super) fn slice_end(
    out: &mut Vec<u8>,
    before_time: &BeforeTime,
    time: Ns,
    called: &Called,
    arguments: &[u8],
) {
    if let Some(called) = &called.end.short {
        put::<128>(out, |pieces| {
            begin(pieces, b'E', before_time, time);
            pieces.short(called);
        });
    } else {
        put::<80>(out, |pieces| begin(pieces, b'E', before_time, time));
        out.extend_from_slice(&called.end.text);
    }
    end(out, arguments);
}

/// One end of a flow. `text` follows its id.
#[inline]
pub(super) fn flow_event(
    out: &mut Vec<u8>,
    phase: u8,
    before_time: &BeforeTime,
    time: Ns,
    id: u64,
    text: &ShortText<64>,
) {
    put::<168>(out, |pieces| {
        begin(pieces, phase, before_time, time);
        pieces.text(b",\"id\":\"0x");
        pieces.hex(id);
        pieces.short(text);
    });
}
