//! Times and sizes as people type them.

use std::num::NonZero;

use omptrace_timeline::model::Ns;

/// Units of time with their nanoseconds. Longer names first: `ms` ends with `s`.
const TIMES: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A time or duration, in seconds where no unit is given: `1.5s`, `250ms`, `10us`, `2`.
///
/// # Errors
/// It is none; the text says how to write it.
pub(crate) fn nanoseconds(text: &str) -> Result<u64, String> {
    let unit = TIMES.iter().find(|(unit, _)| text.ends_with(unit));
    let (digits, factor) = match unit {
        Some((unit, factor)) => (&text[..text.len() - unit.len()], *factor),
        None => (text, 1e9),
    };
    match digits.trim().parse::<f64>() {
        // Beyond 2^63 ns, which are 292 years, there is nothing.
        Ok(number) if (0.0..9.2e18).contains(&(number * factor)) => Ok((number * factor).round() as u64),
        _ => Err("write a time as 1.5s, 250ms, 10us or 500ns".to_owned()),
    }
}

/// A part of the timeline: `2.0s..2.5s`, `..2.5s`, `2s..`, `-5ms..2s`. It begins at 0, when the tracer did, unless it says otherwise.
///
/// # Errors
/// It is none, or ends before it begins.
pub(crate) fn window(text: &str) -> Result<(Ns, Ns), String> {
    // What was before the tracer is below 0.
    let time = |text: &str, open: Ns| match text.strip_prefix('-') {
        _ if text.is_empty() => Ok(open),
        Some(before) => nanoseconds(before).map(|ns| -Ns::try_from(ns).unwrap_or(Ns::MAX)),
        None => nanoseconds(text).map(|ns| Ns::try_from(ns).unwrap_or(open)),
    };
    let Some((begin, end)) = text.split_once("..") else {
        return Err("write a time window as 2.0s..2.5s, ..2.5s or 2s..".to_owned());
    };
    let (begin, end) = (time(begin, 0)?, time(end, Ns::MAX)?);
    if begin < end { Ok((begin, end)) } else { Err("the window must end after it starts".to_owned()) }
}

/// A part of a run: a time window, or time steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// From and to a time.
    Time((Ns, Ns)),
    /// From the first of these steps to the end of the second.
    Steps((u64, u64)),
}

impl Window {
    pub(crate) fn time(self) -> Option<(Ns, Ns)> {
        match self {
            Window::Time(window) => Some(window),
            Window::Steps(_) => None,
        }
    }

    pub(crate) fn steps(self) -> Option<(u64, u64)> {
        match self {
            Window::Time(_) => None,
            Window::Steps(steps) => Some(steps),
        }
    }
}

/// A window as [`window`] takes it, or `step:100..200`, or `step:7`.
///
/// # Errors
/// It is none, or ends before it begins.
pub(crate) fn window_or_steps(text: &str) -> Result<Window, String> {
    let Some(steps) = text.strip_prefix("step:") else {
        return window(text).map(Window::Time);
    };
    let wrong = || "write time steps as step:100..200 or step:7; time steps are numbered from 1".to_owned();
    let (first, last) = steps.split_once("..").unwrap_or((steps, steps));
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong);
    let (first, last) = (number(first)?, number(last)?);
    if first <= last {
        Ok(Window::Steps((first, last)))
    } else {
        Err("the last time step must not come before the first time step".to_owned())
    }
}

/// One of several parts: `3/8`.
///
/// # Errors
/// It is none.
pub(crate) fn part(text: &str) -> Result<(NonZero<usize>, NonZero<usize>), String> {
    let numbers = text.split_once('/').and_then(|(part, parts)| {
        let numbers = (part.trim().parse().ok()?, parts.trim().parse().ok()?);
        (numbers.0 <= numbers.1).then_some(numbers)
    });
    numbers.ok_or_else(|| "write the part as I/N, for example 3/8 for part 3 of 8".to_owned())
}

/// A time of the timeline as [`window`] takes it, to a microsecond.
pub(crate) fn seconds(time: Ns) -> String {
    format!("{:.6}s", time as f64 / 1e9)
}

/// A size in decimal units: `500M`, `1.5G`.
///
/// # Errors
/// It is none, or zero.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.to_ascii_uppercase().chars().last() {
        Some('K') => (&text[..text.len() - 1], 1e3),
        Some('M') => (&text[..text.len() - 1], 1e6),
        Some('G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if (1.0..1e18).contains(&(number * factor)) => Ok((number * factor) as u64),
        _ => Err("write a size as 500M or 1.5G".to_owned()),
    }
}

/// Percent as a share: `2`, `0.5%`.
///
/// # Errors
/// It is none, or below 0.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let digits = text.trim().trim_end_matches('%').trim_end();
    match digits.parse::<f64>() {
        Ok(number) if (0.0..=1e6).contains(&number) => Ok(number / 100.0),
        _ => Err("write a percentage as 2% or 0.5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(nanoseconds("1.5s"), Ok(1_500_000_000));
        assert_eq!(nanoseconds("250ms"), Ok(250_000_000));
        assert_eq!(nanoseconds("10us"), Ok(10_000));
        assert_eq!(nanoseconds("7ns"), Ok(7));
        assert_eq!(nanoseconds("2"), Ok(2_000_000_000));
        for wrong in ["", "s", "-1s", "1h", "nan", "1e300s"] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn windows_may_be_open() {
        assert_eq!(window("2.0s..2.5s"), Ok((2_000_000_000, 2_500_000_000)));
        assert_eq!(window("..1ms"), Ok((0, 1_000_000)));
        assert_eq!(window("1ms.."), Ok((1_000_000, Ns::MAX)));
        assert_eq!(window("-6ms..1ms"), Ok((-6_000_000, 1_000_000)));
        assert_eq!(window("-6ms..-1ns"), Ok((-6_000_000, -1)));
        for wrong in ["--1s..2s", "-1s..-2s", "-..1s", "1s", "2s..1s", "1s..1s", "a..b"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn steps_are_a_window() {
        assert_eq!(window_or_steps("step:100..200"), Ok(Window::Steps((100, 200))));
        assert_eq!(window_or_steps("step:7"), Ok(Window::Steps((7, 7))));
        assert_eq!(window_or_steps("..1ms"), Ok(Window::Time((0, 1_000_000))));
        for wrong in ["step:", "step:0..3", "step:3..2", "step:a", "step:1.."] {
            assert!(window_or_steps(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_that_is_shown_can_be_typed() {
        assert_eq!(seconds(2_500_000_000), "2.500000s");
        assert_eq!(nanoseconds(&seconds(1_234_567_000)), Ok(1_234_567_000));
    }

    #[test]
    fn percent_is_a_share() {
        assert_eq!(percent("2"), Ok(0.02));
        assert_eq!(percent("0.5 %"), Ok(0.005));
        for wrong in ["", "%", "-1", "nan", "two"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("500M"), Ok(500_000_000));
        assert_eq!(bytes("1.5g"), Ok(1_500_000_000));
        assert_eq!(bytes("4096"), Ok(4096));
        for wrong in ["", "M", "0", "-1M", "5MB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
