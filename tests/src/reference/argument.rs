//! What a callback's arguments can be: each type here says how its values are passed to the tool, shown afterwards,
//! and generated for property tests.

use std::ffi::{c_char, c_int, c_uint};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::*;
use proptest::prelude::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// A line of the report: the callback's name and arguments, as `omptrace dump --json` has them.
pub type Line = Map<String, Value>;

/// An argument of a [`Call`](super::Call).
pub trait Argument: Clone + Debug + Serialize + DeserializeOwned + 'static {
    /// It, placed in memory where the callback gets a pointer.
    type Placed<'a>: Placed;

    /// Places it in memory.
    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a>;

    /// Any value.
    fn any() -> BoxedStrategy<Self>;

    /// The highest slot that it names.
    fn highest_slot(&self) -> Option<u32> {
        None
    }

    /// Adds `distance` to the slots that it names, so that threads do not share them.
    fn move_slots(&mut self, distance: u32) {
        let _ = distance;
    }
}

/// An argument that lives in memory until the callback has returned.
pub trait Placed {
    /// What is in the register.
    fn word(&self) -> u64;

    /// Adds it to the line, after the callback has returned.
    fn show(&self, name: &str, line: &mut Line);
}

/// A C type that a callback has as a parameter, made of a register's content.
pub trait Parameter {
    /// The parameter in `word`.
    fn from_word(word: u64) -> Self;
}

macro_rules! parameters {
    ($($t:ty: |$word:ident| $from:expr;)*) => {$(
        impl Parameter for $t {
            fn from_word($word: u64) -> Self {
                $from
            }
        }
    )*};
}

parameters! {
    u64: |word| word;
    i64: |word| word as i64;
    usize: |word| word as usize;
    c_int: |word| word as c_int;
    c_uint: |word| word as c_uint;
    ompt_data_t: |word| ompt_data_t { value: word };
}

impl<T> Parameter for *const T {
    fn from_word(word: u64) -> Self {
        word as usize as *const T
    }
}

impl<T> Parameter for *mut T {
    fn from_word(word: u64) -> Self {
        word as usize as *mut T
    }
}

impl Parameter for Option<ompt_function_lookup_t> {
    fn from_word(word: u64) -> Self {
        // SAFETY: `Lookup` makes this word of such an option, of the same size.
        unsafe { std::mem::transmute(word as usize) }
    }
}

fn hex(value: u64) -> Value {
    format!("{value:#x}").into()
}

/// The data objects that a round's threads have: slot `n` is one `ompt_data_t`, 0 until the tool writes it.
#[derive(Debug)]
pub struct Slots(Box<[AtomicU64]>);

impl Slots {
    /// `count` slots.
    pub fn new(count: usize) -> Slots {
        Slots((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// Where the tool finds the data.
    pub fn pointer(&self, data: Data) -> *mut ompt_data_t {
        match data {
            Data::Null => std::ptr::null_mut(),
            Data::Slot(slot) => self.0[slot as usize].as_ptr().cast(),
        }
    }

    /// What the tool last stored; `None` for a null pointer. Slots that threads share without [`Sync`] between them
    /// may change at any time.
    ///
    /// [`Sync`]: super::Step::Sync
    fn value(&self, data: Data) -> Option<u64> {
        match data {
            Data::Null => None,
            Data::Slot(slot) => Some(self.0[slot as usize].load(Ordering::Relaxed)),
        }
    }
}

/// A pointer to data that the tool has seen before; shown as it was before the callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// NULL.
    Null,
    /// A pointer to the slot of that number.
    Slot(u32),
}

/// The slots that a generated script has per thread.
pub const GENERATED_SLOTS: u32 = 12;

impl Argument for Data {
    type Placed<'a> = (*mut ompt_data_t, Option<u64>);

    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a> {
        (slots.pointer(*self), slots.value(*self))
    }

    fn any() -> BoxedStrategy<Self> {
        let slot = (0..GENERATED_SLOTS).prop_map(Data::Slot);
        prop_oneof![1 => Just(Data::Null), 7 => slot].boxed()
    }

    fn highest_slot(&self) -> Option<u32> {
        match self {
            Data::Null => None,
            Data::Slot(slot) => Some(*slot),
        }
    }

    fn move_slots(&mut self, distance: u32) {
        if let Data::Slot(slot) = self {
            *slot += distance;
        }
    }
}

impl Placed for (*mut ompt_data_t, Option<u64>) {
    fn word(&self) -> u64 {
        self.0 as u64
    }

    fn show(&self, name: &str, line: &mut Line) {
        line.insert(name.into(), self.1.map_or(Value::Null, hex));
    }
}

/// A pointer to data that the tool may write in this callback; shown as it is afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct New(pub Data);

impl Argument for New {
    type Placed<'a> = (&'a Slots, Data);

    fn place<'a>(&'a self, slots: &'a Slots) -> Self::Placed<'a> {
        (slots, self.0)
    }

    fn any() -> BoxedStrategy<Self> {
        Data::any().prop_map(New).boxed()
    }

    fn highest_slot(&self) -> Option<u32> {
        self.0.highest_slot()
    }

    fn move_slots(&mut self, distance: u32) {
        self.0.move_slots(distance);
    }
}

impl Placed for (&Slots, Data) {
    fn word(&self) -> u64 {
        self.0.pointer(self.1) as u64
    }

