//! What interpretation had to repair, counted per cause. Nothing is mended silently.

/// Turns a row `Cause "name" "words"` into a variant and its texts.
macro_rules! causes {
    ($($(#[$doc:meta])* $Cause:ident $name:literal $text:literal;)*) => {
        /// Why something was repaired or left out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cause { $($(#[$doc])* $Cause,)* }

        impl Cause {
            /// All causes, in the order in which they are shown.
            pub const ALL: &'static [Cause] = &[$(Cause::$Cause),*];

            /// The cause's name for programs.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$Cause => $name,)* }
            }

            /// The cause in words; a number in parentheses may follow.
            pub fn text(self) -> &'static str {
                match self { $(Cause::$Cause => $text,)* }
            }
        }
    };
}

causes! {
    /// LLVM's workers report these ends when the next region wakes them.
    LateEnd "late_end" "ends of workers came after the end of their parallel region and were moved to it";
    /// The event was lost, not delivered, or the program died first.
    MissingEnd "missing_end" "regions had no end and end with the region around them or with the trace";
    /// The event's begin was lost or not delivered.
    EndWithoutBegin "end_without_begin" "ends had no begin and were left out";
    /// An endpoint other than begin, end and beginend.
    UnknownEndpoint "unknown_endpoint" "events were neither begin nor end and were left out";
    /// Perfetto shows no more than 512 levels.
    TooDeep "too_deep" "regions were nested too deeply and were left out";
    /// A damaged chunk, or a clock that is not the same on all processors.
    TimeWentBack "time_went_back" "events were older than their predecessor in the stream and were moved to its time";
    /// An event of a newer tracer.
    UnknownEvent "unknown_event" "events are of a kind that this version does not know and show as instants";
}

/// Repairs of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    counts: [u64; Cause::ALL.len()],
}

impl Repairs {
    pub(crate) fn add(&mut self, cause: Cause, count: u64) {
        self.counts[cause as usize] += count;
    }

    /// How often `cause` was met.
    pub fn count(&self, cause: Cause) -> u64 {
        self.counts[cause as usize]
    }

    /// The causes that were met, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL
            .iter()
            .map(|cause| (*cause, self.count(*cause)))
            .filter(|(_, count)| *count > 0)
    }
}
