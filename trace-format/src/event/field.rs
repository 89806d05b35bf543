//! The arguments of events: the type of each, its word in the file, and how it is shown.
//!
//! Every argument is one 64-bit word in the file ([`Field`]), but for texts and lists, which only wide events
//! carry ([`WideField`]). The type says how [`crate::Event::visit`] shows it.

use std::borrow::Cow;
use std::marker::PhantomData;

use ompt_sys as ompt;

/// An `ompt_data_t *` argument: what the tool had stored behind the pointer when the callback came.
///
/// The tracer stores ids of parallel regions and tasks there, unique per process and never 0. A null pointer and
/// a pointer to data that the tool never set are different facts: see [`Id::NULL`] and [`Id::UNSET`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u64);

impl Id {
    /// The runtime passed a null pointer.
    pub const NULL: Id = Id(u64::MAX);
    /// The runtime passed a pointer to zero: an object that was never announced to the tool.
    pub const UNSET: Id = Id(0);

    /// The id of a region or task that was announced; `None` for [`Id::NULL`] and [`Id::UNSET`].
    pub fn known(self) -> Option<u64> {
        (self != Id::NULL && self != Id::UNSET).then_some(self.0)
    }
}

/// An address in the traced process: code (`codeptr_ra`), a frame, a wait id, memory of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

/// A reading of the session's clock in raw ticks, for arguments that are times themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// A number of seconds, a `double` of the runtime's; equal where its bits are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seconds(u64);

impl Seconds {
    /// A number of seconds.
    pub fn new(seconds: f64) -> Seconds {
        Seconds(seconds.to_bits())
    }

    /// The number, which may be any, not only a finite one.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// An argument of 32 bits whose whole register was kept. Intel's runtimes of 2022 and 2023 call
/// `ompt_callback_target_data_op` with one argument more in front. Only the reader, who knows the dialect, can know which
/// register holds what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Register<T>(pub u64, PhantomData<T>);

impl<T: Field> Register<T> {
    /// The register's 64 bits.
    pub fn new(bits: u64) -> Register<T> {
        Register(bits, PhantomData)
    }

    /// The argument, where the runtime keeps to the specification.
    pub fn argument(self) -> T {
        T::from_word(self.0)
    }
}

/// A text of the traced process: bytes, in no certain encoding; `None` for a null pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Option<Cow<'a, [u8]>>);

impl<'a> Text<'a> {
    /// The text `bytes`.
    pub fn new(bytes: &'a [u8]) -> Text<'a> {
        Text(Some(Cow::Borrowed(bytes)))
    }

    /// The text for people: invalid UTF-8 replaced; empty for a null pointer.
    pub fn lossy(&self) -> Cow<'_, str> {
        self.0.as_deref().map_or(Cow::Borrowed(""), String::from_utf8_lossy)
    }
}

/// Bytes of the traced process, such as an image of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes<'a>(pub Cow<'a, [u8]>);

/// One element of the array of `ompt_callback_dependences` (OpenMP 5.2, 19.4.4.12, `ompt_dependence_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The variable's address, or the iteration vector's element for a doacross dependence.
    pub variable: u64,
    /// The dependence's type.
    pub dependence_type: ompt::ompt_dependence_type_t,
}

/// The elements of an array argument that were valid when the callback came.
pub type DependenceList<'a> = Cow<'a, [Dependence]>;

/// The numbers of an array argument, for example one mapping's bytes.
pub type Numbers<'a> = Cow<'a, [u64]>;

/// A call stack: code addresses, the innermost frame first. [`crate::event::stack::Stacks`] codes one by the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack<'a> {
    /// The number of outermost frames that are those of the stack before, in the same chunk, and that `frames` lacks. 0 in
    /// what [`crate::Events`] gives: there `frames` are all.
    pub shared: u64,
    /// The other frames. The first is the program counter if nothing called on; the others are return addresses.
    pub frames: Numbers<'a>,
}

impl Stack<'_> {
    /// The address behind each frame's instruction, innermost first: one behind the program counter, then the return
    /// addresses.
    pub fn return_addresses(&self) -> impl Iterator<Item = u64> {
        let mut frames = self.frames.iter().copied();
        let innermost = frames.next().map(|frame| frame.wrapping_add(1));
        innermost.into_iter().chain(frames)
    }
}

