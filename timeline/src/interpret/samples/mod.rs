//! Samples in the user's model: what the programmer wrote, on each thread, instead of how the runtime executes it.
//!
//! ```text
//! a worker's stack    leaf <- body of the region <- runtime <- start of the thread
//! the user's model    leaf <- body of the region <- stack of the thread that encountered the region
//! ```
//!
//! Whatever is the runtime's is cut out ([`cut`]). A stack that the runtime began goes on in the *creator's*: that of
//! the thread which encountered the region, or created the task. A sample of that thread inside of the region shows
//! the stack, or the tracer has recorded it at the region's end. Else only the region's place is known. So
//! samples wait for the creator, at most to the region's end. Of a task's creator only the place is known, unless the user asked
//! for the stacks on which tasks are created.
//!
//! What the runtime does in the program's place is a frame of its own. The thread's events say what it waits for. Where they do
//! not, the runtime's state at the sample does. docs/samples.md describes all of this.

mod activity;
mod code;
mod cut;
mod phases;

use std::collections::VecDeque;
use std::ops::Range;

use omptrace_trace_format::event::{Context, Sample as Taken};
use omptrace_trace_format::field::{Stack, StackEnd};

use super::*;
use crate::model::thread_introduction::ThreadIntroduction;
use crate::model::{FunctionKind, Point, RuntimeActivity, Sample, StackFrame};
use activity::activity;
use code::{BelongsTo, Code, Codes};

/// The most frames of a stack in the user's model. Stops tasks that create one another without end.
const MAX_FRAMES: usize = 1024;

/// The most regions that a stack goes through. Stops traces in which regions are encountered inside of themselves.
const MAX_NESTING: usize = 256;

/// What a process's samples need; nothing where there are none, or nobody wants them.
#[derive(Default)]
pub(crate) struct Samples {
    /// By the place of a stream: the place of the thread that it has samples of.
    of_stream: Vec<Option<usize>>,
    threads: Vec<Sampled>,
    codes: Codes,
    /// The stacks on which parallel regions were encountered, by the region.
    contexts: FastMap<u64, Part>,
    /// How many samples wait for each region's context.
    waiting: FastMap<u64, usize>,
    /// Explicit tasks that are not complete, or have created such.
    creations: FastMap<u64, Creation>,
    /// The frames of phases, by their regions; none where nobody wants them.
    phases: BTreeMap<u32, StackFrame>,
}

/// A thread.
#[derive(Default)]
struct Sampled {
    /// The runtime made it: what is outside of the outermost frame of the runtime is no code of the program.
    is_worker: bool,
    /// Samples whose stacks are not complete, and those after them.
    pending: VecDeque<Pending>,
}

/// A sample that is not reported yet.
struct Pending {
    at: Point,
    weight_ns: u64,
    activity: Option<RuntimeActivity>,
    stack: Part,
    /// The phases around it, from the outermost.
    phases: Vec<StackFrame>,
}

/// The inner frames of a stack.
#[derive(Clone, Debug, Default)]
struct Part {
    /// From the innermost.
    frames: Vec<StackFrame>,
    rest: Rest,
}

/// What the other frames of a stack are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    /// There are no others.
    #[default]
    None,
    /// Those on which this parallel region was encountered.
    Region(u64),
    /// Those on which this task was created.
    Task(u64),
    /// They are not known.
    Unknown,
}

/// Where an explicit task was created.
struct Creation {
    codeptr_ra: u64,
    /// The stack from there outward, as far as it is the creator's, if the tracer has recorded it.
    stack: Option<Vec<StackFrame>>,
    rest: Rest,
    /// Tasks of the list that it has created.
    children: u32,
    is_complete: bool,
}

/// A thread's own stack.
struct Own<'o> {
    /// From the innermost, as [`Stack::return_addresses`] gives them. Inlined functions have that of the function around them.
    addresses: &'o [u64],
    codes: &'o [Code],
    /// The outermost frame is there.
    is_complete: bool,
    is_worker: bool,
}

impl Samples {
    /// Those of `threads`, of all streams.
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

