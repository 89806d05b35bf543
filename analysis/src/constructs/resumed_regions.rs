//! Adds up the parts of interrupted regions.
//!
//! When a task is suspended, its open regions are left; when it resumes, perhaps on another thread, they are entered
//! again. A wait pauses while the thread executes a task. The shortest and longest durations must be those of whole
//! regions. When a region is left, it is not yet known whether it continues, so its part is kept here until a later
//! item shows this.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::TaskId;

/// A region that was left and may continue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) region: usize,
    /// The duration of all its parts so far.
    pub(crate) ns: u64,
    /// The wait in the region, which continues after each task that interrupts it.
    pub(crate) wait: Option<Wait>,
    /// A part of the region has been counted.
    pub(crate) is_counted: bool,
}

/// A wait in a barrier or taskwait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) region: usize,
    pub(crate) ns: u64,
    /// A part of the wait has been counted.
    pub(crate) is_counted: bool,
}

/// The regions that a thread has left since it last entered one, outermost last.
#[derive(Debug, Default)]
pub(crate) struct JustLeft(Vec<Part>);

impl JustLeft {
    pub(crate) fn push(&mut self, part: Part) {
        self.0.push(part);
    }

    /// `region` continues. The regions around it do not.
    pub(crate) fn resume(&mut self, region: usize, whole: &mut impl FnMut(usize, u64)) -> Option<Part> {
        let index = self.0.iter().rposition(|part| part.region == region)?;
        self.0.drain(index + 1..).for_each(|part| part.ended(whole));
        self.0.pop()
    }

    /// None of the regions continues.
    #[inline]
    pub(crate) fn end(&mut self, whole: &mut impl FnMut(usize, u64)) {
        self.0.iter().for_each(|part| part.ended(whole));
        self.0.clear();
    }
}

impl JustLeft {
    /// The same with regions renumbered by `known`.
    pub(crate) fn known_as(self, known: impl Fn(usize) -> usize) -> JustLeft {
        let parts = self.0.into_iter();
        JustLeft(parts.map(|part| part.known_as(&known)).collect())
    }
}

impl Part {
    fn known_as(self, known: impl Fn(usize) -> usize) -> Part {
        Part {
            region: known(self.region),
            wait: self.wait.map(|wait| Wait { region: known(wait.region), ..wait }),
            ..self
        }
    }

    /// The region does not continue: passes its whole duration, and that of the wait in it, to `whole`.
    #[inline]
    pub(crate) fn ended(&self, whole: &mut impl FnMut(usize, u64)) {
        if self.is_counted {
            whole(self.region, self.ns);
        }
        if let Some(wait) = self.wait.filter(|wait| wait.is_counted) {
            whole(wait.region, wait.ns);
        }
    }
}

/// Suspended tasks, by process and task, with the regions that were open in them.
#[derive(Debug, Default)]
pub(crate) struct Tasks(FastMap<(u32, TaskId), (Part, JustLeft)>);

impl Tasks {
    pub(crate) fn left(&mut self, process: u32, task: TaskId, part: Part, inside: JustLeft) {
        self.0.insert((process, task), (part, inside));
    }

    /// The task resumes.
    pub(crate) fn resume(&mut self, process: u32, task: TaskId) -> Option<(Part, JustLeft)> {
        self.0.remove(&(process, task))
    }

    /// The task is complete.
    pub(crate) fn end(&mut self, process: u32, task: TaskId, whole: &mut impl FnMut(usize, u64)) {
        if let Some((part, mut inside)) = self.resume(process, task) {
            part.ended(whole);
            inside.end(whole);
        }
    }

    /// Whether no task is suspended.
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// See [`JustLeft::known_as`].
    pub(crate) fn known_as(self, known: impl Fn(usize) -> usize) -> Tasks {
        let tasks = self.0.into_iter();
        let tasks =
            tasks.map(|(key, (part, inside))| (key, (part.known_as(&known), inside.known_as(&known))));
        Tasks(tasks.collect())
    }

    /// All suspended tasks have ended.
    pub(crate) fn end_all(&mut self, whole: &mut impl FnMut(usize, u64)) {
        for (_, (part, mut inside)) in std::mem::take(&mut self.0) {
            part.ended(whole);
            inside.end(whole);
        }
    }
}