/// An argument as exporters and `dump` see it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// An `ompt_data_t *`.
    Id(Id),
    /// An address; shown in hex.
    Address(u64),
    /// A count or an unsigned number.
    Uint(u64),
    /// A signed number.
    Int(i64),
    /// An enumerator; without a name where the runtime sent a value that the specification lacks.
    Enum(u32, Option<&'static str>),
    /// A set of flags, and the names of all flags known for the type.
    Flags(u32, &'static [(&'static str, u32)]),
    /// A raw clock reading.
    Ticks(u64),
    /// A number of seconds.
    Seconds(f64),
    /// Text of the traced process; `None` for a null pointer.
    Text(Option<&'a [u8]>),
    /// A list of dependences.
    Dependences(&'a [Dependence]),
    /// A list of numbers.
    Numbers(&'a [u64]),
    /// Bytes that mean something to another program only.
    Bytes(&'a [u8]),
}

/// An argument that is one word in the file.
pub trait Field: Copy {
    /// The type's name in the schema that each trace carries.
    const TYPE: &'static str;
    /// The word that the file holds.
    fn word(self) -> u64;
    /// The argument of a word; any word gives a value, whoever wrote it.
    fn from_word(word: u64) -> Self;
    /// How it is shown.
    fn value(self) -> Value<'static>;
}

macro_rules! fields {
    // `Type "schema name" |x| word, |w| from word, |x| value` makes one `Field`.
    ($($t:ty, $name:literal, |$x:ident| $word:expr, |$w:ident| $from:expr, $value:expr;)*) => { $(
        impl Field for $t {
            const TYPE: &'static str = $name;
            #[inline(always)]
            fn word(self) -> u64 { let $x = self; $word }
            #[inline(always)]
            fn from_word($w: u64) -> Self { $from }
            fn value(self) -> Value<'static> { let $x = self; $value }
        }
    )* };
}

fields! {
    Id,      "id",      |x| x.0,            |w| Id(w),      Value::Id(x);
    Address, "address", |x| x.0,            |w| Address(w), Value::Address(x.0);
    Ticks,   "ticks",   |x| x.0,            |w| Ticks(w),   Value::Ticks(x.0);
    u64,     "u64",     |x| x,              |w| w,          Value::Uint(x);
    i64,     "i64",     |x| x as u64,       |w| w as i64,   Value::Int(x);
    u32,     "u32",     |x| u64::from(x),   |w| w as u32,   Value::Uint(u64::from(x));
    i32,     "i32",     |x| u64::from(x as u32), |w| w as i32, Value::Int(i64::from(x));
    Seconds, "seconds", |x| x.0,            |w| Seconds(w), Value::Seconds(x.get());
}

impl<T: Field> Field for Register<T> {
    const TYPE: &'static str = T::TYPE;
    #[inline(always)]
    fn word(self) -> u64 {
        self.0
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Register::new(word)
    }
    fn value(self) -> Value<'static> {
        self.argument().value()
    }
}

macro_rules! enum_fields {
    // One `Field` per open enum of the interface: its number is the word, its name what is shown.
    ($($t:ident)*) => { $(
        impl Field for ompt::$t {
            const TYPE: &'static str = stringify!($t);
            #[inline(always)]
            fn word(self) -> u64 { u64::from(self.0) }
            #[inline(always)]
            fn from_word(word: u64) -> Self { ompt::$t(word as u32) }
            fn value(self) -> Value<'static> { Value::Enum(self.0, self.name()) }
        }
    )*
        /// Test tool: the enumerators of the type that has this name in the schema; none of any other type.
        #[doc(hidden)]
        pub fn enumerators(type_name: &str) -> &'static [(&'static str, u32)] {
            match type_name {
                $(stringify!($t) => ompt::$t::VALUES,)*
                _ => &[],
            }
        }
    };
}

enum_fields! {
    ompt_thread_t ompt_scope_endpoint_t ompt_sync_region_t ompt_work_t ompt_mutex_t ompt_task_status_t
    ompt_dispatch_t ompt_target_t ompt_target_data_op_t ompt_severity_t ompt_state_t ompt_callbacks_t ompt_record_native_t
}

macro_rules! flag_fields {
    // One `Field` per set of flags of the interface.
    ($($t:ident)*) => { $(
        impl Field for ompt::$t {
            const TYPE: &'static str = stringify!($t);
            #[inline(always)]
            fn word(self) -> u64 { u64::from(self.0) }
            #[inline(always)]
            fn from_word(word: u64) -> Self { ompt::$t(word as u32) }
            fn value(self) -> Value<'static> { Value::Flags(self.0, ompt::$t::VALUES) }
        }
    )* };
}

flag_fields! { ompt_parallel_flag_t ompt_task_flag_t ompt_cancel_flag_t ompt_frame_flag_t }