    /// The thread that a stream has samples of.
    fn thread_of(&self, stream: usize) -> Option<usize> {
        *self.of_stream.get(stream)?
    }

    /// The frames of a stack, those of inlined functions too, and the address of each.
    fn codes(&mut self, stage: &mut Stage<'_>, stack: &Stack<'_>) -> (Vec<u64>, Vec<Code>) {
        let (mut addresses, mut codes) = (Vec::new(), Vec::new());
        for address in stack.return_addresses() {
            codes.extend_from_slice(self.codes.of(stage, address));
            addresses.resize(codes.len(), address);
        }
        (addresses, codes)
    }

    /// Removes a creation that is not needed any more, and those of its creators that only it needed.
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

    /// A task does not need its creator any more.
    fn leave_creator(&mut self, creator: Rest) {
        if let Some(creator) = self.had_child(creator) {
            self.remove_creation(creator);
        }
    }

    /// The creator, which has a child less.
    fn had_child(&mut self, creator: Rest) -> Option<u64> {
        let Rest::Task(creator) = creator else {
            return None;
        };
        let creation = self.creations.get_mut(&creator)?;
        creation.children = creation.children.saturating_sub(1);
        Some(creator)
    }

    /// Appends the frames at a place in the program to those of `inner`; none where it is in the runtime.
    fn append_place(&mut self, stage: &mut Stage<'_>, inner: &mut Vec<StackFrame>, place: u64) {
        let codes = self.codes.of(stage, place).iter();
        let codes = codes.filter(|code| code.belongs_to != BelongsTo::Runtime);
        let frames: Vec<StackFrame> = codes.map(|code| code.frame).collect();
        append(stage, inner, &frames);
    }
}

/// Appends `frames`, which lie outside of those of `inner`: the outermost of these may be a part of the function that called
/// the runtime.
fn append(stage: &mut Stage<'_>, inner: &mut Vec<StackFrame>, frames: &[StackFrame]) {
    if let (Some(body), Some(caller)) = (inner.last_mut(), frames.first()) {
        body.function = stage.outlined(body.function, caller.function);
    }
    inner.extend_from_slice(frames);
}

impl Interpreter<'_, '_> {
    /// A sample of a thread, in the stream of that place.
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

