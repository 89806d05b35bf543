//! The clocks of several hosts as one: by measurements, and so that no message is received before it was sent.
//!
//! Each host's clock is taken for a straight line: it is off by an amount that grows evenly. A measurement says that it is off by so much
//! at a time, give or take half the round trip. A message says on one side how much: it is not received before it is sent. Of all lines
//! that agree with that, the middle one is taken. Then no line is farther from it than half of what they leave open.
//!
//! ```text
//! off by  |        message to the other host: not more
//!         |     v        |    v
//!         |  ___|________v____|___  the line
//!         |  ^      |  ^
//!         |  message from it: not less
//!         +----------------------------- time
//! ```
//!
//! What still goes backwards, since clocks are not quite straight, is moved: see [`Steps`].

use std::collections::BTreeMap;

use crate::model::Ns;

/// A clock may go this much faster or slower than another one: those of computers differ by less than a tenth of that.
const MAX_DRIFT: f64 = 1e-3;
/// How often a range is halved.
const HALVINGS: usize = 60;
/// How often all messages are looked at. After the first time, few are to be moved.
const PASSES: usize = 32;
/// A number of a host.
pub(super) type Host = usize;

/// A time on a host's own clock, which is aligned by the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostTime {
    pub(super) host: Host,
    pub(super) time: Ns,
}

/// What is known of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// Both were read at once, give or take.
    Measured { own: HostTime, peer: HostTime, error_ns: Ns },
    /// A message was sent before it was received.
    Message { sent: HostTime, received: HostTime },
}

impl Fact {
    /// The two hosts that it is about.
    fn hosts(&self) -> [Host; 2] {
        match self {
            Fact::Measured { own, peer, .. } => [own.host, peer.host],
            Fact::Message { sent, received } => [sent.host, received.host],
        }
    }
}

/// What is added to the times of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Correction {
    line: Line,
    steps: Steps,
}

/// `offset + drift * (time - origin)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line {
    origin: Ns,
    offset: f64,
    drift: f64,
}

impl Line {
    fn apply(&self, time: Ns) -> Ns {
        let since = time.saturating_sub(self.origin) as f64;
        time.saturating_add((self.offset + self.drift * since).round() as Ns)
    }
}

/// Jumps forward: what is added from each time on. Before and behind a jump, the clock goes as it did, so it is the call in which the
/// message is received that gets longer. A smooth way there would also move what the host sent shortly before, past what others received.
#[derive(Clone, Debug, Default, PartialEq)]
struct Steps(BTreeMap<Ns, Ns>);

impl Steps {
    /// What is added at a time.
    fn at(&self, time: Ns) -> Ns {
        self.0.range(..=time).next_back().map_or(0, |(_, total)| *total)
    }

    /// From this time on, that much is added at least.
    fn raise(&mut self, time: Ns, total: Ns) {
        self.0.insert(time, total);
        for later in self.0.range_mut(time..).map(|(_, later)| later) {
            *later = total.max(*later);
        }
    }
}

impl Correction {
    /// The true time.
    pub(super) fn apply(&self, time: Ns) -> Ns {
        let straight = self.line.apply(time);
        straight.saturating_add(self.steps.at(straight))
    }

    /// Adds that much to all times.
    pub(super) fn shift(&mut self, ns: Ns) {
        self.line.offset += ns as f64;
        let steps = std::mem::take(&mut self.steps.0);
        self.steps.0 = steps.into_iter().map(|(time, total)| (time.saturating_add(ns), total)).collect();
    }

    /// Whether it changes nothing.
    pub(super) fn is_none(&self) -> bool {
        *self
            == Correction {
                line: Line { origin: self.line.origin, ..Line::default() },
                ..Correction::default()
            }
    }

    /// The times, on the host's own clock, between which it is straight.
    pub(super) fn bends(&self) -> Vec<Ns> {
        let all = self.steps.0.keys().flat_map(|time| [time.saturating_sub(1), *time]);
        // The clock's own time is near, and the map between the two is straight.
        all.map(|time| self.before_line(time)).collect()
    }

    /// The time of which the line makes this.
    fn before_line(&self, time: Ns) -> Ns {
        let Line { origin, offset, drift } = self.line;
        let since = (time.saturating_sub(origin) as f64 - offset) / (1.0 + drift);
        origin.saturating_add(since.round() as Ns)
    }
}