macro_rules! own_enums {
    // Enums of ours, open like those of the interface.
    ($($(#[$doc:meta])* $t:ident { $($(#[$vdoc:meta])* $name:ident = $value:literal),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $t(pub u32);
        #[allow(non_upper_case_globals, reason = "spelled as they are shown")]
        impl $t {
            $($(#[$vdoc])* pub const $name: $t = $t($value);)*
            /// The value's name, where it is one of those above.
            pub fn name(self) -> Option<&'static str> {
                match self.0 { $($value => Some(stringify!($name)),)* _ => None }
            }
        }
        impl Field for $t {
            const TYPE: &'static str = stringify!($t);
            #[inline(always)]
            fn word(self) -> u64 { u64::from(self.0) }
            #[inline(always)]
            fn from_word(word: u64) -> Self { $t(word as u32) }
            fn value(self) -> Value<'static> { Value::Enum(self.0, self.name()) }
        }
    )* };
}

/// The interfaces other than OpenMP whose calls and objects are recorded, as their events' `domain` has them.
pub mod domain {
    /// The Message Passing Interface.
    pub const MPI: u32 = 1;
    /// Those through which programs speak of themselves.
    pub const ANNOTATIONS: u32 = 2;
}

own_enums! {
    /// Why recording began, stopped or went on (`omptrace_monitoring`).
    MonitoringChange {
        /// The session begins; recording is on.
        begin = 1,
        /// `omp_control_tool(omp_control_tool_pause)`: callbacks give ids and store nothing.
        pause = 2,
        /// `omp_control_tool(omp_control_tool_start)` after a pause.
        resume = 3,
        /// `omp_control_tool(omp_control_tool_end)`: nothing more is recorded in this session.
        end = 4,
        /// `omp_control_tool(omp_control_tool_flush)`: all that was recorded so far is in the file.
        flush = 5,
    }
    /// Which clock asks for samples (`omptrace_sample_stream`).
    SampleClock {
        /// A timer on the thread's processor time (`CLOCK_THREAD_CPUTIME_ID`), in user and kernel mode.
        cpu = 1,
        /// `perf_event_open`'s task clock, in user mode only.
        perf = 2,
    }
    /// Why a stack has no more frames (`omptrace_sample`, `omptrace_context`).
    StackEnd {
        /// The thread's outermost frame was reached: the stack is complete.
        outermost = 1,
        /// The tracer keeps no more frames; the outer ones are missing.
        limit = 2,
        /// The code has no unwind information.
        no_unwind_information = 3,
        /// A value that the unwind information names could not be read.
        unreadable = 4,
        /// The stack pointer is not on the thread's stack (`makecontext`, `sigaltstack`).
        other_stack = 5,
        /// The signal handler had too little room on its stack to unwind.
        no_room = 6,
        /// The frames from some place on are by frame pointers, where nothing says that the code keeps them: they may be wrong.
        guess = 7,
    }
    /// What a thread waits for outside of OpenMP (`omptrace_external_wait`), and what its `object` is.
    WaitKind {
        /// A pthread mutex; its address.
        mutex = 1,
        /// A pthread read-write lock; its address.
        rwlock = 2,
        /// A pthread condition variable; its address.
        condition = 3,
        /// A POSIX semaphore; its address.
        semaphore = 4,
        /// The end of another thread; its `pthread_t`.
        join = 5,
        /// A pthread barrier; its address.
        barrier = 6,
        /// Time, in `nanosleep` and the like; no object.
        sleep = 7,
        /// Input, in `read` and the like; the file descriptor.
        read = 8,
        /// Output, in `write` and the like; the file descriptor.
        write = 9,
        /// Any of several file descriptors, in `poll`, `select` and the like; that of `epoll_wait`, else no object.
        poll = 10,
        /// Data from a socket; its file descriptor.
        receive = 11,
        /// Room for data to a socket; its file descriptor.
        send = 12,
        /// A connection to a socket; its file descriptor.
        accept = 13,
        /// The other end of a connection; the socket's file descriptor.
        connect = 14,
    }
    /// What a call of an interface other than OpenMP is for (`omptrace_call_begin`).
    CallClass {
        /// A blocking send.
        send = 1,
        /// A blocking receive.
        receive = 2,
        /// A blocking send and receive in one.
        send_receive = 3,
        /// A send that continues after the call has returned.
        nonblocking_send = 4,
        /// A receive that continues after the call has returned.
        nonblocking_receive = 5,
        /// Persistent or partitioned requests are started.
        start = 6,
        /// Waiting for requests.
        wait = 7,
        /// A test for completed requests that found at least one.
        test = 8,
        /// A probe for a message that can be received.
        probe = 9,
        /// A blocking collective operation.
        collective = 10,
        /// A collective operation that continues after the call has returned.
        nonblocking_collective = 11,
        /// One-sided communication and its synchronisation.
        one_sided = 12,
        /// Input or output.
        file = 13,
        /// Creating or freeing communicators, groups, windows and datatypes; initialising or finalising the library; starting processes.
        management = 14,
        /// Anything else.
        other = 15,
    }
    /// How the objects of a call take part in it (`omptrace_call_objects`).
    CallRole {
        /// The call waits for these requests.
        awaited = 1,
        /// These requests are complete.
        completed = 2,
        /// These requests are started.
        started = 3,
        /// No objects, but tests that found no completed request.
        spun = 4,
        /// No objects, but the message that is received along with the one that the call sends.
        received = 5,
        /// These requests have other handles now.
        replaced = 6,
    }
    /// What an object is (`omptrace_object_defined`).
    ObjectKind {
        /// A communicator.
        communicator = 1,
        /// A group of processes.
        group = 2,
        /// A window of memory.
        window = 3,
        /// A file.
        file = 4,
        /// A datatype.
        datatype = 5,
        /// A persistent request.
        request = 6,
        /// A domain of annotations; its handle is the number that annotations have for it.
        domain = 7,
        /// A category of annotations: its handle is the program's number, its parent the domain.
        category = 8,
        /// The text of annotations, mostly a name.
        text = 9,
        /// The name of a counter, or of a fact about a range.
        key = 10,
    }
    /// A change of a module (`omptrace_module`).
    ModuleChange {
        /// A code address in it was seen for the first time.
        seen = 1,
        /// The loader has removed it since.
        unloaded = 2,
    }
}

mod annotations;

pub use annotations::*;

/// An argument of a wide event: any number of words.
pub trait WideField<'a>: Sized {
    /// The type's name in the schema that each trace carries.
    const WIDE_TYPE: &'static str;
    /// Stores the argument through `out`, which counts on where there is no room.
    fn put(&self, out: &mut Words<'_>);
    /// Reads the argument back; `None` where words are missing.
    fn take(input: &mut &[u64]) -> Option<Self>;
    /// The argument where it is one word, else 0.
    fn single_word(&self) -> u64 {
        0
    }
    /// How it is shown.
    fn wide_value(&self) -> Value<'_>;
    /// Test generator: an argument made of the numbers that `random` gives.
    fn generate(random: &mut dyn FnMut() -> u64) -> Self;
}

/// Words being written into a slice of fixed size; `len` beyond it says that they did not fit.
#[derive(Debug)]
pub struct Words<'s> {
    slice: &'s mut [u64],
    len: usize,
}

impl<'s> Words<'s> {
    /// Writes into `slice` from its start.
    pub fn new(slice: &'s mut [u64]) -> Words<'s> {
        Words { slice, len: 0 }
    }

    /// Appends a word.
    pub fn push(&mut self, word: u64) {
        if let Some(slot) = self.slice.get_mut(self.len) {
            *slot = word;
        }
        self.len += 1;
    }

    /// Words that are or would have been written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True before the first word.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words written, or `None` if they did not fit.
    pub fn finish(self) -> Option<usize> {
        (self.len <= self.slice.len()).then_some(self.len)
    }
}

/// Stores bytes, eight to a word.
fn put_bytes(bytes: &[u8], out: &mut Words<'_>) {
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        out.push(u64::from_le_bytes(word));
    }
}

/// The mirror of [`put_bytes`]: `len` bytes; `None` where words are missing.
fn take_bytes(input: &mut &[u64], len: usize) -> Option<Vec<u8>> {
    let (words, rest) = input.split_at_checked(len.div_ceil(8))?;
    *input = rest;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    Some(bytes.take(len).collect())
}

fn pop(input: &mut &[u64]) -> Option<u64> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(*first)
}

