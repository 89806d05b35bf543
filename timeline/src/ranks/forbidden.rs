//! Calls from threads that may make none at that time.

/// Calls that the level of thread support does not allow, as the library provides it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// How many there are.
    pub count: u64,
    /// The function of the first one.
    pub first: &'static str,
    /// The level.
    pub level: String,
}

/// Finds such calls.
#[derive(Debug, Default)]
pub(super) struct ThreadRules {
    level: String,
    /// The thread that has initialized the library.
    main: Option<usize>,
    /// How many threads are in a call.
    inside: usize,
    found: Forbidden,
}

impl ThreadRules {
    /// The rules of a level, as the standard names it; there are none where it is not known.
    pub(super) fn of(level: &str) -> ThreadRules {
        let found = Forbidden { level: level.to_owned(), ..Forbidden::default() };
        ThreadRules { level: level.to_owned(), found, ..ThreadRules::default() }
    }

    /// A thread begins a call.
    pub(super) fn begin(&mut self, thread: usize, function: &'static str) {
        if matches!(function, "MPI_Init" | "MPI_Init_thread") {
            self.main = Some(thread);
        }
        let is_allowed = match &self.level[..] {
            "MPI_THREAD_SINGLE" | "MPI_THREAD_FUNNELED" => self.main.is_none_or(|main| main == thread),
            "MPI_THREAD_SERIALIZED" => self.inside == 0,
            _ => true,
        };
        self.inside += 1;
        if !is_allowed {
            if self.found.count == 0 {
                self.found.first = function;
            }
            self.found.count += 1;
        }
    }

    /// The thread that has initialized the library.
    pub(super) fn main(&self) -> Option<usize> {
        self.main
    }

    /// A thread ends a call, or has left it.
    pub(super) fn end(&mut self) {
        self.inside = self.inside.saturating_sub(1);
    }

    pub(super) fn finish(self) -> Forbidden {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(level: &str, steps: &[(usize, bool)]) -> u64 {
        let mut rules = ThreadRules::of(level);
        rules.begin(0, "MPI_Init_thread");
        rules.end();
        for (thread, is_begin) in steps {
            match is_begin {
                true => rules.begin(*thread, "MPI_Send"),
                false => rules.end(),
            }
        }
        rules.finish().count
    }

    #[test]
    fn each_level_forbids_more() {
        let one_after_the_other = [(0, true), (0, false), (1, true), (1, false)];
        let at_once = [(0, true), (1, true), (0, false), (1, false)];
        for (level, expected) in [
            ("MPI_THREAD_SINGLE", (1, 1)),
            ("MPI_THREAD_FUNNELED", (1, 1)),
            ("MPI_THREAD_SERIALIZED", (0, 1)),
            ("MPI_THREAD_MULTIPLE", (0, 0)),
            ("unknown", (0, 0)),
        ] {
            let both = (found(level, &one_after_the_other), found(level, &at_once));
            assert_eq!(both, expected, "{level}");
        }
    }
}
