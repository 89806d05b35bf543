//! Functions by samples: a flame graph, and their times.

use omptrace_analysis::{FlameFrame, SampledTime};

use super::*;

/// The width of a frame that is worth drawing, as a share of all.
const MIN_SHARE: f64 = 0.0002;

/// The flame graph and the table of functions, where the run was sampled.
pub(crate) fn functions(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let Some(sampled) = &report.stats.sampling else {
        return;
    };
    let lead = format!(
        "The call stacks of {}, which represent {} of CPU time on all threads. The width of a frame shows its time; callers are above the functions that they call. The program\u{2019}s code is blue, the runtime is orange.",
        counted(sampled.samples, "sample"),
        time(sampled.sampled_ns)
    );
    section(out, "functions", "Functions", &lead);
    flames(out, report, limits);
    table_of(out, report, limits, sampled);
    *out += "</section>";
}

fn flames(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let graph = &report.overview.stacks;
    let all_ns = graph.frames.first().map_or(0, |frame| frame.total_ns);
    let least = (all_ns as f64 * MIN_SHARE) as u64;
    let worth = graph.frames.iter();
    let worth = worth.filter(|frame| frame.total_ns > least).count();
    let graph = graph.largest(worth.min(limits.frames));
    let deepest = graph.frames.iter().map(|frame| frame.depth).max();
    let Some(deepest) = deepest else {
        return;
    };
    let _ = write!(
        out,
        "<div class=controls id=flame-controls hidden><button type=button>show all</button></div><div class=scroll tabindex=0 role=region aria-label=\"flame graph\">\
         <div id=flame role=tree aria-label=\"functions by call stack\" style=\"--rows:{}\">",
        deepest + 1
    );
    // Where the next call of each frame that is open begins.
    let mut begins: Vec<u64> = vec![0];
    for frame in &graph.frames {
        begins.truncate(frame.depth + 1);
        let begin = begins.last().copied().unwrap_or(0);
        if let Some(next) = begins.last_mut() {
            *next += frame.total_ns;
        }
        begins.push(begin);
        write_frame(out, frame, begin, all_ns);
    }
    let _ = write!(
        out,
        "</div></div><p id=frame aria-live=polite></p><p class=note>Arrow keys move between frames, Enter enlarges a frame to the full width, 0 \
         shows all frames again. All stacks: <code class=copy>{}</code></p>",
        Text(&report.stats_command.replacen("stats", "convert --to folded", 1))
    );
}

fn write_frame(out: &mut String, frame: &FlameFrame, begin: u64, all_ns: u64) {
    let share = |ns: u64| ns as f64 / all_ns.max(1) as f64;
    let name = match frame.depth {
        0 => "all samples".to_owned(),
        _ => short(&frame.name.function),
    };
    let kind = match frame.name.module.is_empty() && frame.depth > 0 {
        true => " class=rt",
        false => "",
    };
    let own = match frame.self_ns {
        0 => String::new(),
        ns => format!(", {} itself", time(ns)),
    };
    let words = format!("{}, {}{own}", time(frame.total_ns), percent(share(frame.total_ns)));
    let tabindex = if frame.depth == 0 { 0 } else { -1 };
    let _ = write!(
        out,
        "<div role=treeitem tabindex={tabindex} aria-level={}{kind} data-ns={} data-from={begin} style=\"--d:{};left:{:.3}%;width:{:.3}%\" \
         aria-label=\"{}: {words}\">{}</div>",
        frame.depth + 1,
        frame.total_ns,
        frame.depth,
        share(begin) * 100.0,
        share(frame.total_ns) * 100.0,
        Text(&name),
        Text(&name)
    );
}

fn table_of(out: &mut String, report: &Report<'_>, limits: &Limits, sampled: &SampledTime) {
    let share = |ns: u64| Some(ns as f64 / sampled.sampled_ns.max(1) as f64);
    let rows = report.stats.functions.iter().map(|function| {
        vec![
            Cell::Name(function.function.clone()),
            Cell::time(function.self_ns),
            Cell::share(share(function.self_ns)),
            Cell::time(function.total_ns),
            Cell::time(function.wait_ns),
            Cell::time(function.blame_ns),
            Cell::time(function.path_ns),
        ]
    });
    let headings = [
        "function",
        "itself",
        "share",
        "including callees",
        "OpenMP wait",
        "others waited",
        "on the critical path",
    ];
    let more = format!("{} --by function --all", report.stats_command);
    table(
        out,
        "functions-table",
        "Functions by CPU time",
        &headings,
        rows.collect(),
        (limits.rows / 2, &more),
    );
}