    fn show(&self, name: &str, line: &mut Line) {
        line.insert(name.into(), self.0.value(self.1).map_or(Value::Null, hex));
    }
}

/// Arguments that are their own content: nothing of theirs is in memory.
macro_rules! in_registers {
    ($($t:ty: |$x:ident| $word:expr, $shown:expr, $any:expr;)*) => {$(
        impl Argument for $t {
            type Placed<'a> = $t;

            fn place<'a>(&'a self, _: &'a Slots) -> $t {
                *self
            }

            fn any() -> BoxedStrategy<Self> {
                $any.boxed()
            }
        }

        impl Placed for $t {
            fn word(&self) -> u64 {
                let $x = *self;
                $word
            }

            fn show(&self, name: &str, line: &mut Line) {
                let $x = *self;
                line.insert(name.into(), $shown);
            }
        }
    )*};
}

/// An address, or another number that is shown in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

in_registers! {
    Address: |x| x.0, hex(x.0), any_word().prop_map(Address);
    u64: |x| x, x.into(), any_word();
    i64: |x| x as u64, x.into(), any_word().prop_map(|word| word as i64);
    u32: |x| x.into(), x.into(), any_word().prop_map(|word| word as u32);
    i32: |x| x as u32 as u64, x.into(), any_word().prop_map(|word| word as i32);
}

/// Small numbers, addresses as they are, and anything.
fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..20_u64,
        4 => 0x5555_5555_0000..0x5555_5555_0100_u64,
        1 => any::<u64>(),
        1 => any::<u32>().prop_map(u64::from),
        1 => Just(u64::MAX),
    ]
}

/// A type of [`ompt_sys::enums`].
pub trait OmptEnum: Copy + Debug + 'static {
    /// Its known values.
    const VALUES: &'static [(&'static str, u32)];

    /// The value's name as `omptrace dump` has it; `None` where it shows the number.
    fn name(value: u32) -> Option<&'static str>;
}

/// A number of the enumeration or set of flags `T`.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct Enum<T>(pub u32, #[serde(skip)] PhantomData<T>);

impl<T> Enum<T> {
    /// The number, known or not.
    pub const fn new(number: u32) -> Enum<T> {
        Enum(number, PhantomData)
    }
}

impl<T> Clone for Enum<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Enum<T> {}

impl<T: OmptEnum> Debug for Enum<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match T::name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl<T: OmptEnum> Argument for Enum<T> {
    type Placed<'a> = Enum<T>;

