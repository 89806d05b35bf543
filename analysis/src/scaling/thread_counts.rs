//! The numbers of threads for which a run is predicted.

/// Up to this number, all numbers of threads are predicted; above it, only some.
const MAX_ALL: u32 = 16;

/// The numbers of threads to predict if at most `busiest` threads were busy: 1 to 2 x N.
pub(crate) fn numbers(busiest: u32) -> Vec<u32> {
    let most = busiest.saturating_mul(2);
    if !(1..=1 << 12).contains(&busiest) {
        return Vec::new();
    }
    if most <= MAX_ALL {
        return (1..=most).collect();
    }
    let doubled = std::iter::successors(Some(1_u32), |number| number.checked_mul(2));
    let mut numbers: Vec<u32> = doubled.take_while(|number| *number <= most).collect();
    numbers.extend([busiest / 2, busiest, busiest / 2 * 3, most]);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_twice_as_many_threads_are_tried() {
        assert!(numbers(0).is_empty());
        assert_eq!(numbers(1), [1, 2]);
        assert_eq!(numbers(2), [1, 2, 3, 4]);
        assert_eq!(numbers(12), [1, 2, 4, 6, 8, 12, 16, 18, 24]);
    }
}
