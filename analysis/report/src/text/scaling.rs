//! The comparison of runs with different numbers of threads, as text and tables.

use std::fmt;

use omptrace_analysis::answers::Cause;
use omptrace_analysis::compare::{Column, Falling, Scaling};

use super::diff::busy_words;
use super::overview::percents;
use super::table::{self, Layout, Table, time, write_wrapped};
use super::useful::growth_words;

/// Number of growing causes that are named.
const MAX_NAMED: usize = 3;

/// The table, and the causes of losses that grow, in this layout.
pub fn scaling_text(scaling: &Scaling, layout: Layout) -> impl fmt::Display {
    Text { scaling, layout }
}

struct Text<'a> {
    scaling: &'a Scaling,
    layout: Layout,
}

/// A row of shares: its name, indented below the factor's product, and its value in a column.
type Share = (&'static str, fn(&Column) -> Option<f64>);

const SHARES: [Share; 14] = [
    ("global efficiency %", |of| of.global_efficiency),
    ("  parallel efficiency %", |of| of.efficiency.parallel),
    ("    load balance %", |of| of.efficiency.load_balance),
    ("    communication %", |of| of.efficiency.communication),
    ("      serialisation %", |of| of.efficiency.serialisation),
    ("      transfer %", |of| of.efficiency.transfer),
    ("    MPI %", |of| Some(of.mpi_efficiency.as_ref()?.parallel)),
    ("      MPI load balance %", |of| Some(of.mpi_efficiency.as_ref()?.load_balance)),
    ("      MPI serialisation %", |of| of.mpi_efficiency.as_ref()?.serialisation),
    ("      MPI transfer %", |of| of.mpi_efficiency.as_ref()?.transfer),
    ("    OpenMP %", |of| of.mpi_efficiency.as_ref()?.openmp),
    ("      OpenMP load balance %", |of| of.mpi_efficiency.as_ref()?.openmp_load_balance),
    ("      OpenMP communication %", |of| of.mpi_efficiency.as_ref()?.openmp_communication),
    ("  computation scalability %", |of| of.computation_scalability),
];

impl Text<'_> {
    /// What changes from the first to the last column, and why, in words.
    fn words(&self) -> Vec<String> {
        let columns = &self.scaling.columns;
        let (Some(first), Some(last)) = (columns.first(), columns.last()) else {
            return Vec::new();
        };
        if columns.len() < 2 {
            return vec![
                "all runs have the same number of threads; add runs with a different number of threads"
                    .to_owned(),
            ];
        }
        let from_to = format!("from {} to {} threads, ", first.heading(), last.heading());
        let mut words: Vec<String> = [self.global(first, last), self.useful(), self.parallel(first, last)]
            .into_iter()
            .flatten()
            .collect();
        if let Some(words) = words.first_mut() {
            words.insert_str(0, &from_to);
        }
        words
    }

    /// The change of the global efficiency, and the factor that contributes most to it.
    fn global(&self, first: &Column, last: &Column) -> Option<String> {
        let (before, after) = (first.global_efficiency?, last.global_efficiency?);
        let change = format!("global efficiency goes from {} to {}", percents(before), percents(after));
        Some(match &self.scaling.falling {
            Some(Falling { factor, first, last }) => {
                let factor = factor.replace('_', " ").replace("mpi", "MPI").replace("openmp", "OpenMP");
                format!("{change}: {factor} falls most, from {} to {}", percents(*first), percents(*last))
            }
            None => change,
        })
    }

    /// The place where useful time grows most.
    fn useful(&self) -> Option<String> {
        let growth = self.scaling.useful_growth.as_ref()?;
        let by = if self.scaling.is_weak { " per thread" } else { "" };
        Some(format!("useful time{by} {}", growth_words(growth)))
    }

    /// The change of the parallel efficiency, and its causes.
    fn parallel(&self, first: &Column, last: &Column) -> Option<String> {
        let (before, after) = (first.efficiency.parallel?, last.efficiency.parallel?);
        let mut words = format!("parallel efficiency goes from {} to {}", percents(before), percents(after));
        for (index, growing) in self.scaling.growing.iter().take(MAX_NAMED).enumerate() {
            let points = (growing.last - growing.first) * 100.0;
            let cause = growing.cause.title();
            let separator = if index == 0 { ": " } else { ", " };
            words += &format!("{separator}{cause} grows by {points:.1} percentage points");
            let place = growing.place.as_ref().filter(|place| place.source().is_some());
            words += &place.map_or_else(String::new, |place| format!(" {}", place.at_short()));
        }
        if self.scaling.growing.is_empty() {
            words += "; no cause of lost time grows";
        }
        Some(words)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Text { scaling, layout } = self;
        let note =
            scaling.mpi_note.as_ref().map(|note| format!("note: {note}; the efficiencies cover only OpenMP"));
        let runs = scaling.columns.iter().map(|column| column.runs).sum();
        let busy = busy_words(scaling.busy_runs, runs);
        let words: Vec<String> = self.words().into_iter().chain(note).chain(busy).collect();
        for words in &words {
            write_wrapped(f, words, 0, layout)?;
        }
        if !words.is_empty() {
            writeln!(f)?;
        }
        let columns = &scaling.columns;
        let headings = columns.iter().enumerate();
        // If there is no room for all columns, the middle ones are dropped first: their rank is the highest.
        let rank = |index: usize| index.min(columns.len() - 1 - index) as u8;
        let headings: Vec<table::Column> =
            headings.map(|(index, column)| table::Column::named(column.heading(), rank(index))).collect();
        let mut table = Table::new("threads", &headings);
        table.row("time".to_owned(), columns.iter().map(|column| time(column.duration_ns)));
        let known = |value: Option<f64>, factor: f64| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}", value * factor))
        };
        let number = |of: fn(&Column) -> Option<f64>, factor| {
            columns.iter().map(move |column| known(of(column), factor))
        };
        table.row("speed-up".to_owned(), number(|of| of.speed_up, 1.0));
        let is_hybrid = columns.iter().any(|column| column.mpi_efficiency.is_some());
        let is_shown = |name: &str| is_hybrid || !name.contains("MPI") && !name.contains("OpenMP");
        for (name, of) in SHARES.into_iter().filter(|(name, _)| is_shown(name)) {
            table.row(name.to_owned(), number(of, 100.0));
        }
        let layout = Layout { top: None, ..*layout };
        table.write(f, &layout)?;
        writeln!(f)?;
        let mut causes = Table::new("share of the threads' time, %", &headings);
        for cause in Cause::ALL {
            let share = |column: &Column| column.accounting.share(*cause);
            if columns.iter().any(|column| share(column) >= Some(0.0005)) {
                let cells = columns.iter().map(|column| known(share(column), 100.0));
                causes.row(cause.title().to_owned(), cells);
            }
        }
        causes.write(f, &layout)
    }
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::Place;
    use omptrace_analysis::answers::{Answers, Blame, UsefulAt};
    use omptrace_analysis::compare::Run;

    use super::*;

    /// A run with one second of serial code, eight seconds of work spread over the threads, and 0.1 s of imbalance per
    /// thread.
    fn run(threads: u32, processes: usize) -> Run {
        let n = u64::from(threads);
        let mut answers =
            Answers { threads, duration_ns: (10 + 80 / n + n) * 100_000_000, ..Answers::default() };
        for (cause, tenths) in [(Cause::Useful, 90), (Cause::Serial, 10 * (n - 1)), (Cause::Imbalance, n * n)]
        {
            answers.accounting.add(cause, tenths * 100_000_000);
        }
        answers.blame.push(Blame {
            cause: Cause::Imbalance,
            place: Place::at("!$omp for", Some("a.c"), Some(35), None),
            ns: n * n * 100_000_000,
            functions: Vec::new(),
            no_sample_ns: None,
        });
        Run { name: threads.to_string(), answers, processes, ..Run::default() }
    }

    fn shown(runs: &[Run]) -> String {
        let layout = Layout { width: Some(80), ..Layout::default() };
        scaling_text(&Scaling::of(runs, false), layout).to_string()
    }

    #[test]
    fn the_table_is_pops() {
        assert_eq!(
            shown(&[run(8, 1), run(1, 1), run(2, 1), run(2, 1)]),
            "\
from 1 to 8 threads, global efficiency goes from 98.9 % to 40.2 %
parallel efficiency goes from 98.9 % to 40.2 %: serial code grows by 31.2
percentage points, load imbalance grows by 27.5 percentage points at a.c:35

threads                           1       2       8
time                         9.10 s  5.20 s  2.80 s
speed-up                        1.0     1.8     3.2
global efficiency %            98.9    86.5    40.2
  parallel efficiency %        98.9    86.5    40.2
    load balance %                -       -       -
    communication %               -       -       -
      serialisation %             -       -       -
      transfer %                  -       -       -
  computation scalability %   100.0   100.0   100.0

share of the threads' time, %     1     2     8
useful work                    98.9  86.5  40.2
serial code                     0.0   9.6  31.2
load imbalance                  1.1   3.8  28.6
"
        );
    }

    #[test]
    fn processes_times_threads_are_a_column() {
        let text = shown(&[run(2, 1), run(8, 2), run(8, 8)]);
        assert!(text.contains("threads                           2     2x4     8x1"), "{text}");
        assert!(shown(&[run(2, 1)]).starts_with("all runs have the same number of threads"));
    }

    #[test]
    fn time_in_mpi_is_named_beside_the_efficiencies() {
        let mut with_mpi = run(4, 2);
        with_mpi.answers.mpi_note = Some(omptrace_analysis::MPI_NOT_SEEN.to_owned());
        let text = shown(&[run(2, 1), with_mpi]);
        assert!(text.contains("note: MPI calls were not recorded"), "{text}");
        assert!(!shown(&[run(2, 1)]).contains("MPI"));
    }

    #[test]
    fn many_columns_keep_the_first_and_the_last() {
        let runs: Vec<Run> = (1..=16).map(|threads| run(threads, 1)).collect();
        let text = shown(&runs);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let heading = text.lines().find(|line| line.starts_with("threads")).expect("a table");
        let heading: Vec<&str> = heading.split_whitespace().collect();
        assert_eq!((heading[1], heading.last()), ("1", Some(&"16")));
    }

    /// Useful time grows from 9 seconds to 18, in the loop, and little is lost.
    #[test]
    fn the_factor_that_falls_most_and_the_place_of_more_useful_time_are_named() {
        let run = |threads: u32, seconds: u64| {
            let mut run = run(threads, 1);
            run.answers.accounting[Cause::Useful] = (seconds + 1) * 1_000_000_000;
            let place = |line| Place::at("!$omp for", Some("a.c"), Some(line), None);
            run.answers.useful = [(place(35), seconds), (place(50), 1)]
                .map(|(place, seconds)| UsefulAt { place, ns: seconds * 1_000_000_000 })
                .into();
            run.answers.efficiency.load_balance = Some(1.0 - f64::from(threads) / 1000.0);
            run
        };
        let text = shown(&[run(1, 8), run(2, 17)]);
        let words = "\
from 1 to 2 threads, global efficiency goes from 98.9 % to 46.4 %: computation
scalability falls most, from 100.0 % to 50.0 %
useful time grows most in for @a.c:35, from 8.00 s to 17.0 s
parallel efficiency goes";
        assert!(text.starts_with(words), "{text}");
    }
}
