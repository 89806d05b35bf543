//! Arguments passed to the tool as pointers: frames, texts, chunks, arrays.

use std::fmt::Debug;

use ompt_sys::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{Address, Argument, Enum, Line, Parameter, Placed, Slots, hex};

/// A frame, or NULL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Frame(pub Option<FrameContent>);

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of `ompt_frame_t`")]
pub struct FrameContent {
    pub exit_frame: u64,
    pub enter_frame: u64,
    pub exit_frame_flags: i32,
    pub enter_frame_flags: i32,
}

impl Argument for Frame {
    type Placed<'a> = Option<Box<ompt_frame_t>>;

    fn place<'a>(&'a self, _: &'a Slots) -> Self::Placed<'a> {
        self.0.map(|frame| {
            Box::new(ompt_frame_t {
                exit_frame: Parameter::from_word(frame.exit_frame),
                enter_frame: Parameter::from_word(frame.enter_frame),
                exit_frame_flags: frame.exit_frame_flags,
                enter_frame_flags: frame.enter_frame_flags,
            })
        })
    }
}

impl Placed for Option<Box<ompt_frame_t>> {
    fn word(&self) -> u64 {
        self.as_deref().map_or(0, |frame| &raw const *frame as u64)
    }

    /// Shows the fields; 0 for NULL.
    fn show(&self, _: &str, line: &mut Line) {
        let frame = self.as_deref().copied().unwrap_or(ompt_frame_t {
            exit_frame: ompt_data_none,
            enter_frame: ompt_data_none,
            exit_frame_flags: 0,
            enter_frame_flags: 0,
        });
        // SAFETY: every bit pattern is a `u64`.
        let [exit_frame, enter_frame] = unsafe { [frame.exit_frame.value, frame.enter_frame.value] };
        Address(exit_frame).show("exit_frame", line);
        Address(enter_frame).show("enter_frame", line);
        Address(u64::from(frame.exit_frame_flags as u32)).show("exit_frame_flags", line);
        Address(u64::from(frame.enter_frame_flags as u32)).show("enter_frame_flags", line);
    }
}

/// A C string in any encoding, or NULL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(pub Option<Vec<u8>>);

impl Text {
    /// A text from a string.
    pub fn new(text: &str) -> Text {
        Text(Some(text.into()))
    }
}

impl Argument for Text {
    /// The bytes with a terminating 0.
    type Placed<'a> = Option<Vec<u8>>;

    fn place<'a>(&'a self, _: &'a Slots) -> Self::Placed<'a> {
        self.0.as_deref().map(|text| [text, b"\0"].concat())
    }
}

impl Placed for Option<Vec<u8>> {
    fn word(&self) -> u64 {
        self.as_ref().map_or(0, |text| text.as_ptr() as u64)
    }

    fn show(&self, name: &str, line: &mut Line) {
        let text = self.as_deref().map(|text| String::from_utf8_lossy(&text[..text.len() - 1]));
        line.insert(name.into(), json!(text));
    }
}

/// The argument of `omp_control_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlArgument {
    /// Any address; only for commands that do not name a phase.
    Address(u64),
    /// The name of a phase.
    Phase(Text),
}

/// A [`ControlArgument`] whose text is in memory.
#[derive(Debug)]
pub enum PlacedControlArgument {
    /// Passed as it is.
    Address(Address),
    /// The bytes with a terminating 0.
    Phase(Option<Vec<u8>>),
}

impl Argument for ControlArgument {
    type Placed<'a> = PlacedControlArgument;

    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a> {
        match self {
            ControlArgument::Address(address) => PlacedControlArgument::Address(Address(*address)),
            ControlArgument::Phase(text) => PlacedControlArgument::Phase(text.place(slots)),
        }
    }
}

impl Placed for PlacedControlArgument {
    fn word(&self) -> u64 {
        match self {
            PlacedControlArgument::Address(address) => address.word(),
            PlacedControlArgument::Phase(text) => text.word(),
        }
    }

    fn show(&self, name: &str, line: &mut Line) {
        Address(self.word()).show(name, line);
        match self {
            PlacedControlArgument::Address(_) => _ = line.insert("text".into(), Value::Null),
            PlacedControlArgument::Phase(text) => text.show("text", line),
        }
    }
}