/// What is found out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aligned {
    /// By host.
    pub(super) corrections: Vec<Correction>,
    /// How far two clocks may be apart; `None` where one of them is aligned by the time of day.
    pub(super) error_ns: Option<u64>,
    /// How many messages were moved.
    pub(super) moved: u64,
}

/// Aligns this many hosts by what is known of them. The first one's clock stays.
pub(super) fn aligned(hosts: usize, facts: &[Fact]) -> Aligned {
    let mut corrections: Vec<Option<Correction>> = vec![None; hosts];
    let mut errors: Vec<Option<f64>> = vec![None; hosts];
    if let Some(first) = corrections.first_mut() {
        (*first, errors[0]) = (Some(Correction::default()), Some(0.0));
    }
    let mut known = vec![0];
    let mut facts_of: Vec<Vec<Fact>> = vec![Vec::new(); hosts];
    for fact in facts {
        fact.hosts().into_iter().for_each(|host| facts_of[host].push(*fact));
    }
    // Those that are known by measurements come first.
    while let Some((host, limits)) = next(&corrections, &facts_of) {
        let (line, error) = limits.line();
        corrections[host] = Some(Correction { line, ..Correction::default() });
        // What it is compared with is off itself.
        let mut of_known = known.iter().map(|known| errors[*known]);
        let of_known = of_known.try_fold(0.0_f64, |most, error| Some(most.max(error?)));
        errors[host] = error.zip(of_known).map(|(own, known)| own + known);
        known.push(host);
    }
    let mut corrections: Vec<Correction> = corrections.into_iter().map(Option::unwrap_or_default).collect();
    let moved = order(&mut corrections, facts);
    let errors: Option<Vec<f64>> = errors.into_iter().collect();
    let error_ns = errors.map(|mut errors| {
        errors.sort_by(|a, b| b.total_cmp(a));
        // The two may be off in opposite directions.
        errors.iter().take(2).sum::<f64>().ceil() as u64
    });
    Aligned { corrections, error_ns, moved }
}

/// The next host whose clock can be compared with those that are known, and what is known of it.
fn next(corrections: &[Option<Correction>], facts_of: &[Vec<Fact>]) -> Option<(Host, Limits)> {
    let mut best: Option<(Host, Limits)> = None;
    for host in (0..corrections.len()).filter(|host| corrections[*host].is_none()) {
        let limits = Limits::of(host, corrections, &facts_of[host]);
        let is_better = |best: &Limits| limits.rank() > best.rank();
        if limits.rank() > 0 && best.as_ref().is_none_or(|(_, best)| is_better(best)) {
            best = Some((host, limits));
        }
    }
    best
}

/// Between what the correction of a clock is, at which times.
#[derive(Clone, Debug, Default)]
struct Limits {
    origin: Ns,
    /// Times since the origin, and what is added at least or at most.
    least: Vec<(f64, f64)>,
    most: Vec<(f64, f64)>,
    measurements: usize,
}

impl Limits {
    fn of(host: Host, corrections: &[Option<Correction>], facts: &[Fact]) -> Limits {
        let mut limits = Limits::default();
        let known = |other: HostTime| {
            let correction = corrections[other.host].as_ref()?;
            Some(correction.apply(other.time))
        };
        let mut all: Vec<(Ns, Option<Ns>, Option<Ns>)> = Vec::new();
        for fact in facts {
            match *fact {
                Fact::Measured { own, peer, error_ns } => {
                    for (own, other) in [(own, peer), (peer, own)] {
                        if own.host == host
                            && other.host != host
                            && let Some(time) = known(other)
                        {
                            let off = time - own.time;
                            all.push((own.time, Some(off - error_ns), Some(off + error_ns)));
                            limits.measurements += 1;
                        }
                    }
                }
                Fact::Message { sent, received } if received.host == host && sent.host != host => {
                    if let Some(time) = known(sent) {
                        all.push((received.time, Some(time - received.time), None));
                    }
                }
                Fact::Message { sent, received } if sent.host == host && received.host != host => {
                    if let Some(time) = known(received) {
                        all.push((sent.time, None, Some(time - sent.time)));
                    }
                }
                Fact::Message { .. } => {}
            }
        }
        limits.origin = all.iter().map(|(time, ..)| *time).min().unwrap_or(0);
        for (time, least, most) in all {
            let since = (time - limits.origin) as f64;
            limits.least.extend(least.map(|least| (since, least as f64)));
            limits.most.extend(most.map(|most| (since, most as f64)));
        }
        limits
    }

