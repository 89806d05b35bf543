//! Converts samples to the user's model: stacks of what the programmer wrote, instead of how the runtime executes it.
//!
//! ```text
//! a worker's stack    leaf <- body of the region <- runtime <- start of the thread
//! the user's model    leaf <- body of the region <- stack of the thread that encountered the region
//! ```
//!
//! The runtime's frames are cut out ([`cut`]). A stack that starts in the runtime is continued by the stack of the
//! *creator*: the thread that encountered the region or created the task. That stack comes from a sample of the creator
//! inside the region, or the tracer records it at the region's end; otherwise, only the region's place is known. So
//! samples wait for the creator's stack, at most until the region ends. For a task's creator, only the place is known,
//! unless the user requested the stacks on which tasks are created.
//!
//! An activity of the runtime is a frame of its own. The thread's events show what the thread waits for; if they do
//! not, the runtime's state at the time of the sample does. docs/samples.md describes all of this.

mod activity;
mod code;
mod phases;
mod user_stack;

use std::collections::VecDeque;
use std::ops::Range;

use omptrace_trace_format::event::{Context, Sample as Taken};
use omptrace_trace_format::field::{Stack, StackEnd};

use super::*;
use crate::model::thread_introduction::ThreadIntroduction;
use crate::model::{FunctionKind, Point, RuntimeActivity, Sample, StackFrame};
use activity::activity;
use code::{BelongsTo, Code, Codes};

/// Maximum number of frames of a stack in the user's model. Limits chains of tasks that create each other.
const MAX_FRAMES: usize = 1024;

/// Maximum number of regions through which a stack is continued. Limits invalid traces in which a region contains
/// itself.
const MAX_NESTING: usize = 256;

/// The state that is needed to convert a process's samples; empty if there are none or none are wanted.
#[derive(Default)]
pub(crate) struct Samples {
    /// By index of a stream: the index of the thread whose samples the stream contains.
    of_stream: Vec<Option<usize>>,
    threads: Vec<Sampled>,
    codes: Codes,
    /// The stacks on which parallel regions were encountered, by region.
    contexts: FastMap<u64, Part>,
    /// By region: the number of samples that wait for its context.
    waiting: FastMap<u64, usize>,
    /// Explicit tasks that are not complete, or that have created such tasks.
    creations: FastMap<u64, Creation>,
    /// The frames of phases, by region; empty if they are not wanted.
    phases: BTreeMap<u32, StackFrame>,
}

/// A sampled thread.
#[derive(Default)]
struct Sampled {
    /// The runtime created the thread, so frames outside of the outermost runtime frame are not the program's.
    is_worker: bool,
    /// Samples whose stacks are incomplete, and the samples after them.
    pending: VecDeque<Pending>,
}

/// A sample that has not been reported yet.
struct Pending {
    at: Point,
    weight_ns: u64,
    activity: Option<RuntimeActivity>,
    stack: Part,
    /// The phases around the sample, outermost first.
    phases: Vec<StackFrame>,
}

/// The inner frames of a stack.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Innermost first.
    frames: Vec<StackFrame>,
    rest: Rest,
}

/// The outer frames that continue a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    /// There are no further frames.
    #[default]
    None,
    /// The stack on which this parallel region was encountered.
    Region(u64),
    /// The stack on which this task was created.
    Task(u64),
    /// Unknown.
    Unknown,
}

/// The creation of an explicit task.
struct Creation {
    codeptr_ra: u64,
    /// The creator's own stack from the creation outward, if the tracer recorded it.
    stack: Option<Vec<StackFrame>>,
    rest: Rest,
    /// Number of listed tasks that this task has created.
    children: u32,
    is_complete: bool,
}

/// A thread's own stack.
struct Own<'o> {
    /// Innermost first, as in [`Stack::return_addresses`]. Inlined functions have the address of the function around
    /// them.
    addresses: &'o [u64],
    codes: &'o [Code],
    /// The stack includes the outermost frame.
    is_complete: bool,
    is_worker: bool,
}

