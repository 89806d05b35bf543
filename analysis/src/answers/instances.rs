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
pub(super) struct Instances {
    kept: [Option<Instance>; MAX_INSTANCES],
}

impl Instances {
    /// Takes in an instance; one that goes on where the last one on its thread ended is the same.
    pub(super) fn add(&mut self, new: Instance) {
        let mut instance = new;
        let goes_on = |old: &Instance| old.location == new.location && old.end == new.begin;
        let is_place = |kept: &Option<Instance>| kept.as_ref().is_none_or(goes_on);
        let mut place = match self.kept.iter().position(is_place) {
            Some(place) => {
                if let Some(old) = self.kept[place] {
                    instance.begin = old.begin;
                    instance.weight += old.weight;
                }
                place
            }
            None => MAX_INSTANCES - 1,
        };
        if let Some(least) = self.kept[place]
            && !goes_on(&least)
            && least.weight >= new.weight
        {
            return;
        }
        // Those before it that count less come after it.
        while place > 0
            && let Some(before) = self.kept[place - 1]
            && before.weight < instance.weight
        {
            self.kept[place] = Some(before);
            place -= 1;
        }
        self.kept[place] = Some(instance);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.kept.iter().flatten()
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