impl<F: Field> WideField<'_> for F {
    const WIDE_TYPE: &'static str = F::TYPE;
    fn put(&self, out: &mut Words<'_>) {
        out.push(self.word());
    }
    fn take(input: &mut &[u64]) -> Option<Self> {
        pop(input).map(F::from_word)
    }
    fn single_word(&self) -> u64 {
        self.word()
    }
    fn wide_value(&self) -> Value<'_> {
        self.value()
    }
    fn generate(random: &mut dyn FnMut() -> u64) -> Self {
        F::from_word(random())
    }
}

/// A text is its length in bytes plus one, or 0 for a null pointer, then its bytes, eight to a word.
impl<'a> WideField<'a> for Text<'a> {
    const WIDE_TYPE: &'static str = "text";
    fn put(&self, out: &mut Words<'_>) {
        let Some(bytes) = self.0.as_deref() else {
            return out.push(0);
        };
        out.push(bytes.len() as u64 + 1);
        put_bytes(bytes, out);
    }
    fn take(input: &mut &[u64]) -> Option<Self> {
        let Some(len) = pop(input)?.checked_sub(1) else {
            return Some(Text(None));
        };
        let bytes = take_bytes(input, usize::try_from(len).ok()?)?;
        Some(Text(Some(Cow::Owned(bytes))))
    }
    fn wide_value(&self) -> Value<'_> {
        Value::Text(self.0.as_deref())
    }
    fn generate(random: &mut dyn FnMut() -> u64) -> Self {
        match random() % 40 {
            0 => Text(None),
            len => Text(Some((1..len).map(|_| random() as u8).collect())),
        }
    }
}

