//! Adding up the parts that a region was cut into.
//!
//! A task that is suspended is left, with what is open in it. It is entered again when it goes on, perhaps on another thread.
//! A wait pauses while a task runs on top. The shortest and the longest are those of whole regions. When a region is left,
//! nothing shows yet whether it goes on: what was left waits here until something does.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::TaskId;

/// A region that was left and may go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) region: usize,
    /// The time of all its parts so far.
    pub(crate) ns: u64,
    /// The wait in it, which goes on after each task that interrupts it.
    pub(crate) wait: Option<Wait>,
    /// A part of it is in the numbers.
    pub(crate) is_counted: bool,
}

/// A wait in a barrier or taskwait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) region: usize,
    pub(crate) ns: u64,
    /// A part of it is in the numbers.
    pub(crate) is_counted: bool,
}

/// The regions of a thread that were left since the last was entered, the outermost last.
#[derive(Debug, Default)]
pub(crate) struct JustLeft(Vec<Part>);

impl JustLeft {
    pub(crate) fn push(&mut self, part: Part) {
        self.0.push(part);
    }

    /// `region` goes on. What is further out does not.
    pub(crate) fn resume(&mut self, region: usize, whole: &mut impl FnMut(usize, u64)) -> Option<Part> {
        let index = self.0.iter().rposition(|part| part.region == region)?;
        self.0.drain(index + 1..).for_each(|part| part.ended(whole));
        self.0.pop()
    }

    /// None of them goes on.
    pub(crate) fn end(&mut self, whole: &mut impl FnMut(usize, u64)) {
        self.0.drain(..).for_each(|part| part.ended(whole));
    }
}

impl JustLeft {
    /// Returns them where regions are `known` by other numbers.
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

    /// It does not go on: `whole` gets it, and the wait in it.
    pub(crate) fn ended(self, whole: &mut impl FnMut(usize, u64)) {
        if self.is_counted {
            whole(self.region, self.ns);
        }
        if let Some(wait) = self.wait.filter(|wait| wait.is_counted) {
            whole(wait.region, wait.ns);
        }
    }
}

/// Tasks that were left and are not complete, by process and number, with what was open in them.
#[derive(Debug, Default)]
pub(crate) struct Tasks(FastMap<(u32, TaskId), (Part, JustLeft)>);

impl Tasks {
    pub(crate) fn left(&mut self, process: u32, task: TaskId, part: Part, inside: JustLeft) {
        self.0.insert((process, task), (part, inside));
    }

    /// The task goes on.
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

    /// Whether there are none.
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

    /// All are.
    pub(crate) fn end_all(&mut self, whole: &mut impl FnMut(usize, u64)) {
        for (_, (part, mut inside)) in std::mem::take(&mut self.0) {
            part.ended(whole);
            inside.end(whole);
        }
    }
}
