//! Predictors of arguments: an argument is stored only if it differs from the prediction.
//!
//! **Encoder and decoder share one implementation**: both keep a [`State`], call `predict`, and then pass the true
//! value to `update`, so they cannot disagree. A state is empty at the start of each chunk, except for the stream's
//! next id, which is in the chunk's header; every chunk can therefore be decoded alone.

use std::marker::PhantomData;

use crate::event::field::Id;

/// Number of slots for code addresses in a [`State`]. Collisions of two addresses cost bytes, never correctness.
pub const SLOTS: usize = 128;
/// Depth of the stack of suspended tasks. Deeper nesting costs bytes, never correctness.
const SUSPENDED: usize = 32;
/// Number of arguments remembered per depth of that stack.
const FRAMES: usize = 2;
/// Number of arguments remembered per code address.
const HERE: usize = 5;

/// Everything that the predictors remember of one stream within one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// The newest id that this stream assigned to a parallel region or task.
    pub next_id: u64,
    last: [u64; CLASSES],
    suspended: [u64; SUSPENDED],
    depth: usize,
    frames: [[u64; SUSPENDED]; FRAMES],
    code: [u64; SLOTS],
    here: [[u64; SLOTS]; HERE],
    names: [u64; SLOTS],
}

impl State {
    /// The state at the start of a chunk whose stream's newest id is `next_id`.
    pub const fn new(next_id: u64) -> State {
        State {
            next_id,
            last: [0; CLASSES],
            suspended: [0; SUSPENDED],
            depth: 0,
            frames: [[0; SUSPENDED]; FRAMES],
            code: [0; SLOTS],
            here: [[0; SLOTS]; HERE],
            names: [0; SLOTS],
        }
    }

    /// Resets the state to the start of a chunk.
    pub fn reset(&mut self, next_id: u64) {
        *self = State::new(next_id);
    }

    /// The id that this stream assigns next.
    #[inline(always)]
    pub fn fresh_id(&self) -> u64 {
        self.next_id.wrapping_add(1)
    }

    /// The code address that `slot` holds.
    #[inline(always)]
    pub fn code(&self, slot: usize) -> u64 {
        self.code[slot & (SLOTS - 1)]
    }
}

/// The class of a remembered value: arguments of one class share one memory cell.
pub trait Class {
    /// Remembers `value`.
    fn set(state: &mut State, value: u64);
    /// Like [`Class::set`], if `value` equals the result of [`Class::get`].
    fn set_again(state: &mut State, value: u64);
    /// The value remembered last.
    fn get(state: &State) -> u64;
}

macro_rules! classes {
    // Each name becomes a type with its own element of `State::last`.
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[allow(non_camel_case_types)]
        enum Place { $($name),*, Count }
        const CLASSES: usize = Place::Count as usize;
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name;
            impl Class for $name {
                #[inline(always)]
                fn set(state: &mut State, value: u64) { state.last[Place::$name as usize] = value; }
                #[inline(always)]
                fn set_again(_: &mut State, _: u64) {}
                #[inline(always)]
                fn get(state: &State) -> u64 { state.last[Place::$name as usize] }
            }
        )*
    };
}

classes! {
    /// The task that runs on this thread.
    Task,
    /// The encountering task of the innermost parallel region that this thread began.
    Outer,
    /// The parallel region that was named last.
    Parallel,
    /// Requested parallelism and flags of a parallel region.
    Team,
    /// Team size and thread number of an implicit task.
    Member,
    /// Flags of an implicit task.
    ImplicitFlags,
    /// Flags of an explicit task.
    TaskFlags,
    /// Flags of a task's frames.
    FrameFlags,
    /// The thread's own data.
    Thread,
    /// Hint and implementation of a mutex.
    Mutex,
    /// Instance of a dispatch.
    Instance,
    /// First iteration of a dispatched chunk.
    ChunkStart,
    /// Iterations of a dispatched chunk.
    ChunkIterations,
    /// Flags of a cancellation.
    CancelFlags,
    /// The task whose dependence was resolved last.
    Sink,
    /// The object at a call's end.
    CallObject,
    /// Peer and tag at a call's end.
    CallPeer,
    /// The bytes of a message.
    CallBytes,
    /// The result of a call.
    CallResult,
    /// Source and domain of the annotated range that ended last.
    AnnotationDomain,
    /// Instance of the annotated range that ended last.
    AnnotationInstance,
}

