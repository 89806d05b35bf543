//! The whole page: its head, its sections, its data and scripts.

pub(crate) mod escape;
pub(crate) mod limits;
pub(crate) mod palette;
pub(crate) mod sections;
pub(crate) mod source;
pub(crate) mod state_raster;

use std::fmt::Write;

use serde_json::json;

use crate::html::escape::{Text, json};
use crate::html::limits::Limits;
use crate::html::palette::GROUPS;
use crate::input::Report;

/// The longest page.
pub const MAX_PAGE: usize = 1 << 20;

/// The style, the script, and the library that draws charts, with its licence.
const STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
const CHARTS: &str = include_str!("../../assets/vendor/uPlot.iife.min.js");
const CHARTS_STYLE: &str = include_str!("../../assets/vendor/uPlot.min.css");
const CHARTS_LICENCE: &str = include_str!("../../assets/vendor/uPlot.LICENSE");

/// The page may fetch nothing, whatever is in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'";

pub(crate) fn of(report: &Report<'_>) -> String {
    let mut page = String::new();
    for limits in Limits::all() {
        page = with_limits(report, &limits);
        if page.len() <= MAX_PAGE {
            break;
        }
    }
    page
}

fn with_limits(report: &Report<'_>, limits: &Limits) -> String {
    let mut out = String::with_capacity(MAX_PAGE / 2);
    // Writing to memory does not fail.
    let _ = write!(
        out,
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta http-equiv=Content-Security-Policy \
         content=\"{POLICY}\"><meta name=viewport content=\"width=device-width,initial-scale=1\"><meta name=color-scheme \
         content=\"light dark\"><meta name=generator content=omptrace><title>{} \u{2013} omptrace</title><style>{CHARTS_STYLE}\n{STYLE}",
        Text(&report.title)
    );
    for group in &GROUPS {
        let _ = write!(out, ".c-{}{{background:{}}}", group.key, group.colour);
    }
    let _ = write!(
        out,
        "</style></head><body><a class=skip href=#main>to the content</a><header><h1>{}</h1>",
        Text(&report.title)
    );
    sections::headline(&mut out, report);
    out += "</header><nav aria-label=sections id=nav></nav><main id=main>";
    if report.diff.is_some() {
        sections::comparison(&mut out, report, limits);
    }
    sections::ranks(&mut out, report, limits);
    sections::findings(&mut out, report, limits);
    sections::tree(&mut out, report);
    sections::timeline(&mut out, report);
    sections::steps(&mut out, report);
    if report.diff.is_none() {
        sections::comparison(&mut out, report, limits);
    }
    sections::regions(&mut out, report, limits);
    sections::functions(&mut out, report, limits);
    sections::sources(&mut out, report, limits);
    sections::blame(&mut out, report, limits);
    sections::processes(&mut out, report, limits);
    sections::tables(&mut out, report, limits);
    sections::origin(&mut out, report);
    how_to_read(&mut out);
    out += "</main>";
    let data = json!({
        "view": report.view,
        "picture": state_raster::of(report.overview, limits.picture),
        "scaling": report.scaling.map(|scaling| scaling.columns.iter().map(|column| json!({
            "threads": column.threads, "speed_up": column.speed_up, "global": column.global_efficiency,
        })).collect::<Vec<_>>()),
    });
    let _ = write!(
        out,
        "<script type=application/json id=data>{}</script><script>/*\n{CHARTS_LICENCE}\n*/\n{CHARTS}</script><script>{SCRIPT}</script></body></html>\n",
        json(&data)
    );
    out
}