    /// How much they say: more for measurements than for messages both ways, and for these than for messages one way.
    fn rank(&self) -> u8 {
        match (self.measurements, self.least.is_empty(), self.most.is_empty()) {
            (1.., ..) => 3,
            (0, false, false) => 2,
            (0, true, true) => 0,
            (0, ..) => 1,
        }
    }

    /// What a line of this drift may be off by at the origin, at least and at most.
    fn range(&self, drift: f64) -> (f64, f64) {
        let least = self.least.iter().map(|(time, least)| least - drift * time);
        let most = self.most.iter().map(|(time, most)| most - drift * time);
        (least.fold(f64::NEG_INFINITY, f64::max), most.fold(f64::INFINITY, f64::min))
    }

    /// How much of that is left open; negative where no line fits.
    fn width(&self, drift: f64) -> f64 {
        let (least, most) = self.range(drift);
        most - least
    }

    /// The middle line, and how far it may be from the true one; `None` where that is not limited.
    fn line(&self) -> (Line, Option<f64>) {
        let origin = self.origin;
        if self.rank() < 2 {
            // Messages go one way only: the time of day stays, unless it contradicts them.
            let (least, most) = self.range(0.0);
            return (Line { origin, offset: 0.0_f64.max(least).min(most), drift: 0.0 }, None);
        }
        // The width has one maximum, which may be flat.
        let (mut low, mut high) = (-MAX_DRIFT, MAX_DRIFT);
        for _ in 0..2 * HALVINGS {
            let third = (high - low) / 3.0;
            match self.width(low + third) < self.width(high - third) {
                true => low += third,
                false => high -= third,
            }
        }
        let best = (low + high) / 2.0;
        let widest = self.width(best);
        let edge = |bound: f64, least: f64| {
            let (mut inside, mut outside) = (best, bound);
            if self.width(outside) >= least {
                return outside;
            }
            for _ in 0..HALVINGS {
                let middle = (inside + outside) / 2.0;
                match self.width(middle) >= least {
                    true => inside = middle,
                    false => outside = middle,
                }
            }
            inside
        };
        // Numbers are rounded to nanoseconds.
        let flat = widest - 1.0;
        let drift = (edge(-MAX_DRIFT, flat) + edge(MAX_DRIFT, flat)) / 2.0;
        let (least, most) = self.range(drift);
        let line = Line { origin, offset: (least + most) / 2.0, drift };
        let (low, high) = match widest >= 0.0 {
            true => (edge(-MAX_DRIFT, 0.0), edge(MAX_DRIFT, 0.0)),
            // None fits: this is the one that contradicts least.
            false => (drift, drift),
        };
        (line, Some(self.error(&line, (low, high))))
    }

    /// How far lines that fit, whose drift is in this range, are from `line` where something is known.
    fn error(&self, line: &Line, (low, high): (f64, f64)) -> f64 {
        const SAMPLES: i32 = 64;
        let times = || self.least.iter().chain(&self.most).map(|(time, _)| *time);
        let ends = [0.0, times().fold(0.0, f64::max)];
        let mut worst = 0.0_f64;
        for sample in 0..=SAMPLES {
            let drift = low + (high - low) * f64::from(sample) / f64::from(SAMPLES);
            let (least, most) = self.range(drift);
            for time in ends {
                let own = line.offset + line.drift * time;
                for other in [least, most] {
                    worst = worst.max((other + drift * time - own).abs());
                }
            }
        }
        worst
    }
}

