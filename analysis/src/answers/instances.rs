//! The few instances that matter most of something that happens often.

use omptrace_timeline::sink::Ns;

/// Instances that are kept.
pub(super) const MAX_INSTANCES: usize = 3;

/// Something that happened on a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instance {
    pub(super) begin: Ns,
    pub(super) end: Ns,
    /// The thread's location.
    pub(super) location: usize,
    /// How much it counts.
    pub(super) weight: f64,
}

/// The instances that matter most, what counts most first.
#[derive(Clone, Debug, Default)]
pub(super) struct Instances(Vec<Instance>);

impl Instances {
    /// Takes in an instance; one that goes on where the last one on its thread ended is the same.
    pub(super) fn add(&mut self, new: Instance) {
        let goes_on = |old: &&mut Instance| old.location == new.location && old.end == new.begin;
        if let Some(old) = self.0.iter_mut().find(goes_on) {
            old.end = new.end;
            old.weight += new.weight;
        } else if self.0.len() < MAX_INSTANCES {
            self.0.push(new);
        } else {
            match self.0.last_mut() {
                Some(least) if least.weight < new.weight => *least = new,
                _ => return,
            }
        }
        self.0.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_are_kept() {
        let mut instances = Instances::default();
        for (begin, weight) in [(0, 1.0), (10, 5.0), (20, 3.0), (30, 4.0), (40, 0.5)] {
            instances.add(Instance {
                begin,
                end: begin + 5,
                location: 1,
                weight,
            });
        }
        let begins: Vec<Ns> = instances.iter().map(|instance| instance.begin).collect();
        assert_eq!(begins, [10, 30, 20]);
    }
}