fn how_to_read(out: &mut String) {
    *out += "<section id=help aria-labelledby=help-h><h2 id=help-h>How to read this page</h2><p>The first card names the problem \
             that costs the most time, and its source line. The bars below this card show the time of all threads: blue is the \
             program\u{2019}s own work, all other colours are lost time. Lost time is attributed to the source location that \
             caused the loss, which is not necessarily the location at which threads wait.</p><dl class=groups>";
    for group in &GROUPS {
        let _ = write!(
            out,
            "<div><dt><i class=c-{}></i>{}</dt><dd>{}</dd></div>",
            group.key,
            group.label,
            Text(group.meaning)
        );
    }
    *out += "</dl><p class=note>Charts: uPlot, (c) 2022 Leon Sorokin, under the MIT licence, whose text is in this file.</p></section>";
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::{
        Blame, Cause, Finding, FunctionName, Overview, OverviewCell, OverviewRow, Place, RegionAnswer,
        RegionShape, StepTime,
    };
    use omptrace_analysis::{
        Charge, FlameFrame, FlameGraph, FunctionStats, LockStats, ProcessStats, RankWait, RankWaits,
        SampledTime, Stats, StepBin, Steps, ThreadStats,
    };

    use super::*;
    use crate::html::source::SourceFile;

    /// Numbers of a program that is larger than any: long names, many of all.
    fn large() -> (Stats, Overview, Vec<SourceFile>) {
        let place = |index: u32| {
            let file = format!("/{}/{index}.c", "folder\"'<>&/".repeat(50));
            Place::at(
                &"!$omp parallel<&>".repeat(40),
                Some(&file),
                Some(index % 5_000 + 1),
                Some(&"f<T>".repeat(100)),
            )
        };
        let mut stats = Stats::default();
        let answers = &mut stats.answers;
        answers.threads = 100_000;
        answers.duration_ns = 10_000_000_000;
        answers.accounting.add(Cause::Useful, 1_000_000_000_000);
        for index in 0..5_000 {
            let mut region = RegionAnswer { place: place(index), visits: 7, ..RegionAnswer::default() };
            for cause in Cause::ALL {
                region.accounting.add(*cause, 1_000);
                answers.blame.push(Blame {
                    cause: *cause,
                    place: place(index),
                    ns: 1_000,
                    functions: Vec::new(),
                    no_sample_ns: None,
                });
            }
            answers.regions.push(region);
            answers.findings.push(Finding {
                id: "load_imbalance".to_owned(),
                place: place(index),
                gain_ns: 1_000,
                text: "too long ".repeat(200),
                evidence: serde_json::Map::new(),
                instances: Vec::new(),
            });
        }
        stats.threads = (0..5_000)
            .map(|_| ThreadStats {
                process: "p&".repeat(500),
                name: "<t>".repeat(500),
                ..ThreadStats::default()
            })
            .collect();
        stats.processes = vec![ProcessStats { name: "p".repeat(5_000), ..ProcessStats::default() }; 2_000];
        stats.locks = vec![LockStats { name: "l".repeat(5_000), ..LockStats::default() }; 2_000];
        stats.steps = Some(Steps {
            name: "<step>".repeat(5_000),
            count: 5_000,
            steps_per_bin: 20,
            bins: vec![StepBin { median_ns: u64::MAX / 2, longest_ns: u64::MAX }; 250],
            longest_ns: u64::MAX,
            ..Steps::default()
        });
        let charge = |index: u32| Charge {
            rank: index,
            cause: Some(Cause::Imbalance),
            place: Some(place(index)),
            state: "wait_at_barrier",
            waits_at: place(index),
            ns: 1_000,
            ranks: 1_000,
        };
        let wait = |rank: u32| RankWait {
            rank,
            state: "wait_at_barrier",
            place: place(rank),
            waits_for: 999 - rank,
            ns: 1_000,
            count: 7,
        };
        stats.rank_waits = Some(RankWaits {
            total_ns: 1_000_000,
            waits: (0..1_000).map(wait).collect(),
            first_causes: (0..1_000).map(charge).collect(),
            ..RankWaits::default()
        });
        stats.sampling = Some(SampledTime::default());
        stats.functions =
            vec![FunctionStats { function: "f<&>".repeat(500), ..FunctionStats::default() }; 5_000];
        let frames = (0..5_000).map(|index: usize| FlameFrame {
            name: FunctionName { function: "f<&>".repeat(500), ..FunctionName::default() },
            depth: index.min(128),
            total_ns: 1_000_000_000 >> (index / 200),
            self_ns: 1,
        });
        let frames = frames.collect();
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % 1_000
        };
        let mut cell = || {
            let mut cell = OverviewCell { lived_ns: 18_000, ..OverviewCell::default() };
            for cause in Cause::ALL {
                cell.accounting.add(*cause, random());
            }
            cell
        };
        let overview = Overview {
            steps: (0..250)
                .map(|_| StepTime { accounting: cell().accounting, duration_ns: 1_000_000 })
                .collect(),
            end_ns: 10_000_000_000,
            width_ns: 1 << 25,
            names: vec!["n<".repeat(5_000); 255],
            rows: (0..512)
                .map(|_| OverviewRow {
                    process: "p".repeat(5_000),
                    first: "t".repeat(5_000),
                    threads: 2,
                    cells: (0..256).map(|_| cell()).collect(),
                    ..OverviewRow::default()
                })
                .collect(),
            regions: (0..256)
                .map(|index| RegionShape {
                    place: place(index),
                    durations: vec![7; 64],
                    useful: vec![("p".repeat(500), "t".repeat(500), 7); 5_000],
                    ..RegionShape::default()
                })
                .collect(),
            stacks: FlameGraph { frames },
            ..Overview::default()
        };
        let files = (0..24)
            .map(|index| SourceFile {
                found: String::new(),
                path: place(index).file.unwrap_or_default(),
                lines: vec!["<\"&>".repeat(2_000); 6_000],
                is_newer: true,
            })
            .collect();
        (stats, overview, files)
    }

    #[test]
    fn page_and_markdown_keep_to_their_sizes_however_large_the_program_is() {
        let (stats, overview, files) = large();
        let report = Report {
            title: "<title>".repeat(2_000),
            view: "omptrace view x".to_owned(),
            stats_command: "omptrace stats x".to_owned(),
            stats: &stats,
            overview: &overview,
            infos: &[],
            sources: Some(&files),
            diff: None,
            scaling: None,
        };
        let page = report.page();
        assert!(page.len() <= MAX_PAGE, "{}", page.len());
        // It is still worth looking at.
        assert!(page.matches("<tr").count() > 100, "{}", page.matches("<tr").count());
        assert!(page.matches("role=treeitem").count() > 10);
        // Whatever scrolls sideways is reached by the keyboard (WCAG 2.1.1).
        let scrolling = page.matches("<div class=scroll").count();
        let reached = page.matches("<div class=scroll tabindex=0 role=region aria-label=\"").count();
        assert!(scrolling > 8 && reached == scrolling, "{reached} of {scrolling}");
        assert!(page.contains("\"planes\":\"") && !page.contains("\"planes\":\"\""));
        let markdown = report.markdown();
        assert!(markdown.len() <= crate::markdown::MAX_MARKDOWN, "{}", markdown.len());
        assert!(markdown.contains("load_imbalance"), "{}", &markdown[..2_000]);
    }
}