/// The instance that is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instance {
    /// An iteration or a code address; only for kinds that are not chunks.
    Word(u64),
    /// A pointer to a chunk; only for kinds that are chunks.
    #[allow(missing_docs, reason = "the fields are those of `ompt_dispatch_chunk_t`")]
    Chunk { start: u64, iterations: u64 },
}

/// An [`Instance`] whose chunk is in memory.
#[derive(Debug)]
pub enum PlacedInstance {
    /// Passed as it is.
    Word(u64),
    /// A chunk, passed to the tool as a pointer.
    Chunk(Box<ompt_dispatch_chunk_t>),
}

impl Argument for Instance {
    type Placed<'a> = PlacedInstance;

    fn place<'a>(&'a self, _: &'a Slots) -> Self::Placed<'a> {
        match *self {
            Instance::Word(word) => PlacedInstance::Word(word),
            Instance::Chunk { start, iterations } => {
                PlacedInstance::Chunk(Box::new(ompt_dispatch_chunk_t { start, iterations }))
            }
        }
    }
}

impl Placed for PlacedInstance {
    fn word(&self) -> u64 {
        match self {
            PlacedInstance::Word(word) => *word,
            PlacedInstance::Chunk(chunk) => &raw const **chunk as u64,
        }
    }

    /// Shows the instance and the chunk's content; 0 if it is not a chunk.
    fn show(&self, name: &str, line: &mut Line) {
        let (start, iterations) = match self {
            PlacedInstance::Word(_) => (0, 0),
            PlacedInstance::Chunk(chunk) => (chunk.start, chunk.iterations),
        };
        Address(self.word()).show(name, line);
        start.show("start", line);
        iterations.show("iterations", line);
    }
}

/// An array of dependences, or NULL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dependences(pub Option<Vec<(u64, u32)>>);

impl Argument for Dependences {
    type Placed<'a> = Option<Vec<ompt_dependence_t>>;

    fn place<'a>(&'a self, _: &'a Slots) -> Self::Placed<'a> {
        let place = |&(variable, dependence_type): &(u64, u32)| ompt_dependence_t {
            variable: Parameter::from_word(variable),
            dependence_type: ompt_dependence_type_t(dependence_type),
        };
        self.0.as_ref().map(|deps| deps.iter().map(place).collect())
    }
}

impl Placed for Option<Vec<ompt_dependence_t>> {
    fn word(&self) -> u64 {
        self.as_ref().map_or(0, |deps| deps.as_ptr() as u64)
    }

    fn show(&self, name: &str, line: &mut Line) {
        let show = |dependence: &ompt_dependence_t| {
            let mut line = Line::new();
            // SAFETY: every bit pattern is a `u64`.
            Address(unsafe { dependence.variable.value }).show("variable", &mut line);
            Enum::<ompt_dependence_type_t>::new(dependence.dependence_type.0)
                .show("dependence_type", &mut line);
            Value::from(line)
        };
        let deps: Vec<Value> = self.iter().flatten().map(show).collect();
        line.insert(name.into(), deps.into());
    }
}

/// An array of numbers of 32 or 64 bits, or NULL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Numbers<T>(pub Option<Vec<T>>);

impl<T> Numbers<T> {
    /// Number of elements; `None` for NULL.
    pub fn count(&self) -> Option<usize> {
        self.0.as_ref().map(Vec::len)
    }

    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        self.0.iter_mut().for_each(|numbers| numbers.truncate(len));
    }
}

impl<T> Argument for Numbers<T>
where
    T: Copy + Into<u64> + TryFrom<u64, Error: Debug> + Debug + Serialize + DeserializeOwned + 'static,
{
    type Placed<'a> = &'a Self;

    fn place<'a>(&'a self, _: &'a Slots) -> &'a Self {
        self
    }
}

impl<T: Copy + Into<u64>> Placed for &Numbers<T> {
    fn word(&self) -> u64 {
        self.0.as_ref().map_or(0, |numbers| numbers.as_ptr() as u64)
    }

    fn show(&self, name: &str, line: &mut Line) {
        let numbers: Vec<Value> = self.0.iter().flatten().map(|&number| hex(number.into())).collect();
        line.insert(name.into(), numbers.into());
    }
}
