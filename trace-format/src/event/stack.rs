//! Call stacks, each encoded as the difference from the one before.
//!
//! Consecutive samples of a thread usually share their outer frames: the second one is stored as the number of shared
//! frames and its other frames. Each chunk can be decoded alone, so its first stack is complete.
//!
//! ```
//! use omptrace_trace_format::field::Stack;
//! use omptrace_trace_format::stack::Stacks;
//!
//! let mut writer = Stacks::default();
//! assert_eq!(writer.shorten(&[7, 3, 2, 1]).shared, 0);
//! let second = writer.shorten(&[9, 8, 2, 1]);
//! assert_eq!((second.shared, &second.frames[..]), (2, &[9, 8][..]));
//! ```

use std::borrow::Cow;

use crate::event::Event;
use crate::event::field::Stack;

/// Maximum number of frames of a stack. Limits the memory for a chunk in which short stacks share ever more frames.
pub const MAX_FRAMES: usize = 1 << 12;

/// The state for encoding or decoding the stacks of a chunk.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The previous stack, outermost frame first.
    last: Vec<u64>,
}

impl Stacks {
    /// Returns a state that does not allocate for stacks of up to `frames` frames.
    pub fn with_capacity(frames: usize) -> Stacks {
        Stacks { last: Vec::with_capacity(frames) }
    }

    /// Starts a chunk: its first stack shares no frames.
    pub fn clear(&mut self) {
        self.last.clear();
    }

    /// Encodes the chunk's next stack, `frames` with the innermost first. Keeps only the [`MAX_FRAMES`] innermost
    /// frames.
    pub fn shorten<'f>(&mut self, frames: &'f [u64]) -> Stack<'f> {
        let frames = &frames[..frames.len().min(MAX_FRAMES)];
        let outer = self.last.iter().zip(frames.iter().rev());
        let shared = outer.take_while(|(last, frame)| last == frame).count();
        let frames = &frames[..frames.len() - shared];
        self.last.truncate(shared);
        self.last.extend(frames.iter().rev());
        Stack { shared: shared as u64, frames: Cow::Borrowed(frames) }
    }

    /// Inverse of [`Stacks::shorten`]: completes the frames of the chunk's next stack. Returns false if the stack
    /// shares more frames than the previous one has, or is too long; the next stack then shares no frames.
    pub fn restore(&mut self, stack: &mut Stack<'static>) -> bool {
        let shared = usize::try_from(stack.shared).unwrap_or(usize::MAX);
        let is_sound = shared <= self.last.len() && shared.saturating_add(stack.frames.len()) <= MAX_FRAMES;
        if !is_sound {
            self.clear();
            return false;
        }
        self.last.truncate(shared);
        if shared > 0 {
            stack.frames.to_mut().extend(self.last.iter().rev());
            stack.shared = 0;
        }
        let own = stack.frames.len() - shared;
        self.last.extend(stack.frames[..own].iter().rev());
        true
    }
}

impl<'a> Event<'a> {
    /// The event's call stack, if it has one.
    pub fn stack(&self) -> Option<&Stack<'a>> {
        match self {
            Event::Sample(sample) => Some(&sample.stack),
            Event::Context(context) => Some(&context.stack),
            _ => None,
        }
    }

    /// The event's call stack, for [`Stacks::restore`].
    pub(crate) fn stack_mut(&mut self) -> Option<&mut Stack<'a>> {
        match self {
            Event::Sample(sample) => Some(&mut sample.stack),
            Event::Context(context) => Some(&mut context.stack),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(stack: &Stack<'_>) -> Stack<'static> {
        Stack { shared: stack.shared, frames: stack.frames.to_vec().into() }
    }

    fn check(stacks: &[&[u64]], shared: &[u64]) {
        let (mut writer, mut reader) = (Stacks::default(), Stacks::default());
        let mut found = Vec::new();
        for frames in stacks {
            let mut stack = owned(&writer.shorten(frames));
            found.push(stack.shared);
            assert!(reader.restore(&mut stack));
            assert_eq!((stack.shared, &stack.frames[..]), (0, *frames));
        }
        assert_eq!(found, shared);
    }

    #[test]
    fn a_stack_is_stored_without_the_outer_frames_of_the_one_before() {
        check(&[&[4, 2, 1], &[5, 2, 1], &[2, 1], &[6, 2, 1], &[], &[1], &[1]], &[0, 2, 2, 2, 0, 0, 1]);
    }

    #[test]
    fn of_a_stack_that_is_too_long_the_innermost_frames_are_kept() {
        let frames: Vec<u64> = (0..MAX_FRAMES as u64 + 5).collect();
        let mut stacks = Stacks::default();
        assert_eq!(stacks.shorten(&frames).frames[..], frames[..MAX_FRAMES]);
        assert_eq!(stacks.shorten(&frames).shared, MAX_FRAMES as u64);
    }

    #[test]
    fn a_stack_that_shares_what_is_not_there_is_refused_and_so_is_what_follows() {
        for (shared, frames) in [(3, 0), (u64::MAX, 0), (2, MAX_FRAMES)] {
            let mut stacks = Stacks::default();
            stacks.shorten(&[2, 1]);
            let stack = |shared, frames: Vec<u64>| Stack { shared, frames: frames.into() };
            assert!(!stacks.restore(&mut stack(shared, vec![9; frames])), "{shared} {frames}");
            assert!(!stacks.restore(&mut stack(1, vec![3])));
            assert!(stacks.restore(&mut stack(0, vec![3])));
        }
    }
}
