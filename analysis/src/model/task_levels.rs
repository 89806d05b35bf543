//! Nesting depth of explicit tasks.

use serde::{Deserialize, Serialize};

use crate::model::counts::Counts;

/// Deeper tasks are counted on this level.
pub(crate) const MAX_LEVEL: u8 = 63;

/// Number of explicit tasks per level. Tasks created by implicit tasks are on the first level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskLevels(Counts);

impl TaskLevels {
    /// Adds a task on this level, counted from 1.
    pub(crate) fn add(&mut self, level: u8) {
        self.0.add(usize::from(level.clamp(1, MAX_LEVEL)) - 1, 1);
    }

    /// Adds other levels; associative and commutative.
    pub(crate) fn merge(&mut self, other: &TaskLevels) {
        self.0.merge(&other.0);
    }

    /// Whether tasks create tasks.
    pub(crate) fn are_nested(&self) -> bool {
        self.0.0.iter().filter(|count| **count > 0).count() > 1
    }

    /// The first level with at least `enough` tasks, and the number of tasks on all levels down to it.
    pub(crate) fn first_with(&self, enough: u64) -> Option<(u64, u64)> {
        let mut above = 0;
        self.0.0.iter().zip(1..).find_map(|(count, level)| {
            above += count;
            (*count >= enough).then_some((level, above))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_level_that_is_wide_enough_is_found() {
        let mut tree = TaskLevels::default();
        for level in 1..=5 {
            (0..1 << level).for_each(|_| tree.add(level));
        }
        assert!(tree.are_nested());
        assert_eq!(tree.first_with(8), Some((3, 2 + 4 + 8)));
        assert_eq!(tree.first_with(33), None);
        let mut flat = TaskLevels::default();
        (0..10).for_each(|_| flat.add(1));
        assert!(!flat.are_nested());
        flat.merge(&tree);
        assert_eq!(flat.first_with(8), Some((1, 12)));
        flat.add(u8::MAX);
        assert_eq!(flat.0.0.len(), usize::from(MAX_LEVEL));
    }
}