impl Samples {
    /// The state for the sampled ones among `threads`, which are the threads of all streams.
    pub(crate) fn new(threads: &[ThreadIntroduction], are_wanted: bool) -> Samples {
        let place = |stream| threads.binary_search_by_key(&stream, |thread| thread.stream).ok();
        let of_stream = threads.iter().map(|thread| place(thread.samples_of?));
        let of_stream: Vec<Option<usize>> = of_stream.collect();
        if !are_wanted || of_stream.iter().all(Option::is_none) {
            return Samples::default();
        }
        let is_worker = |thread: &ThreadIntroduction| {
            thread.is_helper || thread.thread_type == Some(ompt::ompt_thread_worker)
        };
        let sampled = |thread| Sampled { is_worker: is_worker(thread), pending: VecDeque::new() };
        Samples { of_stream, threads: threads.iter().map(sampled).collect(), ..Samples::default() }
    }

    fn are_wanted(&self) -> bool {
        !self.threads.is_empty()
    }

    /// The thread whose samples a stream contains.
    fn thread_of(&self, stream: usize) -> Option<usize> {
        *self.of_stream.get(stream)?
    }

    /// The frames of a stack, including inlined functions, and the address of each.
    fn codes(&mut self, stage: &mut Stage<'_>, stack: &Stack<'_>) -> (Vec<u64>, Vec<Code>) {
        let (mut addresses, mut codes) = (Vec::new(), Vec::new());
        for address in stack.return_addresses() {
            codes.extend_from_slice(self.codes.of(stage, address));
            addresses.resize(codes.len(), address);
        }
        (addresses, codes)
    }

    /// Removes a creation that is no longer needed, and those creators that only it needed.
    fn remove_creation(&mut self, task: u64) {
        let mut next = Some(task);
        while let Some(task) = next {
            let is_needed = |creation: &Creation| creation.children > 0 || !creation.is_complete;
            if self.creations.get(&task).is_none_or(is_needed) {
                return;
            }
            let removed = self.creations.remove(&task);
            next = removed.and_then(|creation| self.had_child(creation.rest));
        }
    }

    /// The task no longer needs its creator.
    fn leave_creator(&mut self, creator: Rest) {
        if let Some(creator) = self.had_child(creator) {
            self.remove_creation(creator);
        }
    }

    /// Decreases the creator's number of children. Returns the creator.
    fn had_child(&mut self, creator: Rest) -> Option<u64> {
        let Rest::Task(creator) = creator else {
            return None;
        };
        let creation = self.creations.get_mut(&creator)?;
        creation.children = creation.children.saturating_sub(1);
        Some(creator)
    }

    /// Appends the frames at a place in the program to `inner`; none if the place is in the runtime.
    fn append_place(&mut self, stage: &mut Stage<'_>, inner: &mut Vec<StackFrame>, place: u64) {
        let codes = self.codes.of(stage, place).iter();
        let codes = codes.filter(|code| code.belongs_to != BelongsTo::Runtime);
        let frames: Vec<StackFrame> = codes.map(|code| code.frame).collect();
        append(stage, inner, &frames);
    }
}

/// Appends `frames`, which are the callers of `inner`. The outermost function of `inner` may be an outlined part of the
/// function that called the runtime.
fn append(stage: &mut Stage<'_>, inner: &mut Vec<StackFrame>, frames: &[StackFrame]) {
    if let (Some(body), Some(caller)) = (inner.last_mut(), frames.first()) {
        body.function = stage.outlined(body.function, caller.function);
    }
    inner.extend_from_slice(frames);
}

impl Interpreter<'_, '_> {
    /// A sample of a thread, in the stream with this index.
    #[cold]
    pub(super) fn sample(&mut self, stream: usize, time: Ns, e: &Taken<'_>) {
        let Some(thread) = self.samples.thread_of(stream) else {
            return;
        };
        let at = Point { location: self.threads[thread].location, time };
        let weight_ns = e.weight_ns;
        self.stage.thread_event(at, ThreadEvent::Sampled { weight_ns });
        let (addresses, codes) = self.samples.codes(self.stage, &e.stack);
        let is_worker = self.samples.threads[thread].is_worker;
        let own = Own {
            addresses: &addresses,
            codes: &codes,
            is_complete: e.end == StackEnd::outermost,
            is_worker,
        };
        let (activity, stack) = self.in_users_model(thread, &own, e);
        if own.is_complete {
            self.learn_contexts(thread, &own);
        }
        let phases = self.phases_of(thread);
        self.samples.threads[thread].pending.push_back(Pending {
            at,
            weight_ns: e.weight_ns,
            activity,
            stack,
            phases,
        });
        self.complete_newest(thread);
        self.report_samples(thread);
    }

