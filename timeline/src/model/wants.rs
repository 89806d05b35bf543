//! Which optional items a sink needs.

/// A set of optional items. Items that belong to no member go to every sink: definitions, slices, instants, intervals
/// and notes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants(u16);

impl Wants {
    /// No optional items.
    pub const NONE: Wants = Wants(0);
    /// [`Item::Count`](crate::model::Item::Count) and [`Item::Counter`](crate::model::Item::Counter).
    pub const COUNTS: Wants = Wants(1);
    /// [`Item::Link`](crate::model::Item::Link) for dependences between tasks, and for requests to devices.
    pub const DEPENDENCES: Wants = Wants(2);
    /// [`Item::Link`](crate::model::Item::Link) of the kinds that viewers show as
    /// [arrows](crate::model::LinkKind::is_arrow): `DEPENDENCES`, and those that follow from thread events.
    pub const ARROWS: Wants = Wants(32 | Wants::DEPENDENCES.0);
    /// [`Item::Link`](crate::model::Item::Link) of the other kinds.
    pub const CAUSES: Wants = Wants(4);
    /// [`ThreadEvent::TaskCreate`](crate::model::ThreadEvent::TaskCreate).
    pub const TASK_CREATIONS: Wants = Wants(8);
    /// All of [`Item::ThreadEvent`](crate::model::Item::ThreadEvent).
    pub const THREAD_EVENTS: Wants = Wants(16 | Wants::TASK_CREATIONS.0);
    /// [`Item::Sample`](crate::model::Item::Sample) and [`Item::Function`](crate::model::Item::Function).
    pub const SAMPLES: Wants = Wants(64);
    /// [`Item::Counted`](crate::model::Item::Counted).
    pub const COUNTERS: Wants = Wants(128);
    /// [`ThreadEvent::Sampled`](crate::model::ThreadEvent::Sampled).
    pub const SAMPLE_TIMES: Wants = Wants(256);
    /// [`Item::Mpi`](crate::model::Item::Mpi) and [`Item::Communicator`](crate::model::Item::Communicator).
    pub const MPI: Wants = Wants(512);
    /// [`Item::Annotation`](crate::model::Item::Annotation).
    pub const ANNOTATIONS: Wants = Wants(1024);
    /// The phases of the program as outermost frames of the stacks of [`Item::Sample`](crate::model::Item::Sample).
    pub const PHASE_FRAMES: Wants = Wants(2048);
    /// All optional items, with the program's own stacks for samples (without `PHASE_FRAMES`).
    pub const ALL: Wants = Wants(2047);

    /// Whether the set contains all of `items`.
    #[inline(always)]
    pub const fn contains(self, items: Wants) -> bool {
        self.0 & items.0 == items.0
    }

    /// The union with `items`.
    pub const fn and(self, items: Wants) -> Wants {
        Wants(self.0 | items.0)
    }

    /// The set without `items`.
    pub const fn without(self, items: Wants) -> Wants {
        Wants(self.0 & !items.0)
    }
}
