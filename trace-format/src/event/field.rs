//! The arguments of events: their types, their encoding in the file, and how they are shown.
//!
//! Every argument is one 64-bit word in the file ([`Field`]), except for texts, lists and bytes, which only wide events
//! contain ([`WideField`]). The type decides how [`crate::Event::visit`] shows the argument.

use std::borrow::Cow;
use std::marker::PhantomData;

use ompt_sys as ompt;

/// An `ompt_data_t *` argument: the value that the tool had stored behind the pointer when the callback was called.
///
/// The tracer stores ids of parallel regions and tasks there; they are unique per process and never 0. A null pointer
/// differs from a pointer to data that the tool never set: see [`Id::NULL`] and [`Id::UNSET`].
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

/// A number of seconds, from a `double` of the runtime. Compares by bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seconds(u64);

impl Seconds {
    /// A number of seconds.
    pub fn new(seconds: f64) -> Seconds {
        Seconds(seconds.to_bits())
    }

    /// The number of seconds; may be infinite or NaN.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// An argument of 32 bits, recorded as its whole register. Intel's runtimes of 2022 and 2023 call
/// `ompt_callback_target_data_op` with an extra first argument; only the reader, which knows the dialect, can tell
/// which register holds which argument.
/// register holds what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Register<T>(pub u64, PhantomData<T>);

impl<T: Field> Register<T> {
    /// The register's 64 bits.
    pub fn new(bits: u64) -> Register<T> {
        Register(bits, PhantomData)
    }

    /// The argument, assuming that the runtime follows the specification.
    pub fn argument(self) -> T {
        T::from_word(self.0)
    }
}

/// A text from the traced process: bytes in an unknown encoding; `None` for a null pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Option<Cow<'a, [u8]>>);

impl<'a> Text<'a> {
    /// The text `bytes`.
    pub fn new(bytes: &'a [u8]) -> Text<'a> {
        Text(Some(Cow::Borrowed(bytes)))
    }

    /// The text for display: invalid UTF-8 is replaced; empty for a null pointer.
    pub fn lossy(&self) -> Cow<'_, str> {
        self.0.as_deref().map_or(Cow::Borrowed(""), String::from_utf8_lossy)
    }
}

/// Bytes from the traced process, such as a code image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes<'a>(pub Cow<'a, [u8]>);

/// One element of the array of `ompt_callback_dependences` (OpenMP 5.2, 19.4.4.12, `ompt_dependence_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The variable's address or, for a doacross dependence, the element of the iteration vector.
    pub variable: u64,
    /// The dependence's type.
    pub dependence_type: ompt::ompt_dependence_type_t,
}

/// The elements of an array argument, copied while the callback ran.
pub type DependenceList<'a> = Cow<'a, [Dependence]>;

/// The numbers of an array argument, for example the sizes of mappings in bytes.
pub type Numbers<'a> = Cow<'a, [u64]>;

/// A call stack: code addresses, innermost frame first. [`crate::event::stack::Stacks`] encodes each stack as the
/// difference from the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack<'a> {
    /// Number of outermost frames that this stack shares with the previous stack of the chunk and that are therefore
    /// not in `frames`. Always 0 in the events of [`crate::Events`], where `frames` is complete.
    pub shared: u64,
    /// The other frames. The first is the program counter if the innermost function had called no other; all others are
    /// return addresses.
    pub frames: Numbers<'a>,
}