    /// The thread's activity and its stack in the user's model, as far as known now.
    fn in_users_model(
        &mut self,
        thread: usize,
        own: &Own<'_>,
        e: &Taken<'_>,
    ) -> (Option<RuntimeActivity>, Part) {
        let open = self.threads[thread].stack();
        let is_idle = own.is_worker && (e.state == ompt::ompt_state_idle || !self.is_in_team(open));
        if is_idle {
            return self.activity_alone(RuntimeActivity::Idle);
        }
        let segments = user_stack::segments(own.codes);
        let is_in_program = user_stack::is_in_program(e, segments.len() > 1, own.is_worker);
        let is_in_runtime = own.codes.first().is_some_and(|code| code.belongs_to == BelongsTo::Runtime);
        let activity = if is_in_program && !is_in_runtime {
            own.codes.first().and_then(|code| code.does)
        } else {
            // The runtime function that the program has called.
            let runtime = own.codes.iter().skip_while(|code| code.belongs_to == BelongsTo::Libc);
            let runtime = runtime.take_while(|code| code.belongs_to == BelongsTo::Runtime);
            let does = runtime.last().and_then(|code| code.does);
            Some(activity(open, does, e.state))
        };
        let segments = match is_in_program {
            true => &segments[..],
            false => &segments[1..],
        };
        let depth = open.len();
        let own_part = self.part(thread, own, segments, depth);
        let Some(activity) = activity else {
            return (None, own_part);
        };
        let (_, mut stack) = self.activity_alone(activity);
        stack.frames.extend(own_part.frames);
        stack.rest = own_part.rest;
        (Some(activity), stack)
    }

    fn activity_alone(&mut self, activity: RuntimeActivity) -> (Option<RuntimeActivity>, Part) {
        let kind = FunctionKind::Runtime(activity);
        let frame = self.stage.marker(activity.name(), kind);
        let part = Part { frames: vec![frame], rest: Rest::None };
        (Some(activity), part)
    }

    /// Whether a thread with these open regions is a member of a team that has not ended.
    fn is_in_team(&self, open: &[Frame]) -> bool {
        let mut teams = open.iter().filter_map(Frame::team_of_member);
        teams.any(|(team, _)| self.teams.contains_key(&team.0))
    }

