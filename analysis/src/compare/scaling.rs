//! Runs with different numbers of threads or processes: how a program scales, by POP's metrics.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::compare::run::Run;
use crate::model::accounting::Accounting;
use crate::model::answers::{Efficiency, SCHEMA};
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::text::answers::percents;
use crate::text::table::{self, Layout, Table, time, write_wrapped};

/// Causes that are named as those that grow.
const MAX_NAMED: usize = 3;
/// The least growth of a share that is named.
const MIN_GROWTH: f64 = 0.01;

/// How a program scales.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// The version of the answers.
    pub schema: u32,
    /// Whether the work is taken to grow with the threads (weak scaling); else it is the same in all runs.
    pub is_weak: bool,
    /// The numbers of threads, fewest first: each is compared with the first.
    pub columns: Vec<Column>,
    /// What to know of useful time where a run uses MPI; left out where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_note: Option<String>,
    /// The causes of loss whose share grows from the first to the last column, the most first.
    pub growing: Vec<Growing>,
}

/// Runs with as many threads, on average.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Column {
    /// Threads, of all processes together.
    pub threads: u32,
    /// Processes.
    pub processes: usize,
    /// Runs.
    pub runs: usize,
    /// Their time.
    pub duration_ns: u64,
    /// Efficiencies: of the sums and, for all but `parallel`, the mean of the runs.
    #[serde(flatten)]
    pub efficiency: Efficiency,
    /// Useful time of the first column by that of this one; with weak scaling, by thread.
    pub computation_scalability: Option<f64>,
    /// Parallel efficiency times computation scalability.
    pub global_efficiency: Option<f64>,
    /// The first column's time by this one's; with weak scaling, times the growth of the threads.
    pub speed_up: Option<f64>,
    /// The speed-up by the growth of the threads.
    pub efficiency_of_speed_up: Option<f64>,
    /// The sums of all runs by cause.
    pub accounting: Accounting,
}

/// A cause of loss that grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growing {
    /// Which.
    pub cause: Cause,
    /// Its share of the threads' time in the first column.
    pub first: f64,
    /// In the last.
    pub last: f64,
    /// The place that most of it is due to in the last column, where one is.
    pub place: Option<Place>,
}

fn quotient(one: u64, other: u64) -> Option<f64> {
    (other > 0).then(|| one as f64 / other as f64)
}

impl Scaling {
    /// How the program of these runs scales.
    pub fn of(runs: &[Run], is_weak: bool) -> Scaling {
        let mut groups: BTreeMap<(u32, usize), Vec<&Run>> = BTreeMap::new();
        for run in runs {
            let key = (run.answers.threads, run.processes);
            groups.entry(key).or_default().push(run);
        }
        let mut columns: Vec<Column> = groups.values().map(|runs| Column::of(runs)).collect();
        if let Some(first) = columns.first().cloned() {
            for column in &mut columns {
                column.compare(&first, is_weak);
            }
        }
        let last = groups.values().last();
        let growing = match (&columns[..], last) {
            ([first, .., last], Some(runs)) => growing(first, last, runs),
            _ => Vec::new(),
        };
        Scaling {
            schema: SCHEMA,
            is_weak,
            columns,
            mpi_note: runs.iter().find_map(|run| run.answers.mpi_note.clone()),
            growing,
        }
    }

    /// The table and what grows, laid out like this.
    pub fn text(&self, layout: Layout) -> impl fmt::Display {
        Text { scaling: self, layout }
    }
}

impl Column {
    fn of(runs: &[&Run]) -> Column {
        let mut accounting = Accounting::default();
        let mut duration_ns: u128 = 0;
        for run in runs {
            accounting.merge(&run.answers.accounting);
            duration_ns += u128::from(run.answers.duration_ns);
        }
        let mean = |of: fn(&Efficiency) -> Option<f64>| {
            let values = runs.iter().map(|run| of(&run.answers.efficiency));
            let values: Option<Vec<f64>> = values.collect();
            values.map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
        };
        Column {
            threads: runs.first().map_or(0, |run| run.answers.threads),
            processes: runs.first().map_or(0, |run| run.processes),
            runs: runs.len(),
            duration_ns: (duration_ns / runs.len().max(1) as u128) as u64,
            efficiency: Efficiency {
                parallel: accounting.share(Cause::Useful),
                load_balance: mean(|of| of.load_balance),
                communication: mean(|of| of.communication),
                serialisation: mean(|of| of.serialisation),
                transfer: mean(|of| of.transfer),
            },
            accounting,
            ..Column::default()
        }
    }

    fn compare(&mut self, first: &Column, is_weak: bool) {
        let growth = f64::from(self.threads) / f64::from(first.threads.max(1));
        let work = if is_weak { growth } else { 1.0 };
        let useful = |column: &Column| column.accounting[Cause::Useful] / column.runs.max(1) as u64;
        self.computation_scalability =
            quotient(useful(first), useful(self)).map(|scalability| scalability * work);
        let global = self.efficiency.parallel.zip(self.computation_scalability);
        self.global_efficiency = global.map(|(parallel, scalability)| parallel * scalability);
        let speed_up = quotient(first.duration_ns, self.duration_ns);
        self.speed_up = speed_up.map(|speed_up| speed_up * work);
        self.efficiency_of_speed_up = self.speed_up.map(|speed_up| speed_up / growth);
    }

    /// `8`, or `2x4` of several processes.
    fn heading(&self) -> String {
        match self.processes {
            0 | 1 => self.threads.to_string(),
            processes => {
                let threads = f64::from(self.threads) / processes as f64;
                format!("{processes}x{}", (threads * 10.0).round() / 10.0)
            }
        }
    }
}

