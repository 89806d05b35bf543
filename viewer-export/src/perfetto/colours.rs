//! Colours of slices, which show work and the kinds of waiting.
//!
//! The format has no colours. The viewer derives a colour from a hash of a slice's correlation id, or if there is none,
//! of its name. So each slice gets a correlation id whose hash yields the desired colour: the name of the slice's
//! group, and a number found by search. Groups and colours are those of the HTML report, as far as the viewer offers
//! these colours. The shade of useful work depends on the name, so that neighbouring slices differ. The tests contain
//! the viewer's hash function.

use ompt_sys as ompt;
use omptrace_timeline::model::{Category, Construct, DeviceWork, Interval, Region};

/// Slices around other work: a parallel region, or a member's part in it.
const AROUND: &[&str] = &["region, shade 224", "region, shade 342"];
const USEFUL: &[&str] = &[
    "useful work, shade 33",
    "useful work, shade 54",
    "useful work, shade 58",
    "useful work, shade 71",
    "useful work, shade 84",
    "useful work, shade 88",
    "useful work, shade 153",
    "useful work, shade 163",
    "useful work, shade 206",
    "useful work, shade 227",
    "useful work, shade 258",
];
const UNDER_LOCK: &[&str] = &[
    "work under a lock, shade 13",
    "work under a lock, shade 17",
    "work under a lock, shade 43",
    "work under a lock, shade 284",
    "work under a lock, shade 335",
];
const PHASES: &[&str] = &[
    "phase, shade 81",
    "phase, shade 91",
    "phase, shade 99",
    "phase, shade 170",
    "phase, shade 200",
    "phase, shade 204",
];
const SLOWER_THREADS: &[&str] = &["waits for slower threads, shade 40"];
const LOCKS: &[&str] = &["waits for locks, shade 91"];
const TASKS: &[&str] = &["waits for tasks, shade 189"];
const OVERHEAD: &[&str] = &["starts, joins, barriers, shade 383"];
const RUNTIME: &[&str] =
    &["runtime and devices, shade 14", "runtime and devices, shade 130", "runtime and devices, shade 228"];
const TRACER: &[&str] = &["the tracer itself, shade 22"];
const IDLE: &[&str] = &["nothing to do, shade 42"];

/// The colour of a region's slices.
pub(super) fn of_region(region: &Region) -> &'static str {
    let shades = match region.category {
        Category::Parallel | Category::ImplicitTask => AROUND,
        Category::Work | Category::Task => USEFUL,
        Category::Sync => OVERHEAD,
        Category::Wait => wait(region.construct),
        Category::Mutex => UNDER_LOCK,
        Category::Target => RUNTIME,
        Category::Mpi => RUNTIME,
        Category::User => PHASES,
        Category::Omptrace => TRACER,
    };
    shade(shades, &region.name)
}

fn wait(construct: Construct) -> &'static [&'static str] {
    match construct {
        Construct::MutexWait(_) => LOCKS,
        Construct::ExternalWait(_) => RUNTIME,
        Construct::SyncRegionWait(ompt::ompt_sync_region_taskwait | ompt::ompt_sync_region_taskgroup) => {
            TASKS
        }
        Construct::ParallelWakeUp | Construct::TeamsWakeUp => OVERHEAD,
        Construct::Idle => IDLE,
        _ => SLOWER_THREADS,
    }
}

/// The colour of an interval on a track other than a thread's.
pub(super) fn of_interval(interval: &Interval<'_>) -> &'static str {
    let shades = match (interval.work, interval.category) {
        (Some(DeviceWork::Kernel(_) | DeviceWork::Native), _) => USEFUL,
        (Some(_), _) | (None, Category::Target) => RUNTIME,
        // The holders of a lock.
        (None, Category::Mutex) => UNDER_LOCK,
        (None, Category::Omptrace) => TRACER,
        // The result of an analysis.
        (None, Category::Wait) => SLOWER_THREADS,
        // What the program named: a frame, or a range of the process.
        (None, Category::User) => PHASES,
        (None, _) => USEFUL,
    };
    shade(shades, interval.name)
}

/// One of `shades`; always the same for a given `name`.
fn shade(shades: &[&'static str], name: &str) -> &'static str {
    let hash = name.bytes().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    shades[hash as usize % shades.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The viewer's hash, which is computed in doubles, so products above 2^53 are rounded.
    fn hash(text: &str, limit: u32) -> u32 {
        let first = 0x811c_9dc5u32 as i32 & 0x0fff_ffff;
        let hash = text.bytes().fold(first, |hash, byte| {
            let product = f64::from(hash ^ i32::from(byte)) * 16_777_619.0;
            product as i64 as i32
        });
        hash.unsigned_abs() % limit
    }

    /// Hue and lightness of the viewer's colour for a correlation id, in the HSLuv colour space.
    fn colour(id: &str) -> (u32, u32) {
        (hash(id, 360), hash(&format!("{id}x"), 40) + 40)
    }

    #[test]
    fn the_viewer_shows_each_group_in_its_colour() {
        let groups = [
            (AROUND, 255..=290, 74..=79),
            (USEFUL, 215..=262, 42..=68),
            (UNDER_LOCK, 270..=305, 42..=64),
            (PHASES, 155..=205, 45..=70),
            (SLOWER_THREADS, 40..=62, 66..=78),
            (LOCKS, 12..=28, 48..=62),
            (TASKS, 325..=352, 54..=68),
            (OVERHEAD, 76..=92, 74..=79),
            (RUNTIME, 222..=246, 66..=76),
            (TRACER, 140..=160, 52..=64),
            (IDLE, 180..=205, 74..=79),
        ];
        for (shades, hues, lightnesses) in groups {
            for id in shades {
                let (hue, lightness) = colour(id);
                assert!(
                    hues.contains(&hue) && lightnesses.contains(&lightness),
                    "{id}: hue {hue}, lightness {lightness}"
                );
            }
        }
    }

    #[test]
    fn each_kind_of_waiting_has_a_colour_that_no_work_has() {
        let region = |construct, category, name: &str| Region {
            id: omptrace_timeline::model::RegionId(0),
            name: name.to_owned(),
            category,
            construct,
            source: None,
        };
        let of = |construct, category| of_region(&region(construct, category, "a"));
        let barrier = ompt::ompt_sync_region_barrier_implicit_parallel;
        assert_eq!(of(Construct::SyncRegionWait(barrier), Category::Wait), SLOWER_THREADS[0]);
        assert_eq!(of(Construct::SyncRegionWait(ompt::ompt_sync_region_taskwait), Category::Wait), TASKS[0]);
        assert_eq!(of(Construct::MutexWait(ompt::ompt_mutex_critical), Category::Wait), LOCKS[0]);
        assert!(USEFUL.contains(&of(Construct::Task, Category::Task)));
        let shades = ["a", "b", "c"].map(|name| of_region(&region(Construct::Task, Category::Task, name)));
        assert!(shades[0] != shades[1] && shades[1] != shades[2]);
    }
}