    /// The part of the thread's own stack that belongs to its innermost deferred task; the whole stack if there is no
    /// such task. `segments`: the parts of the stack between runtime frames. `depth`: the number of regions that were
    /// open on the thread.
    fn part(&mut self, thread: usize, own: &Own<'_>, segments: &[Range<usize>], depth: usize) -> Part {
        let open = &self.threads[thread].stack()[..depth];
        let task = open.iter().rposition(|frame| self.is_deferred_task(frame));
        let boundary = task.and_then(|task| {
            let inside = open[task..].iter().rev();
            let regions = inside.filter_map(|frame| self.place_of_region(frame));
            outside_of_task(own, segments, regions.collect())
        });
        let (task, rest) = match (task, boundary) {
            (Some(task), Some(_)) => (true, Rest::Task(open[task].key)),
            // The boundary of the task may be among the missing frames.
            (Some(task), None) if !own.is_complete => (true, Rest::Task(open[task].key)),
            _ => (false, self.rest_of_own(open, own.is_worker)),
        };
        let is_whole = own.is_complete || boundary.is_some();
        let mut segments = &segments[..boundary.unwrap_or(segments.len())];
        if !task && own.is_complete && own.is_worker && own.has_runtime_frames() {
            // Drops the frames that started the runtime's thread.
            segments = &segments[..segments.len().saturating_sub(1)];
        }
        let mut frames = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            let is_outermost = !task && index + 1 == segments.len();
            let range = match is_outermost {
                true => user_stack::without_start(own.codes, segment.clone()),
                false => segment.clone(),
            };
            let of_segment: Vec<StackFrame> = own.codes[range].iter().map(|code| code.frame).collect();
            append(self.stage, &mut frames, &of_segment);
        }
        if !is_whole {
            frames.push(self.truncated());
        }
        let mut part = Part { frames, rest };
        self.go_on_in_creators(&mut part);
        part
    }

    fn truncated(&mut self) -> StackFrame {
        self.stage.marker("<truncated>", FunctionKind::Truncated)
    }

    fn is_deferred_task(&self, frame: &Frame) -> bool {
        let is_undeferred = |task: &Task| task.flags.contains(ompt::ompt_task_undeferred);
        frame.is_explicit_task() && !self.tasks.get(&frame.key).is_some_and(is_undeferred)
    }

    /// The code address of a parallel region that the thread has encountered.
    fn place_of_region(&self, frame: &Frame) -> Option<u64> {
        let is_region = matches!(frame.construct, Construct::Parallel | Construct::Teams);
        let team = self.teams.get(&frame.key).filter(|_| is_region)?;
        Some(team.codeptr_ra.0)
    }

    /// What continues the whole stack of a thread with these open regions.
    fn rest_of_own(&self, open: &[Frame], is_worker: bool) -> Rest {
        let mut teams = open.iter().filter_map(Frame::team_of_member);
        match teams.find(|(_, index)| *index != 0) {
            Some((team, _)) => Rest::Region(team.0),
            None if is_worker => Rest::Unknown,
            None => Rest::None,
        }
    }

    /// What continues a stack that consists of a place in the innermost of the `open` regions.
    fn rest_of_place(&self, open: &[Frame]) -> Rest {
        for frame in open.iter().rev() {
            if self.is_deferred_task(frame) {
                return Rest::Task(frame.key);
            }
            if let Some((team, _)) = frame.team_of_member() {
                return Rest::Region(team.0);
            }
        }
        Rest::Unknown
    }

    /// Continues the stack with the stacks on which tasks were created, up to that of a region.
    fn go_on_in_creators(&mut self, part: &mut Part) {
        while let Rest::Task(task) = part.rest {
            let creation = self.samples.creations.get(&task);
            let Some(creation) = creation.filter(|_| part.frames.len() < MAX_FRAMES) else {
                part.rest = Rest::Unknown;
                break;
            };
            let codeptr_ra = creation.codeptr_ra;
            part.rest = creation.rest;
            match &creation.stack {
                Some(stack) => append(self.stage, &mut part.frames, stack),
                None => self.samples.append_place(self.stage, &mut part.frames, codeptr_ra),
            }
        }
        if part.rest == Rest::Unknown {
            let truncated = self.truncated();
            if part.frames.last() != Some(&truncated) {
                part.frames.push(truncated);
            }
            part.rest = Rest::None;
        }
    }

    /// Stores the stack of each parallel region that the thread has encountered and is in.
    fn learn_contexts(&mut self, thread: usize, own: &Own<'_>) {
        let mut inside = 0;
        for depth in (0..self.threads[thread].stack().len()).rev() {
            let frame = &self.threads[thread].stack()[depth];
            let (region, Some(place)) = (frame.key, self.place_of_region(frame)) else {
                continue;
            };
            let Some(caller) = own.caller_of_region(place, inside) else {
                continue;
            };
            inside = caller + 1;
            if !self.samples.contexts.contains_key(&region) {
                let part = self.part_from(thread, own, caller, depth);
                self.learn_context(region, part);
            }
        }
    }

    /// The part of the thread's stack from frame `first` outward, when `depth` regions were open on the thread.
    fn part_from(&mut self, thread: usize, own: &Own<'_>, first: usize, depth: usize) -> Part {
        let own = Own { addresses: &own.addresses[first..], codes: &own.codes[first..], ..*own };
        let segments = user_stack::segments(own.codes);
        self.part(thread, &own, &segments, depth)
    }

    fn learn_context(&mut self, region: u64, part: Part) {
        self.samples.contexts.insert(region, part);
        self.complete_waiting(region);
    }

    /// The tracer recorded the stack of the creator of a region or task.
    #[cold]
    pub(super) fn context(&mut self, stream: usize, e: &Context<'_>) {
        let Some(thread) = self.samples.thread_of(stream) else {
            return;
        };
        if let Some(region) = e.parallel_data.known() {
            self.context_of_region(thread, region, e);
        } else if let Some(task) = e.task_data.known() {
            self.context_of_task(thread, task, e);
        }
    }

    fn context_of_region(&mut self, thread: usize, region: u64, e: &Context<'_>) {
        let Some(place) = self.teams.get(&region).map(|team| team.codeptr_ra.0) else {
            return;
        };
        if self.samples.contexts.contains_key(&region) {
            return;
        }
        let stack = self.threads[thread].stack();
        let is_it = |frame: &Frame| frame.key == region && self.place_of_region(frame).is_some();
        let depth = stack.iter().rposition(is_it).unwrap_or(stack.len());
        if let Some(part) = self.stack_of_creator(thread, place, depth, e) {
            self.learn_context(region, part);
        }
    }

    fn context_of_task(&mut self, thread: usize, task: u64, e: &Context<'_>) {
        let Some(place) = self.samples.creations.get(&task).map(|it| it.codeptr_ra) else {
            return;
        };
        let depth = self.threads[thread].stack().len();
        let Some(part) = self.stack_of_creator(thread, place, depth, e) else {
            return;
        };
        if let Some(creation) = self.samples.creations.get_mut(&task) {
            creation.stack = Some(part.frames);
            let creator = std::mem::replace(&mut creation.rest, part.rest);
            self.samples.leave_creator(creator);
        }
    }

    /// A recorded stack of a creator, from the frame outward that called the runtime at `place`, when `depth` regions
    /// were open on the thread.
    fn stack_of_creator(&mut self, thread: usize, place: u64, depth: usize, e: &Context<'_>) -> Option<Part> {
        let (addresses, codes) = self.samples.codes(self.stage, &e.stack);
        let own = Own {
            addresses: &addresses,
            codes: &codes,
            is_complete: e.end == StackEnd::outermost,
            is_worker: self.samples.threads[thread].is_worker,
        };
        // The last call of a function may be compiled to a jump, so that the caller of the runtime is another function.
        let behind_runtime = || {
            let segments = user_stack::segments(&codes);
            segments.get(1).map(|segment| segment.start)
        };
        let caller = own.caller_of_runtime(place).or_else(behind_runtime)?;
        Some(self.part_from(thread, &own, caller, depth))
    }

    /// A region ends that `thread` encountered.
    pub(super) fn context_ends(&mut self, thread: usize, region: u64) {
        if !self.samples.are_wanted() {
            return;
        }
        if self.samples.waiting.contains_key(&region) {
            let part = self.context_by_place(thread, region);
            self.learn_context(region, part);
        }
        self.samples.contexts.remove(&region);
    }

    /// The creator's stack, as far as it is known without a sample or a recorded stack.
    #[cold]
    fn context_by_place(&mut self, thread: usize, region: u64) -> Part {
        let stack = self.threads[thread].stack();
        let is_it = |frame: &Frame| frame.key == region && self.place_of_region(frame).is_some();
        let depth = stack.iter().rposition(is_it).unwrap_or(0);
        let mut part = Part { frames: Vec::new(), rest: self.rest_of_place(&stack[..depth]) };
        if let Some(place) = self.teams.get(&region).map(|team| team.codeptr_ra.0) {
            self.samples.append_place(self.stage, &mut part.frames, place);
        }
        self.go_on_in_creators(&mut part);
        part
    }

    /// Continues `part` with the contexts of regions, as far as they are known.
    fn go_on_in_contexts(&mut self, part: &mut Part) {
        let mut nesting = 0;
        while let Rest::Region(region) = part.rest {
            nesting += 1;
            let context = self.samples.contexts.get(&region);
            if let Some(context) = context.filter(|_| nesting <= MAX_NESTING) {
                append(self.stage, &mut part.frames, &context.frames);
                part.rest = context.rest;
            } else if nesting <= MAX_NESTING && self.teams.contains_key(&region) {
                return;
            } else {
                part.rest = Rest::Unknown;
                self.go_on_in_creators(part);
            }
        }
    }

    /// Continues the stack of the thread's newest sample, as far as known.
    fn complete_newest(&mut self, thread: usize) {
        let Some(mut newest) = self.samples.threads[thread].pending.pop_back() else {
            return;
        };
        self.go_on_in_contexts(&mut newest.stack);
        if let Rest::Region(region) = newest.stack.rest {
            *self.samples.waiting.entry(region).or_default() += 1;
        }
        self.samples.threads[thread].pending.push_back(newest);
    }

    /// Continues the stacks of samples that have waited for the region's context.
    fn complete_waiting(&mut self, region: u64) {
        let Some(mut waiting) = self.samples.waiting.remove(&region) else {
            return;
        };
        for thread in 0..self.samples.threads.len() {
            if waiting == 0 {
                break;
            }
            let mut pending = std::mem::take(&mut self.samples.threads[thread].pending);
            let of_region = pending.iter_mut().filter(|sample| sample.stack.rest == Rest::Region(region));
            for sample in of_region {
                waiting -= 1;
                self.go_on_in_contexts(&mut sample.stack);
                if let Rest::Region(outer) = sample.stack.rest {
                    *self.samples.waiting.entry(outer).or_default() += 1;
                }
            }
            self.samples.threads[thread].pending = pending;
            self.report_samples(thread);
        }
    }

    /// Reports the samples of a thread up to the first one with an incomplete stack.
    fn report_samples(&mut self, thread: usize) {
        let pending = &mut self.samples.threads[thread].pending;
        while let Some(sample) = pending.pop_front_if(|sample| sample.stack.rest == Rest::None) {
            let mut frames = sample.stack.frames;
            frames.extend(sample.phases.iter().rev());
            frames.reverse();
            self.stage.sample(&Sample {
                at: sample.at,
                weight_ns: sample.weight_ns,
                activity: sample.activity,
                stack: &frames,
            });
        }
    }

    /// The process ends, so regions that are still open get no further contexts.
    pub(super) fn finish_samples(&mut self) {
        let mut regions: Vec<u64> = self.samples.waiting.keys().copied().collect();
        // Inner regions usually have higher numbers. A sample that then waits for an outer region is processed in a
        // later round.
        regions.sort_unstable();
        while let Some(region) = regions.pop() {
            let thread = self.teams.get(&region).map_or(0, |team| team.thread);
            self.context_ends(thread, region);
            if regions.is_empty() {
                regions.extend(self.samples.waiting.keys().copied());
            }
        }
    }

    /// A thread creates a task in its innermost region.
    pub(super) fn note_creation(&mut self, thread: usize, task: u64, codeptr_ra: Address) {
        if !self.samples.are_wanted() {
            return;
        }
        let rest = self.rest_of_place(self.threads[thread].stack());
        if let Rest::Task(parent) = rest
            && let Some(parent) = self.samples.creations.get_mut(&parent)
        {
            parent.children += 1;
        }
        let creation =
            Creation { codeptr_ra: codeptr_ra.0, stack: None, rest, children: 0, is_complete: false };
        self.samples.creations.insert(task, creation);
    }

    /// A task is complete: forgets its creation once no other task needs it.
    pub(super) fn forget_creation(&mut self, task: u64) {
        if !self.samples.are_wanted() {
            return;
        }
        if let Some(creation) = self.samples.creations.get_mut(&task) {
            creation.is_complete = true;
            self.samples.remove_creation(task);
        }
    }
}