impl Stack<'_> {
    /// For each frame, the address after its current instruction, innermost first: the program counter plus one, then
    /// the return addresses.
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
    /// An enumerator; the name is `None` if the specification lacks the value.
    Enum(u32, Option<&'static str>),
    /// A set of flags, and the names of all known flags of its type.
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
    /// Bytes that only another program can interpret.
    Bytes(&'a [u8]),
}

/// An argument that is one word in the file.
pub trait Field: Copy {
    /// The type's name in the schema that each trace carries.
    const TYPE: &'static str;
    /// The argument as the word in the file.
    fn word(self) -> u64;
    /// The argument from its word; accepts any word.
    fn from_word(word: u64) -> Self;
    /// The argument as exporters and `dump` show it.
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
    // One `Field` per open enum of the interface: the word is its number, shown by its name.
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
        /// Test tool: the enumerators of the type with this name in the schema; empty for other types.
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
            /// The value's name, if it is one of those above.
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

/// The interfaces other than OpenMP whose calls and objects are recorded: the values of `domain` in their events.
pub mod domain {
    /// The Message Passing Interface.
    pub const MPI: u32 = 1;
    /// The annotation interfaces (NVTX, ITT, Kokkos Tools, ...).
    pub const ANNOTATIONS: u32 = 2;
}

own_enums! {
    /// Why recording began, paused, resumed or ended (`omptrace_monitoring`).
    MonitoringChange {
        /// The session begins; recording is on.
        begin = 1,
        /// `omp_control_tool(omp_control_tool_pause)`: callbacks assign ids but record no events.
        pause = 2,
        /// `omp_control_tool(omp_control_tool_start)` after a pause.
        resume = 3,
        /// `omp_control_tool(omp_control_tool_end)`: nothing more is recorded in this session.
        end = 4,
        /// `omp_control_tool(omp_control_tool_flush)`: everything recorded so far is in the file.
        flush = 5,
    }
    /// The clock that triggers samples (`omptrace_sample_stream`).
    SampleClock {
        /// A timer on the thread's CPU time (`CLOCK_THREAD_CPUTIME_ID`), in user and kernel mode.
        cpu = 1,
        /// `perf_event_open`'s task clock, in user mode only.
        perf = 2,
    }
    /// Why a stack ends (`omptrace_sample`, `omptrace_context`).
    StackEnd {
        /// The thread's outermost frame was reached: the stack is complete.
        outermost = 1,
        /// The tracer's limit on frames was reached; the outer frames are missing.
        limit = 2,
        /// The code has no unwind information.
        no_unwind_information = 3,
        /// A value that the unwind information refers to could not be read.
        unreadable = 4,
        /// The stack pointer is not on the thread's stack (`makecontext`, `sigaltstack`).
        other_stack = 5,
        /// The signal handler's stack had too little room for unwinding.
        no_room = 6,
        /// From some frame on, frames were found by frame pointers although the code is not known to keep them: they
        /// may be wrong.
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
        /// Time, in `nanosleep` and similar functions; no object.
        sleep = 7,
        /// Input, in `read` and similar functions; the file descriptor.
        read = 8,
        /// Output, in `write` and similar functions; the file descriptor.
        write = 9,
        /// Any of several file descriptors, in `poll`, `select` and similar functions. For `epoll_wait`, the object is
        /// its descriptor; otherwise there is none.
        poll = 10,
        /// Data from a socket; its file descriptor.
        receive = 11,
        /// Room to send data to a socket; its file descriptor.
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
        /// Starting persistent or partitioned requests.
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
    /// The role of a call's objects (`omptrace_call_objects`).
    CallRole {
        /// The call waits for these requests.
        awaited = 1,
        /// These requests are complete.
        completed = 2,
        /// These requests are started.
        started = 3,
        /// No objects; the number of tests that found no completed request.
        spun = 4,
        /// No objects; the message that a send-receive call receives.
        received = 5,
        /// Persistent requests whose handles changed when they were started.
        replaced = 6,
    }
    /// The kind of an object (`omptrace_object_defined`).
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
        /// A domain of annotations; its handle is the number by which annotations refer to it.
        domain = 7,
        /// A category of annotations: its handle is the program's number, its parent the domain.
        category = 8,
        /// A text of annotations, usually a name.
        text = 9,
        /// The name of a counter, or of a fact about a range.
        key = 10,
    }
    /// A change of a module (`omptrace_module`).
    ModuleChange {
        /// A code address in the module was seen for the first time.
        seen = 1,
        /// The loader has unloaded the module.
        unloaded = 2,
    }
}

mod annotations;

pub use annotations::*;

/// An argument of a wide event: any number of words.
pub trait WideField<'a>: Sized {
    /// The type's name in the schema that each trace carries.
    const WIDE_TYPE: &'static str;
    /// Writes the argument to `out`, which keeps counting when it is full.
    fn put(&self, out: &mut Words<'_>);
    /// Reads the argument from `input`; `None` if words are missing.
    fn take(input: &mut &[u64]) -> Option<Self>;
    /// The argument if it is one word, else 0.
    fn single_word(&self) -> u64 {
        0
    }
    /// The argument as exporters and `dump` show it.
    fn wide_value(&self) -> Value<'_>;
    /// Test tool: an argument made of the numbers that `random` returns.
    fn generate(random: &mut dyn FnMut() -> u64) -> Self;
}

/// A writer of words to a slice of fixed size; a `len` above the slice's means that they did not fit.
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

    /// Number of words pushed, including those that did not fit.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no word was pushed yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of words written; `None` if they did not fit.
    pub fn finish(self) -> Option<usize> {
        (self.len <= self.slice.len()).then_some(self.len)
    }
}

/// Writes bytes, eight to a word.
fn put_bytes(bytes: &[u8], out: &mut Words<'_>) {
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        out.push(u64::from_le_bytes(word));
    }
}

/// Inverse of [`put_bytes`]: reads `len` bytes; `None` if words are missing.
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

/// A text is stored as its length in bytes plus one (0 for a null pointer), then its bytes, eight to a word.
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

/// Bytes are stored as their number, then the bytes, eight to a word.
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

/// A list is stored as its length, then its elements.
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

/// A list is stored as its length, then its elements.
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

/// A stack is stored as the number of frames shared with the previous stack, the number of its other frames, then these
/// frames.
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
