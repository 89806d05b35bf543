//! The ids of tasks and regions issued so far. They tell an ended task from one whose creation is missing.

use omptrace_symbols::fast_map::FastMap;

/// The tracer's ids contain the stream's number above these bits, and a consecutive number below.
const NUMBER_BITS: u32 = 40;

/// Limits the memory for a trace with gaps between all ids. Ids after this many gaps count as never issued.
const MAX_RANGES: usize = 1 << 16;

/// Streams below this number are found without hashing.
const MAX_DIRECT: u64 = 1 << 10;

/// The issued ids. Each stream issues consecutive ids, so usually one range per stream is enough; a lost event leaves a
/// gap.
#[derive(Default)]
pub(crate) struct GivenIds {
    /// By stream below [`MAX_DIRECT`].
    direct: Vec<Ranges>,
    /// By stream.
    others: FastMap<u64, Ranges>,
    /// Total number of ranges.
    ranges: usize,
}

/// Ranges in ascending order, each as its first and last id.
type Ranges = Vec<(u64, u64)>;

impl GivenIds {
    /// The ids in these ranges, as returned by [`GivenIds::ranges`].
    pub(crate) fn of(ranges: &[(u64, u64)]) -> GivenIds {
        let mut given = GivenIds::default();
        // Other ranges are invalid: the greatest id means none.
        let is_range = |(first, last): &&(u64, u64)| {
            first <= last && first >> NUMBER_BITS == last >> NUMBER_BITS && *last < u64::MAX
        };
        for (first, last) in ranges.iter().filter(is_range) {
            given.insert_any(first >> NUMBER_BITS, *first);
            let stream = first >> NUMBER_BITS;
            let of_stream = match given.direct.get_mut(stream as usize) {
                Some(of_stream) if stream < MAX_DIRECT => Some(of_stream),
                _ => given.others.get_mut(&stream),
            };
            if let Some((_, end)) = of_stream.and_then(|ranges| ranges.last_mut()) {
                *end = (*end).max(*last);
            }
        }
        given
    }

    /// The first and last id of each range, in ascending order within a stream.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let direct = self.direct.iter().flatten();
        direct.chain(self.others.values().flatten()).copied()
    }

    /// The number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges
    }

    /// Adds an issued id.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64) {
        let stream = id >> NUMBER_BITS;
        let newest = self.direct.get_mut(stream as usize).and_then(|ranges| ranges.last_mut());
        match newest {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => self.insert_any(stream, id),
        }
    }

    #[inline(never)]
    fn insert_any(&mut self, stream: u64, id: u64) {
        let ranges = if stream < MAX_DIRECT {
            if self.direct.len() as u64 <= stream {
                self.direct.resize(stream as usize + 1, Ranges::new());
            }
            &mut self.direct[stream as usize]
        } else {
            self.others.entry(stream).or_default()
        };
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            Some((_, last)) if *last >= id => {}
            _ if self.ranges < MAX_RANGES => {
                self.ranges += 1;
                ranges.push((id, id));
            }
            _ => {}
        }
    }

    /// Whether the id was issued.
    pub(crate) fn contains(&self, id: u64) -> bool {
        let stream = id >> NUMBER_BITS;
        let direct = self.direct.get(stream as usize);
        let Some(ranges) = direct.or_else(|| self.others.get(&stream)) else {
            return false;
        };
        let behind = ranges.partition_point(|(first, _)| *first <= id);
        behind > 0 && id <= ranges[behind - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_each_stream_are_one_range() {
        let mut given = GivenIds::default();
        for number in 1..1000 {
            for stream in 1..4 {
                given.insert(stream << NUMBER_BITS | number);
            }
        }
        assert_eq!(given.ranges, 3);
        assert!(given.contains(2 << NUMBER_BITS | 500));
        assert!(!given.contains(2 << NUMBER_BITS | 1000));
        assert!(!given.contains(7));
    }

    #[test]
    fn ids_of_lost_events_were_not_given() {
        let mut given = GivenIds::default();
        for id in [5, 6, 9, u64::MAX - 2] {
            given.insert(id);
        }
        let is_given = [4, 5, 6, 7, 8, 9, 10].map(|id| given.contains(id));
        assert_eq!(is_given, [false, true, true, false, false, true, false]);
    }

    #[test]
    fn ids_that_were_given_before_are_known() {
        let mut given = GivenIds::default();
        for id in [5, 6, 9, 3 << NUMBER_BITS | 1, MAX_DIRECT << NUMBER_BITS | 7] {
            given.insert(id);
        }
        let ranges: Vec<(u64, u64)> = given.ranges().collect();
        assert_eq!(ranges.len(), given.len());
        let again = GivenIds::of(&ranges);
        assert_eq!(again.ranges().collect::<Vec<_>>(), ranges);
        assert!(again.contains(6) && !again.contains(7) && again.contains(9));
    }

    #[test]
    fn gaps_are_bounded() {
        let mut given = GivenIds::default();
        for id in 1..2 * MAX_RANGES as u64 {
            given.insert(2 * id);
        }
        assert_eq!(given.ranges, MAX_RANGES);
    }
}
