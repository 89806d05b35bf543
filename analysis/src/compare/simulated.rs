//! Simulates runs with noise, and tests what their comparison reports.

use crate::compare::{Diff, Metric, Options, Row, Run};
use crate::model::accounting::Accounting;
use crate::model::answers::{Answers, Efficiency, RegionAnswer};
use crate::model::cause::Cause;
use crate::model::place::Place;

/// A generator of random numbers: xorshift.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A uniformly distributed number from 0 to 1.
    fn even(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A normally distributed number (Box-Muller transform).
    fn normal(&mut self) -> f64 {
        let (one, other) = (self.even().max(1e-300), self.even());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }
}

/// How runs of one program differ.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Each part varies independently, with this standard deviation.
    Normal(f64),
    /// A fifth of the runs are slower, by half.
    Outliers,
    /// The machine is either fast or slow, for a whole run.
    TwoSpeeds,
}

/// A run of four threads through six regions of 1 second each. `planted`: imbalance added to the third region, in
/// seconds.
fn run(random: &mut Random, noise: Noise, planted: f64, line: u32) -> Run {
    const THREADS: f64 = 4.0;
    let of_run = match noise {
        Noise::Normal(_) => 1.0,
        Noise::Outliers if random.even() < 0.2 => 1.5,
        Noise::Outliers => 1.0,
        Noise::TwoSpeeds if random.even() < 0.5 => 1.2,
        Noise::TwoSpeeds => 1.0,
    };
    let own = match noise {
        Noise::Normal(deviation) => deviation,
        Noise::Outliers | Noise::TwoSpeeds => 0.005,
    };
    let mut part = |seconds: f64| {
        let factor = of_run * (1.0 + own * random.normal());
        (seconds * factor.max(0.01) * 1e9) as u64
    };
    let mut answers = Answers { threads: THREADS as u32, ..Answers::default() };
    for region in 0..6 {
        let mut accounting = Accounting::default();
        let more = if region == 2 { planted } else { 0.0 };
        for (cause, seconds) in [
            (Cause::Useful, 0.8),
            (Cause::Imbalance, 0.15 + more),
            (Cause::Barrier, 0.03),
            (Cause::Critical, 0.02),
        ] {
            accounting.add(cause, part(seconds * THREADS));
        }
        let duration_ns = accounting.total() / THREADS as u64;
        answers.duration_ns += duration_ns;
        answers.accounting.merge(&accounting);
        answers.regions.push(RegionAnswer {
            place: Place::at("!$omp parallel", Some("a.c"), Some(line + 10 * region), Some("main")),
            visits: 1,
            duration_ns,
            accounting,
            efficiency: Efficiency::default(),
        });
    }
    answers.efficiency.parallel = answers.accounting.share(Cause::Useful);
    Run { name: "run".to_owned(), answers, processes: 1, ..Run::default() }
}

fn runs(seed: u64, count: usize, noise: Noise, planted: f64, line: u32) -> Vec<Run> {
    let mut random = Random::new(seed);
    (0..count).map(|_| run(&mut random, noise, planted, line)).collect()
}

#[test]
fn equal_programs_show_no_difference() {
    let mut false_alarms = 0;
    for (noise, count) in [
        (Noise::Normal(0.002), 10),
        (Noise::Normal(0.03), 10),
        (Noise::Normal(0.2), 10),
        (Noise::Normal(0.03), 3),
        (Noise::Normal(0.2), 2),
        (Noise::Outliers, 10),
        (Noise::TwoSpeeds, 10),
    ] {
        for seed in 0..300 {
            let before = runs(2 * seed + 1, count, noise, 0.0, 40);
            let after = runs(2 * seed + 2, count, noise, 0.0, 40);
            let diff = Diff::of(&before, &after, &Options::default());
            let mut different = diff.rows.iter().filter(|row| row.is_different);
            false_alarms += usize::from(different.clone().any(Row::is_headline));
            let part = different.find(|row| !row.is_headline());
            assert_eq!(part, None, "{noise:?} {count} {seed}");
        }
    }
    // 1 of 1,000 comparisons: about 2 of these 2,100.
    assert!(false_alarms <= 6, "{false_alarms}");
}

#[test]
fn a_planted_difference_is_found_where_it_is() {
    for seed in 0..300 {
        let noise = Noise::Normal(0.02);
        let before = runs(2 * seed + 1, 10, noise, 0.0, 40);
        let after = runs(2 * seed + 2, 10, noise, 0.3, 240);
        let diff = Diff::of(&before, &after, &Options::default());
        let different = diff.rows.iter().filter(|row| row.is_different);
        let imbalance: Vec<_> = different
            .clone()
            .filter(|row| row.metric == Metric::Cause(Cause::Imbalance))
            .filter_map(|row| row.region.as_ref())
            .collect();
        let [region] = imbalance[..] else {
            panic!("{seed}: {imbalance:?}");
        };
        let line = |place: &Option<Place>| place.as_ref().and_then(|place| place.line);
        assert_eq!((line(&region.before), line(&region.after)), (Some(60), Some(260)));
        let whole: Vec<&str> =
            different.filter(|row| row.region.is_none()).map(|row| row.metric.name()).collect();
        assert_eq!(whole, ["duration", "parallel_efficiency", "imbalance"], "{seed}");
        // 0.3 s of 6 s; the interval contains it in nearly all attempts.
        let duration = &diff.rows[0];
        assert!((duration.difference - 0.3e9).abs() < 0.1e9, "{duration:?}");
    }
}

/// 95 of 100 intervals contain the true difference.
#[test]
fn intervals_hold_the_true_difference() {
    let mut held = 0;
    for seed in 0..400 {
        let noise = Noise::Normal(0.02);
        let before = runs(2 * seed + 1, 5, noise, 0.0, 40);
        let after = runs(2 * seed + 2, 5, noise, 0.3, 40);
        let diff = Diff::of(&before, &after, &Options::default());
        let [low, high] = diff.rows[0].interval.expect("repetitions");
        held += usize::from((low..high).contains(&0.3e9));
    }
    assert!((364..=396).contains(&held), "{held} of 400");
}

#[test]
fn conditions_fail_beyond_their_limit_only() {
    let noise = Noise::Normal(0.01);
    let (before, after) = (runs(1, 5, noise, 0.0, 40), runs(2, 5, noise, 0.6, 40));
    let failed = |text: &str, before: &[Run], after: &[Run]| {
        let conditions = text.split(',').map(|text| text.parse().expect(text));
        let options = Options { conditions: conditions.collect(), ..Options::default() };
        let diff = Diff::of(before, after, &options);
        let failed = diff.failed.iter().map(|unmet| unmet.condition.to_string());
        failed.collect::<Vec<_>>().join(",")
    };
    let both = "parallel_efficiency<-3%,duration>5%";
    assert_eq!(failed(both, &before, &after), both);
    assert_eq!(failed(both, &after, &before), "");
    assert_eq!(failed("duration>15%,duration<-1%,imbalance>8%", &before, &after), "imbalance>8%");
    assert_eq!(failed("duration>-5%", &before, &before), "duration>-5%");
    assert_eq!(failed("load_balance<-1%,lock>1%", &before, &after), "load_balance<-1%");
    // With single runs, the measured values are taken as exact.
    assert_eq!(failed(both, &before[..1], &after[..1]), both);
    // Noise of 20 % hides 10 %.
    let noise = Noise::Normal(0.6);
    assert_eq!(failed(both, &runs(1, 5, noise, 0.0, 40), &runs(2, 5, noise, 0.6, 40)), "");
}
