//! Merges names of ranges that differ only in numbers.

use std::collections::{BTreeMap, BTreeSet};

/// Names that differ only in numbers are merged if there are at least this many.
const MIN_ALIKE: usize = 8;

/// The merged names: `step 1`, `step 2` and so on become `step *`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folding(BTreeSet<String>);

impl Folding {
    /// Determines which of these names are merged.
    pub fn of<'n>(names: impl Iterator<Item = &'n String>) -> Folding {
        let mut alike: BTreeMap<String, usize> = BTreeMap::new();
        for name in names {
            if let Some(pattern) = pattern(name) {
                *alike.entry(pattern).or_default() += 1;
            }
        }
        let many = alike.into_iter().filter(|(_, count)| *count >= MIN_ALIKE);
        Folding(many.map(|(pattern, _)| pattern).collect())
    }

    /// Also merges the names that `other` merges.
    pub fn merge(&mut self, other: Folding) {
        self.0.extend(other.0);
    }

    /// Whether all names stay as they are.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The merged name of a range, or the name itself.
    pub fn name(&self, name: &str) -> String {
        match pattern(name) {
            Some(pattern) if self.0.contains(&pattern) => pattern,
            _ => name.to_owned(),
        }
    }
}

/// The name with each number replaced by a star; `None` if it contains no number.
fn pattern(name: &str) -> Option<String> {
    if !name.contains(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let mut pattern = String::new();
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_ascii_digit() {
            pattern.push(letter);
            continue;
        }
        pattern.push('*');
        while letters.next_if(char::is_ascii_digit).is_some() {}
    }
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_numbers_are_one_where_there_are_many() {
        let steps: Vec<String> = (0..9).map(|step| format!("step {step}00")).collect();
        let others = ["axpy".to_owned(), "level 1".to_owned(), "level 2".to_owned()];
        let folding = Folding::of(steps.iter().chain(&others));
        assert_eq!(folding.name("step 700"), "step *");
        assert_eq!(folding.name("level 2"), "level 2");
        assert_eq!(folding.name("axpy"), "axpy");
    }
}