/// Predicted from the first class; remembered in both.
impl<A: Class, B: Class> Class for (A, B) {
    #[inline(always)]
    fn set(state: &mut State, value: u64) {
        A::set(state, value);
        B::set(state, value);
    }
    #[inline(always)]
    fn set_again(state: &mut State, value: u64) {
        B::set(state, value);
    }
    #[inline(always)]
    fn get(state: &State) -> u64 {
        A::get(state)
    }
}

/// Not remembered.
impl Class for () {
    #[inline(always)]
    fn set(_: &mut State, _: u64) {}
    #[inline(always)]
    fn set_again(_: &mut State, _: u64) {}
    #[inline(always)]
    fn get(_: &State) -> u64 {
        0
    }
}

/// A predictor of an argument.
pub trait Predict {
    /// True for [`Code`] only.
    const IS_CODE: bool = false;
    /// The code slot that a value of this argument selects for the whole event; 0 for all predictors except [`Code`]
    /// and [`Named`].
    #[inline(always)]
    fn slot(_value: u64) -> usize {
        0
    }
    /// The expected value in an event whose code slot is `slot`.
    fn predict(state: &State, slot: usize) -> u64;
    /// Remembers the true value.
    fn update(state: &mut State, slot: usize, value: u64);
    /// Like [`Predict::update`], if `value` equals the prediction: usually there is nothing to do.
    fn confirm(state: &mut State, slot: usize, value: u64);
}

/// Predicts the last value of the class.
#[derive(Debug)]
pub struct Last<C>(PhantomData<C>);

impl<C: Class> Predict for Last<C> {
    #[inline(always)]
    fn predict(state: &State, _: usize) -> u64 {
        C::get(state)
    }
    #[inline(always)]
    fn update(state: &mut State, _: usize, value: u64) {
        C::set(state, value);
    }
    #[inline(always)]
    fn confirm(state: &mut State, _: usize, value: u64) {
        C::set_again(state, value);
    }
}

/// Predicts the stream's next id, which becomes its newest; remembered in the class.
#[derive(Debug)]
pub struct NextId<C = ()>(PhantomData<C>);

impl<C: Class> Predict for NextId<C> {
    #[inline(always)]
    fn predict(state: &State, _: usize) -> u64 {
        state.fresh_id()
    }
    #[inline(always)]
    fn update(state: &mut State, _: usize, value: u64) {
        let is_fresh = value == state.fresh_id();
        state.next_id = state.next_id.wrapping_add(u64::from(is_fresh));
        C::set(state, value);
    }
    #[inline(always)]
    fn confirm(state: &mut State, slot: usize, value: u64) {
        Self::update(state, slot, value);
    }
}

/// Predicts the newest id of this stream, because the task created last is usually the next to run.
#[derive(Debug)]
pub struct Newest<C = ()>(PhantomData<C>);

impl<C: Class> Predict for Newest<C> {
    #[inline(always)]
    fn predict(state: &State, _: usize) -> u64 {
        state.next_id
    }
    #[inline(always)]
    fn update(state: &mut State, _: usize, value: u64) {
        C::set(state, value);
    }
    #[inline(always)]
    fn confirm(state: &mut State, slot: usize, value: u64) {
        Self::update(state, slot, value);
    }
}

/// Predicts the running task, which this event suspends.
#[derive(Debug)]
pub struct Suspend;

impl Predict for Suspend {
    #[inline(always)]
    fn predict(state: &State, _: usize) -> u64 {
        Task::get(state)
    }
    #[inline(always)]
    fn update(state: &mut State, _: usize, value: u64) {
        state.depth = state.depth.wrapping_add(1);
        state.suspended[state.depth & (SUSPENDED - 1)] = value;
    }
    #[inline(always)]
    fn confirm(state: &mut State, slot: usize, value: u64) {
        Self::update(state, slot, value);
    }
}