    fn place<'a>(&'a self, _: &'a Slots) -> Enum<T> {
        *self
    }

    fn any() -> BoxedStrategy<Self> {
        let known = (0..T::VALUES.len()).prop_map(|index| T::VALUES[index].1);
        prop_oneof![6 => known, 1 => 0..70_u32, 1 => any::<u32>()]
            .prop_map(Enum::new)
            .boxed()
    }
}

impl<T: OmptEnum> Placed for Enum<T> {
    fn word(&self) -> u64 {
        self.0.into()
    }

    fn show(&self, name: &str, line: &mut Line) {
        let value = T::name(self.0).map_or_else(|| hex(self.0.into()), Value::from);
        line.insert(name.into(), value);
    }
}

macro_rules! ompt_enums {
    ($name_of:expr; $($t:ident)*) => {$(
        impl OmptEnum for $t {
            const VALUES: &'static [(&'static str, u32)] = $t::VALUES;

            fn name(value: u32) -> Option<&'static str> {
                let name_of: fn($t) -> Option<&'static str> = $name_of;
                name_of($t(value))
            }
        }

        impl Parameter for $t {
            fn from_word(word: u64) -> Self {
                $t(word as u32)
            }
        }
    )*};
}

ompt_enums! { |value| value.name();
    ompt_dependence_type_t ompt_dispatch_t ompt_mutex_t ompt_scope_endpoint_t ompt_severity_t ompt_sync_region_t
    ompt_target_data_op_t ompt_target_t ompt_task_status_t ompt_thread_t ompt_work_t
}

// Sets of flags are shown as numbers.
ompt_enums! { |_| None; ompt_cancel_flag_t ompt_parallel_flag_t ompt_task_flag_t }

/// A frame, or NULL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Frame(pub Option<FrameContent>);

/// What is in a frame.
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

    fn any() -> BoxedStrategy<Self> {
        let content = (any_word(), any_word(), i32::any(), i32::any()).prop_map(
            |(exit_frame, enter_frame, exit_frame_flags, enter_frame_flags)| FrameContent {
                exit_frame,
                enter_frame,
                exit_frame_flags,
                enter_frame_flags,
            },
        );
        prop_oneof![1 => Just(Frame(None)), 3 => content.prop_map(|frame| Frame(Some(frame)))]
            .boxed()
    }
}

impl Placed for Option<Box<ompt_frame_t>> {
    fn word(&self) -> u64 {
        self.as_deref().map_or(0, |frame| &raw const *frame as u64)
    }

    /// Its fields; those of NULL are 0.
    fn show(&self, _: &str, line: &mut Line) {
        let frame = self.as_deref().copied().unwrap_or(ompt_frame_t {
            exit_frame: ompt_data_none,
            enter_frame: ompt_data_none,
            exit_frame_flags: 0,
            enter_frame_flags: 0,
        });
        // SAFETY: every bit pattern is a `u64`.
        let [exit_frame, enter_frame] =
            unsafe { [frame.exit_frame.value, frame.enter_frame.value] };
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
    /// Of a string.
    pub fn new(text: &str) -> Text {
        Text(Some(text.into()))
    }
}

impl Argument for Text {
    /// The bytes and a 0 behind them.
    type Placed<'a> = Option<Vec<u8>>;

    fn place<'a>(&'a self, _: &'a Slots) -> Self::Placed<'a> {
        self.0.as_deref().map(|text| [text, b"\0"].concat())
    }

    fn any() -> BoxedStrategy<Self> {
        prop_oneof![
            1 => Just(Text(None)),
            3 => ".{0,20}".prop_map(|text| Text::new(&text.replace('\0', ""))),
            1 => prop::collection::vec(1..=u8::MAX, 0..300).prop_map(|bytes| Text(Some(bytes))),
        ]
        .boxed()
    }
}

impl Placed for Option<Vec<u8>> {
    fn word(&self) -> u64 {
        self.as_ref().map_or(0, |text| text.as_ptr() as u64)
    }

