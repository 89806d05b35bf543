//! The numbers as tables for people.

use std::fmt;

use crate::stats::{ConstructStats, DeviceStats, LockStats, Stats, ThreadStats, Times};

/// Locks that are shown.
const MOST_LOCKS: usize = 20;

/// Letters of names that numbers stand beside. A longer one, as functions of C++ have, takes a line of its own.
const LONGEST_BESIDE: usize = 64;

/// A table under construction: the first column is words, the others are numbers.
struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    fn new(headings: [&str; COLUMNS]) -> Self {
        Table {
            rows: vec![headings.map(str::to_owned)],
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = |row: &[String; COLUMNS], column: usize| row[column].chars().count();
        let stands_alone = |row: &[String; COLUMNS]| letters(row, 0) > LONGEST_BESIDE;
        let width = |column: usize| {
            let beside = |row: &&[String; COLUMNS]| column > 0 || !stands_alone(row);
            let rows = self.rows.iter().filter(beside);
            rows.map(|row| letters(row, column)).max().unwrap_or(0)
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        for row in &self.rows {
            if stands_alone(row) {
                write!(f, "{}\n{:2$}", row[0], "", widths[0])?;
            } else {
                write!(f, "{:<1$}", row[0], widths[0])?;
            }
            for (cell, width) in row.iter().zip(widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A time with three digits or more: `1.23 ms`.
fn time(ns: u64) -> String {
    let in_unit = |unit: f64, name: &str| {
        let value = ns as f64 / unit;
        let decimals = if value < 10.0 {
            2
        } else {
            usize::from(value < 100.0)
        };
        format!("{value:.decimals$} {name}")
    };
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => in_unit(1e3, "us"),
        1_000_000..1_000_000_000 => in_unit(1e6, "ms"),
        _ => in_unit(1e9, "s"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Count, total, mean, min, max.
fn cells(times: &Times) -> [String; 5] {
    let has_duration = times.max_ns > 0;
    let cell = |ns| if has_duration { time(ns) } else { "-".into() };
    [
        times.count.to_string(),
        cell(times.total_ns),
        cell(times.mean_ns),
        cell(times.min_ns),
        cell(times.max_ns),
    ]
}

fn construct_row(stats: &ConstructStats) -> [String; 9] {
    let [count, total, mean, min, max] = cells(&stats.times);
    let has_duration = stats.times.max_ns > 0;
    let own = if has_duration {
        time(stats.self_ns)
    } else {
        "-".into()
    };
    let waiting = if has_duration {
        percent(stats.wait_share())
    } else {
        "-".into()
    };
    let imbalance = stats
        .team
        .map_or_else(String::new, |team| percent(team.imbalance()));
    [
        stats.name.clone(),
        count,
        total,
        own,
        mean,
        min,
        max,
        waiting,
        imbalance,
    ]
}

fn thread_row(stats: &ThreadStats) -> [String; 8] {
    [
        stats.name.clone(),
        time(stats.parallel_ns),
        time(stats.working_ns),
        time(stats.barriers_ns),
        time(stats.tasks_ns),
        time(stats.locks_ns),
        time(stats.wake_up_ns),
        stats.tasks.to_string(),
    ]
}

fn lock_row(stats: &LockStats) -> [String; 6] {
    let [count, total, mean, min, max] = cells(&stats.times);
    [stats.name.clone(), count, total, mean, min, max]
}

fn device_row(stats: &DeviceStats) -> [String; 7] {
    let [count, total, mean, min, max] = cells(&stats.times);
    let (name, queue) = (stats.name.clone(), stats.queue.clone());
    [name, queue, count, total, mean, min, max]
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} from start to end; times are sums over threads\n",
            time(self.duration_ns)
        )?;
        let headings = [
            "construct",
            "count",
            "total",
            "self",
            "mean",
            "min",
            "max",
            "waiting",
            "imbalance",
        ];
        let mut constructs = Table::new(headings);
        constructs
            .rows
            .extend(self.constructs.iter().map(construct_row));
        constructs.write(f)?;

        for threads in self.threads.chunk_by(|a, b| a.process == b.process) {
            writeln!(f, "\n{}", threads[0].process)?;
            let headings = [
                "thread",
                "in parallel",
                "working",
                "barriers",
                "taskwaits",
                "locks",
                "wake-up",
                "tasks",
            ];
            let mut table = Table::new(headings);
            table.rows.extend(threads.iter().map(thread_row));
            table.write(f)?;
        }
        if !self.locks.is_empty() {
            writeln!(f)?;
            let mut table = Table::new(["lock", "held", "total", "mean", "min", "max"]);
            table
                .rows
                .extend(self.locks.iter().take(MOST_LOCKS).map(lock_row));
            table.write(f)?;
            if self.locks.len() > MOST_LOCKS {
                writeln!(f, "and {} locks more", self.locks.len() - MOST_LOCKS)?;
            }
        }
        if !self.devices.is_empty() {
            writeln!(f)?;
            let mut table = Table::new(["device", "queue", "count", "total", "mean", "min", "max"]);
            table.rows.extend(self.devices.iter().map(device_row));
            table.write(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_leave_the_columns_where_they_are() {
        struct Shown(Table<2>);

        impl fmt::Display for Shown {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f)
            }
        }

        let mut table = Table::new(["construct", "count"]);
        let long = "x".repeat(LONGEST_BESIDE + 1);
        for (name, count) in [(&*long, "12345678"), ("short", "1")] {
            table.rows.push([name.to_owned(), count.to_owned()]);
        }
        assert_eq!(
            Shown(table).to_string(),
            format!("construct     count\n{long}\n           12345678\nshort             1\n")
        );
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let texts = [0, 999, 1_000, 12_345, 123_456, 9_999_999, 1_500_000_000].map(time);
        assert_eq!(
            texts,
            [
                "0 ns", "999 ns", "1.00 us", "12.3 us", "123 us", "10.00 ms", "1.50 s"
            ]
        );
    }
}