    /// What the thread did, and on which stack as far as that is known now.
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
        let segments = cut::segments(own.codes);
        let is_in_program = cut::is_in_program(e, segments.len() > 1, own.is_worker);
        let is_in_runtime = own.codes.first().is_some_and(|code| code.belongs_to == BelongsTo::Runtime);
        let activity = if is_in_program && !is_in_runtime {
            own.codes.first().and_then(|code| code.does)
        } else {
            // The function that the program has called.
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

    /// Whether a thread on which these regions are open is a member of a team that has not ended.
    fn is_in_team(&self, open: &[Frame]) -> bool {
        let mut teams = open.iter().filter_map(Frame::team_of_member);
        teams.any(|(team, _)| self.teams.contains_key(&team.0))
    }

    /// The part of the thread's own stack that belongs to its innermost deferred task, else all of it. It consists of the
    /// `segments` of which none is the runtime's, while the `depth` outermost regions of the thread are open.
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
            // What is missing may be the boundary.
            (Some(task), None) if !own.is_complete => (true, Rest::Task(open[task].key)),
            _ => (false, self.rest_of_own(open, own.is_worker)),
        };
        let is_whole = own.is_complete || boundary.is_some();
        let mut segments = &segments[..boundary.unwrap_or(segments.len())];
        if !task && own.is_complete && own.is_worker && own.has_runtime_frames() {
            // How the runtime's thread began.
            segments = &segments[..segments.len().saturating_sub(1)];
        }
        let mut frames = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            let is_outermost = !task && index + 1 == segments.len();
            let range = match is_outermost {
                true => cut::without_start(own.codes, segment.clone()),
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

    /// What lies outside of the whole stack of a thread on which these regions are open.
    fn rest_of_own(&self, open: &[Frame], is_worker: bool) -> Rest {
        let mut teams = open.iter().filter_map(Frame::team_of_member);
        match teams.find(|(_, index)| *index != 0) {
            Some((team, _)) => Rest::Region(team.0),
            None if is_worker => Rest::Unknown,
            None => Rest::None,
        }
    }

    /// What lies outside of code in the innermost of the regions that are `open` on a thread, where its stack is not known.
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

    /// Goes on in the stacks on which tasks were created, up to that of a region.
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

    /// A sample shows the stack of each parallel region that its thread has encountered and is in.
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

    /// The part of the thread's stack from frame `first` outward, while the `depth` outermost regions of the thread are open.
    fn part_from(&mut self, thread: usize, own: &Own<'_>, first: usize, depth: usize) -> Part {
        let own = Own { addresses: &own.addresses[first..], codes: &own.codes[first..], ..*own };
        let segments = cut::segments(own.codes);
        self.part(thread, &own, &segments, depth)
    }

    fn learn_context(&mut self, region: u64, part: Part) {
        self.samples.contexts.insert(region, part);
        self.complete_waiting(region);
    }

    /// The tracer recorded the stack of a region's or task's creator.
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

    /// The recorded stack of a thread, from the frame outward that called the runtime at `place`. The `depth` outermost regions
    /// of the thread are open.
    fn stack_of_creator(&mut self, thread: usize, place: u64, depth: usize, e: &Context<'_>) -> Option<Part> {
        let (addresses, codes) = self.samples.codes(self.stage, &e.stack);
        let own = Own {
            addresses: &addresses,
            codes: &codes,
            is_complete: e.end == StackEnd::outermost,
            is_worker: self.samples.threads[thread].is_worker,
        };
        // A call that is the last of its function is a jump: the runtime's caller is another one then.
        let behind_runtime = || {
            let segments = cut::segments(&codes);
            segments.get(1).map(|segment| segment.start)
        };
        let caller = own.caller_of_runtime(place).or_else(behind_runtime)?;
        Some(self.part_from(thread, &own, caller, depth))
    }

    /// A region that `thread` encountered ends.
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

    /// What is known of the region's creator without its stack.
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

    /// `part` goes on in the contexts of regions, as far as they are known.
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

    /// The thread's newest sample gets what is known of its stack.
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

    /// Samples that have waited for the region's context get it.
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

    /// Reports the samples of a thread up to the first whose stack is not complete.
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

    /// The process has no more events: regions that have not ended have no more contexts.
    pub(super) fn finish_samples(&mut self) {
        let mut regions: Vec<u64> = self.samples.waiting.keys().copied().collect();
        // Innermost regions have higher numbers, if any: what waits for an outer one afterwards comes again.
        regions.sort_unstable();
        while let Some(region) = regions.pop() {
            let thread = self.teams.get(&region).map_or(0, |team| team.thread);
            self.context_ends(thread, region);
            if regions.is_empty() {
                regions.extend(self.samples.waiting.keys().copied());
            }
        }
    }

    /// A thread creates a task in the innermost of its open regions.
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

    /// A task is complete: its creation is forgotten once it is no creator of others.
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

    /// The innermost frame that called the runtime at this return address.
    fn caller_of_runtime(&self, return_address: u64) -> Option<usize> {
        self.callers_of_runtime(0).find(|frame| self.addresses[*frame] == return_address)
    }

    /// The innermost frame from `inside` on that called the runtime for the region of this place.
    fn caller_of_region(&self, place: u64, inside: usize) -> Option<usize> {
        let body = |caller: usize| (0..caller).rev().find(|frame| !self.is_runtime(*frame));
        self.callers_of_runtime(inside).find(|frame| self.is_around_region(*frame, body(*frame), place))
    }

    /// Whether a frame called the runtime for the region of this place, and the runtime called `body`. The place is
    /// the return address of that call, or it is just after the start of the region's function, by the adapter for
    /// libgomp.
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

/// The first of the `segments` that lies outside of the thread's innermost task. Inside of it, the thread has encountered
/// `regions` at these places, the innermost first. The segment around a region begins with the call of the runtime for it.
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