impl Own<'_> {
    fn has_runtime_frames(&self) -> bool {
        let mut codes = self.codes.iter();
        codes.any(|code| code.belongs_to == BelongsTo::Runtime)
    }

    /// The innermost frame that called the runtime with this return address.
    fn caller_of_runtime(&self, return_address: u64) -> Option<usize> {
        self.callers_of_runtime(0).find(|frame| self.addresses[*frame] == return_address)
    }

    /// The innermost frame, from `inside` on, that called the runtime for the region with this place.
    fn caller_of_region(&self, place: u64, inside: usize) -> Option<usize> {
        let body = |caller: usize| (0..caller).rev().find(|frame| !self.is_runtime(*frame));
        self.callers_of_runtime(inside).find(|frame| self.is_around_region(*frame, body(*frame), place))
    }

    /// Whether frame `caller` called the runtime, which then called `body`, for the region with this place. The place
    /// is the return address of that call. For libgomp's adapter, it is just after the start of the region's function.
    fn is_around_region(&self, caller: usize, body: Option<usize>, place: u64) -> bool {
        self.addresses[caller] == place
            || body.is_some_and(|body| self.codes[body].begin.wrapping_add(1) == place)
    }

    fn callers_of_runtime(&self, inside: usize) -> impl Iterator<Item = usize> {
        let is_caller = |frame: &usize| self.is_runtime(frame - 1) && !self.is_runtime(*frame);
        (inside.max(1)..self.codes.len()).filter(is_caller)
    }

    fn is_runtime(&self, frame: usize) -> bool {
        self.codes[frame].belongs_to == BelongsTo::Runtime
    }
}

/// The first of the `segments` outside of the thread's innermost task. `regions`: the places of the regions that the
/// thread has encountered inside the task, innermost first. The segment around a region starts with the frame that
/// called the runtime for it.
fn outside_of_task(own: &Own<'_>, segments: &[Range<usize>], regions: Vec<u64>) -> Option<usize> {
    let mut regions = &regions[..];
    for (index, segment) in segments.iter().enumerate().skip(1) {
        let body = segments[index - 1].clone().next_back();
        let is_around = |region: &u64| {
            segment.start < own.addresses.len() && own.is_around_region(segment.start, body, *region)
        };
        match regions.iter().position(is_around) {
            Some(inner) => regions = &regions[inner + 1..],
            None => return Some(index),
        }
    }
    None
}