/// Moves what is received before it was sent, and what comes after it on that host. Gives how many messages were moved.
fn order(corrections: &mut [Correction], facts: &[Fact]) -> u64 {
    let mut messages: Vec<(HostTime, HostTime)> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Message { sent, received } if sent.host != received.host => Some((*sent, *received)),
            _ => None,
        })
        .collect();
    messages.sort_by_key(|(_, received)| corrections[received.host].line.apply(received.time));
    let mut moved = 0;
    for _ in 0..PASSES {
        let before = moved;
        for (sent, received) in &messages {
            let begin = corrections[sent.host].apply(sent.time);
            let end = corrections[received.host].apply(received.time);
            if end < begin {
                moved += 1;
                let correction = &mut corrections[received.host];
                let straight = correction.line.apply(received.time);
                correction.steps.raise(straight, begin - straight);
            }
        }
        if moved == before {
            break;
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEW_NS: f64 = 5e6;
    const DRIFT: f64 = 40e-6;
    const SECOND: Ns = 1_000_000_000;

    /// What the second host's clock shows.
    fn shown(time: Ns) -> Ns {
        time + (SKEW_NS + DRIFT * time as f64) as Ns
    }

    fn on(host: Host, time: Ns) -> HostTime {
        HostTime { host, time: if host == 0 { time } else { shown(time) } }
    }

    /// The first host asks the second one; its answer takes this long, of which it is not in the middle.
    fn measured(time: Ns, there: Ns, back: Ns) -> Fact {
        let middle = time + (there + back) / 2;
        Fact::Measured { own: on(0, middle), peer: on(1, time + there), error_ns: (there + back) / 2 }
    }

    fn error_at(aligned: &Aligned, time: Ns) -> u64 {
        aligned.corrections[1].apply(shown(time)).abs_diff(time)
    }

    #[test]
    fn skew_and_drift_are_measured_to_half_the_round_trip() {
        let facts: Vec<Fact> = (0..20)
            .map(|round| measured(round * 100_000, 4_000 + 500 * round, 6_000))
            .chain((0..20).map(|round| measured(10 * SECOND + round * 100_000, 9_000, 3_000 + 700 * round)))
            .collect();
        let aligned = aligned(2, &facts);
        for time in [0, SECOND, 5 * SECOND, 10 * SECOND] {
            assert!(error_at(&aligned, time) <= 6_000, "{time}: {}", error_at(&aligned, time));
        }
        let said = aligned.error_ns.expect("a limit");
        assert!(said <= 12_000 && said >= error_at(&aligned, 10 * SECOND), "{said}");
        assert_eq!(aligned.moved, 0);
    }

    #[test]
    fn messages_both_ways_are_enough() {
        let message = |from: Host, time: Ns, latency: Ns| Fact::Message {
            sent: on(from, time),
            received: on(1 - from, time + latency),
        };
        let facts: Vec<Fact> = (0..100)
            .flat_map(|round| {
                let time = round * SECOND / 10;
                [message(0, time, 20_000 + 300 * (round % 7)), message(1, time + 50_000, 20_000)]
            })
            .collect();
        let aligned = aligned(2, &facts);
        for time in [0, 5 * SECOND, 10 * SECOND] {
            assert!(error_at(&aligned, time) <= 21_000, "{time}: {}", error_at(&aligned, time));
        }
        assert!(aligned.error_ns.is_some_and(|error| error <= 42_000), "{aligned:?}");
    }

    #[test]
    fn one_way_says_no_more_than_that_nothing_goes_backwards() {
        let facts = [Fact::Message { sent: on(1, 0), received: on(0, 1_000) }];
        let aligned = aligned(2, &facts);
        assert_eq!(aligned.error_ns, None);
        assert_eq!(aligned.corrections[1].apply(shown(0)), 1_000);
        assert_eq!(super::aligned(2, &[]).error_ns, None);
    }

    #[test]
    fn a_clock_that_is_not_straight_is_bent_where_a_message_would_go_backwards() {
        let jump = |time: Ns| time + if time > SECOND { -100_000 } else { 0 };
        let both = |time: Ns| {
            let own = HostTime { host: 0, time };
            let peer = |time| HostTime { host: 1, time: jump(time) };
            [
                Fact::Message { sent: own, received: peer(time + 10_000) },
                Fact::Message { sent: peer(time), received: HostTime { host: 0, time: time + 10_000 } },
            ]
        };
        let facts: Vec<Fact> = (0..20).flat_map(|round| both(round * SECOND / 10)).collect();
        let aligned = aligned(2, &facts);
        assert!(aligned.moved > 0);
        let place = |at: HostTime| aligned.corrections[at.host].apply(at.time);
        for fact in &facts {
            if let Fact::Message { sent, received } = fact {
                assert!(place(*sent) <= place(*received), "{fact:?}");
            }
        }
        // Order within a host stays.
        let times: Vec<Ns> = (0..4000).map(|step| aligned.corrections[1].apply(step * 500_000)).collect();
        assert!(times.is_sorted());
    }
}
