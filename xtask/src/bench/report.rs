//! The results: as a table for people, as JSON for programs, and what they say about the project's goals.

use std::fmt;

use serde::Serialize;

use super::case::Case;
use super::instructions::Instructions;
use super::machine;
use super::spread::{Spread, median};
use super::tools::{EMPTY, FLOOR, FLOOR_WRITE, MissingTool, OMPTRACE, OMPTRACE_OFF};

/// All results.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    processor: String,
    processors: usize,
    /// Before the first run.
    load_average: f64,
    rounds: u32,
    left_out: Vec<MissingTool>,
    pub(super) cases: Vec<CaseReport>,
    goals: Vec<Goal>,
}

/// The results of one program on a number of threads.
#[derive(Debug, Serialize)]
pub(super) struct CaseReport {
    case: String,
    threads: usize,
    /// Whether the program is all constructs and no work.
    fine: bool,
    events: u64,
    tools: Vec<ToolReport>,
}

/// One tool in one case. Differences are to the empty tool.
#[derive(Debug, Serialize)]
pub(super) struct ToolReport {
    pub(super) tool: &'static str,
    /// CPU time of the program's own threads, per event.
    pub(super) thread_ns_per_event: Option<Spread>,
    /// CPU time of the process, start and end included, per event.
    pub(super) process_ns_per_event: Option<Spread>,
    /// CPU time of the program's own threads, in percent of that under the empty tool.
    pub(super) thread_percent: Option<Spread>,
    /// Wall time likewise.
    pub(super) wall_percent: Option<Spread>,
    /// Wall time itself.
    pub(super) wall_ms: Option<f64>,
    /// From `main` to the end of the first parallel region.
    pub(super) start_ms: Option<f64>,
    /// From the end of `main` to the end of the process.
    pub(super) exit_ms: Option<f64>,
    pub(super) peak_kib: Option<f64>,
    pub(super) instructions: Option<Instructions>,
    pub(super) bytes_per_event: Option<f64>,
}

/// A figure of the product beside what it should be.
#[derive(Debug, Serialize)]
struct Goal {
    what: &'static str,
    figure: f64,
    at_most: f64,
    /// Where the figure is from.
    case: String,
}

impl CaseReport {
    pub(super) fn new(case: &Case<'_>, tools: Vec<ToolReport>) -> CaseReport {
        CaseReport {
            case: case.name(),
            threads: case.threads,
            fine: case.program.fine,
            events: case.events,
            tools,
        }
    }

    fn tool(&self, name: &str) -> Option<&ToolReport> {
        self.tools.iter().find(|tool| tool.tool == name)
    }

    /// The tool's median of a figure, divided by the other tool's.
    fn ratio(&self, tool: &str, other: &str, of: impl Fn(&ToolReport) -> Option<f64>) -> Option<f64> {
        Some(of(self.tool(tool)?)? / of(self.tool(other)?)?)
    }

    /// The tool's figure less the empty tool's.
    fn above_empty(&self, tool: &str, of: impl Fn(&ToolReport) -> Option<f64>) -> Option<f64> {
        Some(of(self.tool(tool)?)? - of(self.tool(EMPTY)?)?)
    }

    /// `None` where the floor's cost does not show: a ratio to noise says nothing.
    fn thread_ratio(&self, tool: &str) -> Option<f64> {
        let floor = self.tool(FLOOR)?.thread_ns_per_event?;
        let shows = self.fine && floor.lower_quartile > 0.0;
        shows.then_some(self.tool(tool)?.thread_ns_per_event?.median / floor.median)
    }
}

impl Report {
    pub(super) fn new(rounds: u32, load_average: f64, left_out: Vec<MissingTool>) -> Report {
        Report {
            processor: machine::processor(),
            processors: machine::processors(),
            load_average,
            rounds,
            left_out,
            cases: Vec::new(),
            goals: Vec::new(),
        }
    }

    /// Draws the conclusions when all cases are there. The goals are those of docs/performance.md.
    pub(super) fn finish(&mut self) {
        let any = |_: &CaseReport| true;
        let alone = |case: &CaseReport| case.threads == 1;
        let fine = |case: &CaseReport| case.fine && case.threads == 1;
        let team = |case: &CaseReport| case.threads > 1;
        let realistic = |case: &CaseReport| !case.fine;
        let thread_ratio = |case: &CaseReport| case.thread_ratio(OMPTRACE);
        let process_ratio = |case: &CaseReport| {
            case.ratio(OMPTRACE_OFF, FLOOR_WRITE, |of| of.process_ns_per_event.map(|ns| ns.median))
        };
        let packing = |case: &CaseReport| {
            let ratio = case.ratio(OMPTRACE, OMPTRACE_OFF, |of| of.wall_ms)?;
            Some((ratio - 1.0) * 100.0)
        };
        let percent = |case: &CaseReport| {
            let percent = case.tool(OMPTRACE)?.thread_percent?;
            Some(percent.lower_quartile)
        };
        let bytes = |case: &CaseReport| case.tool(OMPTRACE)?.bytes_per_event;
        let start = |case: &CaseReport| case.above_empty(OMPTRACE, |of| of.start_ms);
        let exit = |case: &CaseReport| case.above_empty(OMPTRACE, |of| of.exit_ms);
        let memory = |case: &CaseReport| {
            let kib = case.above_empty(OMPTRACE, |of| of.peak_kib)?;
            Some(kib / 1024.0)
        };
        self.goals = [
            self.middle(
                "own threads, ns per event as a multiple of the floor's: median",
                1.5,
                fine,
                thread_ratio,
            ),
            self.worst(
                "own threads, ns per event as a multiple of the floor's: worst",
                1.75,
                fine,
                thread_ratio,
            ),
            self.worst(
                "process without packing, ns per event as a multiple of the floor's with write: worst",
                1.35,
                fine,
                process_ratio,
            ),
            self.worst(
                "wall time with packing on busy CPUs, % above that without: worst",
                2.0,
                team,
                packing,
            ),
            self.worst(
                "realistic program's own threads, % above the empty tool: lower quartile",
                0.0,
                realistic,
                percent,
            ),
            self.worst("bytes per event on the disk: worst", 2.0, any, bytes),
            self.worst("start, ms above the empty tool: worst", 2.0, any, start),
            self.worst("exit, ms above the empty tool: worst", 50.0, any, exit),
            self.worst("memory on one thread, MiB above the empty tool: worst", 10.0, alone, memory),
        ]
        .into_iter()
        .flatten()
        .collect();
    }

