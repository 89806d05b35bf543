//! The few instances that matter most of a repeated loss.

use omptrace_timeline::model::Ns;

/// Number of instances that are kept.
pub(crate) const MAX_INSTANCES: usize = 3;

/// An interval in which a thread lost time or made others lose it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Instance {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// The thread's location.
    pub(crate) location: usize,
    /// Nanoseconds that the thread lost, or made other threads lose.
    pub(crate) weight: f64,
}

impl Instance {
    /// Whether this instance ranks higher than `other`. If both weigh the same, the earlier one does.
    fn is_before(&self, other: &Instance) -> bool {
        let order = other.weight.total_cmp(&self.weight);
        let order = order.then((self.begin, self.location).cmp(&(other.begin, other.location)));
        order.is_lt()
    }
}

/// The instances with the largest weights. The result does not depend on the instances that were dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    /// The heaviest first.
    kept: [Option<Instance>; MAX_INSTANCES],
    /// By location, the latest instance, which may continue.
    newest: Vec<Option<Instance>>,
}

impl Instances {
    /// Adds an instance. If it starts where the thread's last one ended, it extends that one.
    #[inline]
    pub(crate) fn add(&mut self, new: Instance) {
        if new.location >= self.newest.len() {
            self.grow(new.location);
        }
        match &mut self.newest[new.location] {
            Some(old) if old.end == new.begin => {
                old.end = new.end;
                old.weight += new.weight;
            }
            newest => {
                if let Some(complete) = newest.replace(new) {
                    self.add_alone(complete);
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, location: usize) {
        self.newest.resize(location + 1, None);
    }

    /// Adds an instance that nothing continues.
    pub(crate) fn add_alone(&mut self, new: Instance) {
        keep(&mut self.kept, new);
    }

    /// Adds the instances of a later segment.
    pub(crate) fn append(&mut self, more: &Instances) {
        for instance in more.iter() {
            self.add_alone(instance);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Instance> {
        let mut kept = self.kept;
        for newest in self.newest.iter().flatten() {
            keep(&mut kept, *newest);
        }
        kept.into_iter().flatten()
    }
}

#[inline]
fn keep(kept: &mut [Option<Instance>; MAX_INSTANCES], instance: Instance) {
    // Most instances are lighter than all that are kept.
    if let Some(last) = &kept[MAX_INSTANCES - 1]
        && instance.weight < last.weight
    {
        return;
    }
    insert(kept, instance);
}

#[inline(never)]
fn insert(kept: &mut [Option<Instance>; MAX_INSTANCES], instance: Instance) {
    let is_behind = |kept: &Option<Instance>| kept.is_none_or(|kept| instance.is_before(&kept));
    if let Some(place) = kept.iter().position(is_behind) {
        kept[place..].rotate_right(1);
        kept[place] = Some(instance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_are_kept() {
        let mut instances = Instances::default();
        for (begin, weight) in [(0, 1.0), (10, 5.0), (20, 3.0), (30, 4.0), (40, 0.5)] {
            instances.add(Instance { begin, end: begin + 5, location: 1, weight });
        }
        let begins: Vec<Ns> = instances.iter().map(|instance| instance.begin).collect();
        assert_eq!(begins, [10, 30, 20]);
    }
}
