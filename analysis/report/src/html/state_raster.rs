//! The states of each thread over time, as bytes that the page's script draws.
//!
//! For each row, a plane of bytes for each group and one of places. In each bin, the bytes of the groups add up to 255, or are all 0
//! where the thread's process did not run. Behind them is a plane for each level: its mean in each bin, as a part of its largest.
//! All planes are deflated and written as Base64.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use omptrace_analysis::answers::{Overview, OverviewCell};
use serde_json::{Value, json};

use crate::html::palette::{self, GROUPS, IDLE};

/// Fewer bins say nothing.
const MIN_BINS: usize = 8;
/// The sum of a bin's bytes.
const WHOLE: u32 = 255;

/// The picture as JSON, its bytes within `max` letters.
pub(crate) fn of(overview: &Overview, max: usize) -> Value {
    let mut width_ns = overview.width_ns;
    let mut first_ns = overview.first_bin_ns;
    let mut rows: Vec<Vec<OverviewCell>> = overview.rows.iter().map(|row| row.cells.clone()).collect();
    let mut levels: Vec<Vec<f64>> = overview.levels.iter().map(|level| level.means.clone()).collect();
    loop {
        let bins = rows.first().map_or(0, Vec::len);
        let packed = base64(&deflated(&rows, &levels));
        if packed.len() <= max || bins <= MIN_BINS {
            return json!({
                "begin": overview.begin_ns,
                "end": overview.end_ns,
                "first": first_ns,
                "width": width_ns,
                "bins": bins,
                "names": overview.names.iter().map(|name| crate::html::escape::short(name)).collect::<Vec<_>>(),
                "groups": GROUPS.iter().map(|group| json!({
                    "key": group.key, "label": group.label, "colour": group.colour,
                })).collect::<Vec<_>>(),
                "rows": overview.rows.iter().map(|row| json!({
                    "process": crate::html::escape::short(&row.process),
                    "name": row_name(&row.first, &row.last, row.threads),
                    "threads": row.threads,
                })).collect::<Vec<_>>(),
                "levels": overview.levels.iter().zip(&levels).map(|(level, means)| json!({
                    "process": crate::html::escape::short(&level.process),
                    "name": crate::html::escape::short(&level.name),
                    "unit": level.unit,
                    "most": most(means),
                })).collect::<Vec<_>>(),
                "planes": if packed.len() <= max { packed } else { String::new() },
            });
        }
        let odd = usize::from(!first_ns.div_euclid(width_ns.cast_signed()).rem_euclid(2).eq(&0));
        for row in &mut rows {
            *row = halved(row, odd);
        }
        for means in &mut levels {
            *means = halved_means(means, odd);
        }
        width_ns *= 2;
        first_ns -= if odd == 1 { (width_ns / 2).cast_signed() } else { 0 };
    }
}

pub(crate) fn row_name(first: &str, last: &str, threads: usize) -> String {
    match threads {
        0 | 1 => crate::html::escape::short(first),
        _ => format!("{} \u{2026} {}", crate::html::escape::short(first), crate::html::escape::short(last)),
    }
}

/// Pairs of cells; `odd`: the first cell is the second one of its pair.
fn halved(cells: &[OverviewCell], odd: usize) -> Vec<OverviewCell> {
    let mut halves = vec![OverviewCell::default(); (cells.len() + odd).div_ceil(2)];
    for (index, cell) in cells.iter().enumerate() {
        let half = &mut halves[(index + odd) / 2];
        if half.accounting.total() < cell.accounting.total() {
            half.place = cell.place;
        }
        half.accounting.merge(&cell.accounting);
        half.lived_ns += cell.lived_ns;
    }
    halves
}

/// Pairs of means, as above.
fn halved_means(means: &[f64], odd: usize) -> Vec<f64> {
    let mut halves = vec![0.0; (means.len() + odd).div_ceil(2)];
    for (index, mean) in means.iter().enumerate() {
        halves[(index + odd) / 2] += mean / 2.0;
    }
    halves
}