    fn figures(
        &self,
        which: impl Fn(&CaseReport) -> bool,
        figure: impl Fn(&CaseReport) -> Option<f64>,
    ) -> Vec<(f64, &str)> {
        let cases = self.cases.iter().filter(|case| which(case));
        cases.filter_map(|case| Some((figure(case)?, case.case.as_str()))).collect()
    }

    fn middle(
        &self,
        what: &'static str,
        at_most: f64,
        which: impl Fn(&CaseReport) -> bool,
        figure: impl Fn(&CaseReport) -> Option<f64>,
    ) -> Option<Goal> {
        let figures = self.figures(which, figure);
        Some(Goal {
            what,
            figure: median(figures.iter().map(|(figure, _)| *figure))?,
            at_most,
            case: format!("{} cases", figures.len()),
        })
    }

    fn worst(
        &self,
        what: &'static str,
        at_most: f64,
        which: impl Fn(&CaseReport) -> bool,
        figure: impl Fn(&CaseReport) -> Option<f64>,
    ) -> Option<Goal> {
        let figures = self.figures(which, figure);
        let (figure, case) = figures.into_iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(Goal { what, figure, at_most, case: case.to_owned() })
    }
}

/// Two lines above each case's rows; the widths are those of [`row`].
const HEADINGS: [[&str; 13]; 2] = [
    [
        "",
        "own threads",
        "",
        "ns",
        "process",
        "own",
        "wall",
        "instructions",
        "",
        "bytes",
        "start",
        "exit",
        "peak",
    ],
    ["tool", "ns per event", "quartiles", "/ floor", "ns", "%", "%", "own", "tool", "", "ms", "ms", "MiB"],
];

fn line(f: &mut fmt::Formatter<'_>, cells: [&str; 13]) -> fmt::Result {
    const WIDTHS: [usize; 13] = [12, 12, 14, 8, 9, 8, 8, 13, 7, 8, 8, 8, 7];
    write!(f, "{:<1$}", cells[0], WIDTHS[0])?;
    for (cell, width) in cells.iter().zip(WIDTHS).skip(1) {
        write!(f, "{cell:>width$}")?;
    }
    writeln!(f)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{}, {} CPUs; medians of {} rounds, as differences from the empty tool in the same round",
            self.processor, self.processors, self.rounds
        )?;
        for case in &self.cases {
            writeln!(f, "\n{}: {} events", case.case, case.events)?;
            for headings in HEADINGS {
                line(f, headings)?;
            }
            for tool in &case.tools {
                row(f, case, tool)?;
            }
        }
        writeln!(f)?;
        for goal in &self.goals {
            let verdict = if goal.figure <= goal.at_most { "met" } else { "MISSED" };
            let Goal { what, figure, at_most, case } = goal;
            writeln!(f, "{what}: {figure:.2} ({case}); goal {at_most}: {verdict}")?;
        }
        Ok(())
    }
}

/// One line below the headings.
fn row(f: &mut fmt::Formatter<'_>, case: &CaseReport, tool: &ToolReport) -> fmt::Result {
    let figure = |value: Option<f64>, digits: usize| match value {
        Some(value) => format!("{value:.digits$}"),
        None => "-".into(),
    };
    let middle = |spread: Option<Spread>, digits| figure(spread.map(|spread| spread.median), digits);
    let quartiles = tool
        .thread_ns_per_event
        .map_or("-".into(), |spread| format!("{:.1} {:.1}", spread.lower_quartile, spread.upper_quartile));
    line(
        f,
        [
            tool.tool,
            &middle(tool.thread_ns_per_event, 1),
            &quartiles,
            &figure(case.thread_ratio(tool.tool), 2),
            &middle(tool.process_ns_per_event, 1),
            &middle(tool.thread_percent, 1),
            &middle(tool.wall_percent, 1),
            &figure(tool.instructions.map(|count| count.program), 1),
            &figure(tool.instructions.map(|count| count.tool), 1),
            &figure(tool.bytes_per_event, 2),
            &figure(tool.start_ms, 2),
            &figure(tool.exit_ms, 2),
            &figure(tool.peak_kib.map(|kib| kib / 1024.0), 1),
        ],
    )
}