/// Predicts the task that was suspended last, which resumes.
#[derive(Debug)]
pub struct Resume;

impl Predict for Resume {
    #[inline(always)]
    fn predict(state: &State, _: usize) -> u64 {
        state.suspended[state.depth & (SUSPENDED - 1)]
    }
    #[inline(always)]
    fn update(state: &mut State, _: usize, value: u64) {
        state.depth = state.depth.wrapping_sub(1);
        Task::set(state, value);
    }
    #[inline(always)]
    fn confirm(state: &mut State, slot: usize, value: u64) {
        Self::update(state, slot, value);
    }
}

/// Predicts the last value seen with this event's code address, because a construct usually repeats its values. `N`
/// distinguishes the arguments of one event.
#[derive(Debug)]
pub struct Here<const N: usize>;

impl<const N: usize> Predict for Here<N> {
    #[inline(always)]
    fn predict(state: &State, slot: usize) -> u64 {
        state.here[N][slot & (SLOTS - 1)]
    }
    #[inline(always)]
    fn update(state: &mut State, slot: usize, value: u64) {
        state.here[N][slot & (SLOTS - 1)] = value;
    }
    #[inline(always)]
    fn confirm(_: &mut State, _: usize, _: u64) {}
}

/// Predicts the last value seen with the same number of suspended tasks, because a recursive task has its own stack
/// frame at each depth. `N` distinguishes the arguments of one event.
#[derive(Debug)]
pub struct Frame<const N: usize>;

impl<const N: usize> Predict for Frame<N> {
    #[inline(always)]
    fn predict(state: &State, _: usize) -> u64 {
        state.frames[N][state.depth & (SUSPENDED - 1)]
    }
    #[inline(always)]
    fn update(state: &mut State, _: usize, value: u64) {
        state.frames[N][state.depth & (SUSPENDED - 1)] = value;
    }
    #[inline(always)]
    fn confirm(_: &mut State, _: usize, _: u64) {}
}

/// Predicts a null pointer, as the specification requires.
#[derive(Debug)]
pub struct Null;

impl Predict for Null {
    #[inline(always)]
    fn predict(_: &State, _: usize) -> u64 {
        Id::NULL.0
    }
    #[inline(always)]
    fn update(_: &mut State, _: usize, _: u64) {}
    #[inline(always)]
    fn confirm(_: &mut State, _: usize, _: u64) {}
}

/// Predicts a code address: its slot, chosen by a multiplicative hash of the address, is part of the event's head.
#[derive(Debug)]
pub struct Code;

impl Predict for Code {
    const IS_CODE: bool = true;
    #[inline(always)]
    fn slot(value: u64) -> usize {
        ((value as u32).wrapping_mul(0x9E37_79B1) >> 25) as usize
    }
    #[inline(always)]
    fn predict(state: &State, slot: usize) -> u64 {
        state.code(slot)
    }
    #[inline(always)]
    fn update(state: &mut State, slot: usize, value: u64) {
        state.code[slot & (SLOTS - 1)] = value;
    }
    #[inline(always)]
    fn confirm(_: &mut State, _: usize, _: u64) {}
}

/// Predicts domain and name of an annotated range: their slot, chosen by a hash of both, is part of the event's head,
/// as for [`Code`].
#[derive(Debug)]
pub struct Named;

impl Predict for Named {
    #[inline(always)]
    fn slot(value: u64) -> usize {
        (((value ^ value >> 32) as u32).wrapping_mul(0x9E37_79B1) >> 25) as usize
    }
    #[inline(always)]
    fn predict(state: &State, slot: usize) -> u64 {
        state.names[slot & (SLOTS - 1)]
    }
    #[inline(always)]
    fn update(state: &mut State, slot: usize, value: u64) {
        state.names[slot & (SLOTS - 1)] = value;
    }
    #[inline(always)]
    fn confirm(_: &mut State, _: usize, _: u64) {}
}