/// The largest mean of a level.
fn most(means: &[f64]) -> f64 {
    means.iter().copied().fold(0.0, f64::max)
}

/// The shares of the groups in a bin.
fn shares(cell: &OverviewCell) -> [u8; GROUPS.len()] {
    let mut sums = palette::sums(&cell.accounting);
    let known: u64 = sums.iter().sum();
    sums[IDLE] += cell.lived_ns.saturating_sub(known);
    let whole: u128 = sums.iter().map(|ns| u128::from(*ns)).sum();
    let mut shares = [0; GROUPS.len()];
    if whole == 0 || cell.lived_ns == 0 {
        return shares;
    }
    // Each share is the difference of rounded sums: they add up.
    let (mut sum, mut before) = (0, 0);
    for (share, ns) in shares.iter_mut().zip(sums) {
        sum += u128::from(ns);
        let until = (sum * u128::from(WHOLE) / whole) as u32;
        *share = (until - before) as u8;
        before = until;
    }
    shares
}

fn deflated(rows: &[Vec<OverviewCell>], levels: &[Vec<f64>]) -> Vec<u8> {
    let mut planes = Vec::new();
    for row in rows {
        let shares: Vec<_> = row.iter().map(shares).collect();
        for group in 0..GROUPS.len() {
            planes.extend(shares.iter().map(|shares| shares[group]));
        }
        planes.extend(row.iter().map(|cell| cell.place.map_or(0, |place| place + 1)));
    }
    for means in levels {
        let most = most(means);
        // What is not 0 is seen.
        let part = |mean: &f64| match *mean > 0.0 {
            true => (mean / most * f64::from(WHOLE)).round().max(1.0) as u8,
            false => 0,
        };
        planes.extend(means.iter().map(part));
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    let written = encoder.write_all(&planes).and_then(|()| encoder.finish());
    written.expect("memory can be written to")
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for letter in 0..4 {
            match letter <= three.len() {
                true => text.push(LETTERS[(bits >> (18 - 6 * letter) & 63) as usize].into()),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::{Cause, OverviewRow};

    use super::*;

    #[test]
    fn base64_is_as_the_standard_has_it() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (text, expected) in cases {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    fn cell(useful: u64, lived_ns: u64) -> OverviewCell {
        let mut cell = OverviewCell { lived_ns, ..OverviewCell::default() };
        cell.accounting.add(Cause::Useful, useful);
        cell
    }

    #[test]
    fn shares_of_a_bin_add_up() {
        for (useful, lived) in [(0, 7), (1, 3), (7, 7), (9, 7), (1, 1_000_000)] {
            let sum: u32 = shares(&cell(useful, lived)).iter().map(|share| u32::from(*share)).sum();
            assert_eq!(sum, WHOLE, "{useful} of {lived}");
        }
        assert_eq!(shares(&cell(0, 0)), [0; GROUPS.len()]);
    }

    #[test]
    fn means_keep_their_sums_where_bins_are_paired() {
        assert_eq!(halved_means(&[4.0, 8.0, 2.0], 0), [6.0, 1.0]);
        assert_eq!(halved_means(&[4.0, 8.0, 2.0], 1), [2.0, 5.0]);
    }

    #[test]
    fn a_picture_with_noise_in_each_bin_keeps_to_its_size() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) % 1_000
        };
        let row = |random: &mut dyn FnMut() -> u64| OverviewRow {
            threads: 1,
            cells: (0..256).map(|_| cell(random(), 1_000)).collect(),
            ..OverviewRow::default()
        };
        let overview = Overview {
            first_bin_ns: 1 << 10,
            width_ns: 1 << 10,
            rows: (0..512).map(|_| row(&mut random)).collect(),
            ..Overview::default()
        };
        for max in [200_000, 60_000, 20_000] {
            let picture = of(&overview, max);
            let planes = picture["planes"].as_str().expect("text");
            assert!(planes.len() <= max && planes.len() > max / 8, "{} {max}", planes.len());
            assert_eq!(picture["first"], 0);
        }
    }
}