/// Bytes are their number, then they themselves, eight to a word.
impl<'a> WideField<'a> for Bytes<'a> {
    const WIDE_TYPE: &'static str = "bytes";
    fn put(&self, out: &mut Words<'_>) {
        out.push(self.0.len() as u64);
        put_bytes(&self.0, out);
    }
    fn take(input: &mut &[u64]) -> Option<Self> {
        let len = usize::try_from(pop(input)?).ok()?;
        take_bytes(input, len).map(|bytes| Bytes(Cow::Owned(bytes)))
    }
    fn wide_value(&self) -> Value<'_> {
        Value::Bytes(&self.0)
    }
    fn generate(random: &mut dyn FnMut() -> u64) -> Self {
        Bytes((0..random() % 40).map(|_| random() as u8).collect())
    }
}

/// A list is its length, then its elements.
impl<'a> WideField<'a> for DependenceList<'a> {
    const WIDE_TYPE: &'static str = "dependences";
    fn put(&self, out: &mut Words<'_>) {
        out.push(self.len() as u64);
        for dependence in self.iter() {
            out.push(dependence.variable);
            out.push(dependence.dependence_type.0.into());
        }
    }
    fn take(input: &mut &[u64]) -> Option<Self> {
        let len = usize::try_from(pop(input)?).ok()?;
        let (words, rest) = input.split_at_checked(len.checked_mul(2)?)?;
        *input = rest;
        let element = |pair: &[u64]| Dependence {
            variable: pair[0],
            dependence_type: ompt::ompt_dependence_type_t(pair[1] as u32),
        };
        Some(words.chunks_exact(2).map(element).collect())
    }
    fn wide_value(&self) -> Value<'_> {
        Value::Dependences(self)
    }
    fn generate(random: &mut dyn FnMut() -> u64) -> Self {
        let mut element = || Dependence {
            variable: random(),
            dependence_type: ompt::ompt_dependence_type_t(random() as u32),
        };
        (0..element().variable % 9).map(|_| element()).collect()
    }
}

/// A list is its length, then its elements.
impl<'a> WideField<'a> for Numbers<'a> {
    const WIDE_TYPE: &'static str = "numbers";
    fn put(&self, out: &mut Words<'_>) {
        out.push(self.len() as u64);
        self.iter().for_each(|number| out.push(*number));
    }
    fn take(input: &mut &[u64]) -> Option<Self> {
        let len = usize::try_from(pop(input)?).ok()?;
        let (words, rest) = input.split_at_checked(len)?;
        *input = rest;
        Some(words.to_vec().into())
    }
    fn wide_value(&self) -> Value<'_> {
        Value::Numbers(self)
    }
    fn generate(random: &mut dyn FnMut() -> u64) -> Self {
        (0..random() % 9).map(|_| random()).collect()
    }
}

/// A stack is how many frames it shares with the one before, the number of its other frames, then these.
impl<'a> WideField<'a> for Stack<'a> {
    const WIDE_TYPE: &'static str = "stack";
    fn put(&self, out: &mut Words<'_>) {
        out.push(self.shared);
        self.frames.put(out);
    }
    fn take(input: &mut &[u64]) -> Option<Self> {
        let shared = pop(input)?;
        let frames = Numbers::take(input)?;
        Some(Stack { shared, frames })
    }
    fn wide_value(&self) -> Value<'_> {
        Value::Numbers(&self.frames)
    }
    fn generate(random: &mut dyn FnMut() -> u64) -> Self {
        Stack { shared: 0, frames: Numbers::generate(random) }
    }
}