    fn show(&self, name: &str, line: &mut Line) {
        let text = self
            .as_deref()
            .map(|text| String::from_utf8_lossy(&text[..text.len() - 1]));
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

/// A [`ControlArgument`], its text in memory.
#[derive(Debug)]
pub enum PlacedControlArgument {
    /// As it is.
    Address(Address),
    /// The bytes and a 0 behind them.
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

    fn any() -> BoxedStrategy<Self> {
        prop_oneof![
            any_word().prop_map(ControlArgument::Address),
            Text::any().prop_map(ControlArgument::Phase),
        ]
        .boxed()
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

/// What is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instance {
    /// An iteration or a code address; only for kinds that are not chunks.
    Word(u64),
    /// A pointer to a chunk, for the kinds that are.
    #[allow(
        missing_docs,
        reason = "the fields are those of `ompt_dispatch_chunk_t`"
    )]
    Chunk { start: u64, iterations: u64 },
}

/// An [`Instance`], its chunk in memory.
#[derive(Debug)]
pub enum PlacedInstance {
    /// As it is.
    Word(u64),
    /// What the tool gets a pointer to.
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

    fn any() -> BoxedStrategy<Self> {
        let chunk = (any_word(), any_word())
            .prop_map(|(start, iterations)| Instance::Chunk { start, iterations });
        prop_oneof![any_word().prop_map(Instance::Word), chunk].boxed()
    }
}

impl Placed for PlacedInstance {
    fn word(&self) -> u64 {
        match self {
            PlacedInstance::Word(word) => *word,
            PlacedInstance::Chunk(chunk) => &raw const **chunk as u64,
        }
    }

    /// The instance, and what is in the chunk; 0 where it is none.
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

    fn any() -> BoxedStrategy<Self> {
        let dep = || {
            let dependence_type = Enum::<ompt_dependence_type_t>::any();
            (any_word(), dependence_type.prop_map(|number| number.0))
        };
        let deps = prop_oneof![
            8 => prop::collection::vec(dep(), 0..5),
            1 => prop::collection::vec(dep(), 500..2000),
        ];
        prop_oneof![1 => Just(Dependences(None)), 5 => deps.prop_map(|deps| Dependences(Some(deps)))]
            .boxed()
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

impl<T> Argument for Numbers<T>
where
    T: Copy
        + Into<u64>
        + TryFrom<u64, Error: Debug>
        + Debug
        + Serialize
        + DeserializeOwned
        + 'static,
{
    type Placed<'a> = &'a Self;

    fn place<'a>(&'a self, _: &'a Slots) -> &'a Self {
        self
    }

    fn any() -> BoxedStrategy<Self> {
        // The high bits where they fit.
        let number = any_word().prop_map(|word| {
            T::try_from(word).unwrap_or_else(|_| T::try_from(word & 0xffff).expect("16 bits fit"))
        });
        let numbers = prop::collection::vec(number, 0..6);
        prop_oneof![1 => Just(Numbers(None)), 5 => numbers.prop_map(|numbers| Numbers(Some(numbers)))]
            .boxed()
    }
}

impl<T: Copy + Into<u64>> Placed for &Numbers<T> {
    fn word(&self) -> u64 {
        self.0.as_ref().map_or(0, |numbers| numbers.as_ptr() as u64)
    }

    fn show(&self, name: &str, line: &mut Line) {
        let numbers: Vec<Value> = self
            .0
            .iter()
            .flatten()
            .map(|&number| hex(number.into()))
            .collect();
        line.insert(name.into(), numbers.into());
    }
}

/// The lookup function of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lookup {
    /// NULL: the device cannot be traced.
    Null,
    /// A function that finds nothing.
    FindsNothing,
}

unsafe extern "C" fn find_nothing(_: *const c_char) -> Option<ompt_interface_fn_t> {
    None
}

impl Lookup {
    fn address(self) -> u64 {
        match self {
            Lookup::Null => 0,
            Lookup::FindsNothing => find_nothing as ompt_function_lookup_t as usize as u64,
        }
    }
}

in_registers! {
    Lookup: |x| x.address(), hex(x.address()), prop_oneof![Just(Lookup::Null), Just(Lookup::FindsNothing)];
}