fn growing(first: &Column, last: &Column, runs: &[&Run]) -> Vec<Growing> {
    let causes = Cause::ALL.iter().filter(|cause| cause.is_loss());
    let mut growing: Vec<Growing> = causes
        .filter_map(|cause| {
            let share = |column: &Column| column.accounting.share(*cause);
            let (first, last) = (share(first)?, share(last)?);
            let place = runs.first().and_then(|run| run.answers.mostly_due_to(*cause));
            (last - first >= MIN_GROWTH).then_some(Growing {
                cause: *cause,
                first,
                last,
                place: place.cloned(),
            })
        })
        .collect();
    growing.sort_by(|a, b| (b.last - b.first).total_cmp(&(a.last - a.first)));
    growing
}

struct Text<'a> {
    scaling: &'a Scaling,
    layout: Layout,
}

/// A row of shares: its name, indented by what it is a factor of, and its value in a column.
type Share = (&'static str, fn(&Column) -> Option<f64>);

const SHARES: [Share; 7] = [
    ("global efficiency %", |of| of.global_efficiency),
    ("  parallel efficiency %", |of| of.efficiency.parallel),
    ("    load balance %", |of| of.efficiency.load_balance),
    ("    communication %", |of| of.efficiency.communication),
    ("      serialisation %", |of| of.efficiency.serialisation),
    ("      transfer %", |of| of.efficiency.transfer),
    ("  computation scalability %", |of| of.computation_scalability),
];

impl Text<'_> {
    /// The change of the parallel efficiency, and its cause, in words.
    fn words(&self) -> Option<String> {
        let columns = &self.scaling.columns;
        let (first, last) = (columns.first()?, columns.last()?);
        if columns.len() < 2 {
            return Some(
                "one number of threads does not show how a program scales; name runs with others".to_owned(),
            );
        }
        let (before, after) = (first.efficiency.parallel?, last.efficiency.parallel?);
        let mut words = format!(
            "from {} to {} threads, parallel efficiency goes from {} to {}",
            first.heading(),
            last.heading(),
            percents(before),
            percents(after)
        );
        for (index, growing) in self.scaling.growing.iter().take(MAX_NAMED).enumerate() {
            let points = (growing.last - growing.first) * 100.0;
            let cause = growing.cause.name().replace('_', " ");
            let separator = if index == 0 { ": " } else { ", " };
            words += &format!("{separator}{cause} grows by {points:.1} points");
            let place = growing.place.as_ref().and_then(Place::source);
            words += &place.map_or_else(String::new, |place| format!(" at {place}"));
        }
        if self.scaling.growing.is_empty() {
            words += ": no cause of loss grows";
        }
        Some(words)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Text { scaling, layout } = self;
        let note = scaling
            .mpi_note
            .as_ref()
            .map(|note| format!("note: {note}, so efficiencies are those of OpenMP alone"));
        let words: Vec<String> = self.words().into_iter().chain(note).collect();
        for words in &words {
            write_wrapped(f, words, 0, layout)?;
        }
        if !words.is_empty() {
            writeln!(f)?;
        }
        let columns = &scaling.columns;
        let headings = columns.iter().enumerate();
        // Those in the middle are the first to go where there is no room: their rank is the greatest.
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
        for (name, of) in SHARES {
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
                causes.row(cause.name().replace('_', " "), cells);
            }
        }
        causes.write(f, &layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::answers::{Answers, Blame};
    use crate::model::place::Place;

    /// A second of serial code, then eight seconds of work spread over the threads, and a tenth of imbalance per thread.
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
        Run { name: threads.to_string(), answers, processes, functions: None }
    }

    fn shown(runs: &[Run]) -> String {
        let layout = Layout { width: Some(80), ..Layout::default() };
        Scaling::of(runs, false).text(layout).to_string()
    }

    #[test]
    fn the_table_is_pops() {
        assert_eq!(
            shown(&[run(8, 1), run(1, 1), run(2, 1), run(2, 1)]),
            "\
from 1 to 8 threads, parallel efficiency goes from 98.9 % to 40.2 %: serial
grows by 31.2 points, imbalance grows by 27.5 points at a.c:35

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
useful                         98.9  86.5  40.2
serial                          0.0   9.6  31.2
imbalance                       1.1   3.8  28.6
"
        );
    }

    /// Global efficiency is what the speed-up shows, by both ways of computing it.
    #[test]
    fn efficiency_is_that_of_the_speed_up() {
        let scaling = Scaling::of(&[run(1, 1), run(2, 1), run(4, 1), run(8, 1)], false);
        let first = scaling.columns[0].global_efficiency.expect("known");
        for column in &scaling.columns {
            let global = column.global_efficiency.expect("known") / first;
            let speed_up = column.efficiency_of_speed_up.expect("known");
            assert!((global - speed_up).abs() < 1e-9, "{column:?}");
        }
    }

    #[test]
    fn processes_times_threads_are_a_column() {
        let text = shown(&[run(2, 1), run(8, 2), run(8, 8)]);
        assert!(text.contains("threads                           2     2x4     8x1"), "{text}");
        assert!(shown(&[run(2, 1)]).starts_with("one number of threads does not show"));
    }

    #[test]
    fn time_in_mpi_is_named_beside_the_efficiencies() {
        let mut with_mpi = run(4, 2);
        with_mpi.answers.mpi_note = Some(crate::model::mpi::MPI_NOT_SEEN.to_owned());
        let text = shown(&[run(2, 1), with_mpi]);
        assert!(text.contains("note: time in MPI is not seen"), "{text}");
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
}
