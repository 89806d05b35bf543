//! Less of a timeline: the same intervals, only fewer or cut.

use std::fs;
use std::path::Path;

use omptrace_tests::trace::{Traced, omptrace};
use omptrace_tests::viewers::query;

use crate::export::{number, same};
use crate::intervals::{Interval, lasting, of_chrome, of_text};
use crate::pftrace;

/// The rest of the whole in a window.
fn cut(whole: &[Interval], begin: u64, end: u64) -> Vec<Interval> {
    let is_inside = |slice: &&Interval| {
        let overlaps = slice.begin < end && slice.end > begin;
        overlaps || (begin..end).contains(&slice.begin)
    };
    let cut = |slice: &Interval| Interval {
        begin: slice.begin.max(begin),
        end: slice.end.min(end),
        ..slice.clone()
    };
    let mut cut: Vec<Interval> = whole.iter().filter(is_inside).map(cut).collect();
    cut.sort();
    cut
}

#[test]
fn a_window_cuts_what_reaches_beyond() {
    for (example, arguments) in [("nested", ["480", "10"]), ("task_tree", ["9", "4"])] {
        let traced = Traced::example(example, &arguments);
        let whole = pftrace::intervals(&traced.convert("perfetto", "a.pftrace", &[]));
        let last = whole.iter().map(|slice| slice.end).max().expect("slices");
        let (begin, end) = (last / 3, last / 2);
        let window = format!("{begin}ns..{end}ns");
        let options = ["--window", &window[..]];
        let expected = cut(&whole, begin, end);

        let path = traced.convert("perfetto", "b.pftrace", &options);
        same(&pftrace::intervals(&path), &expected, example);
        let json = traced.convert("chrome", "b.json", &options);
        same(&of_chrome(&json), &lasting(&expected), example);
        let text = traced.convert("text", "b.txt", &options);
        same(&of_text(&text), &expected, example);
        query(&path, &[]);
        query(&json, &[]);
    }
}

#[test]
fn threads_are_chosen_by_name_or_number() {
    let traced = Traced::example("stencil", &["400", "5"]);
    let whole = pftrace::intervals(&traced.convert("perfetto", "a.pftrace", &[]));
    let of = |thread: &str| -> Vec<Interval> {
        let is_of = |slice: &&Interval| slice.track == thread;
        whole.iter().filter(is_of).cloned().collect()
    };
    for (wanted, thread) in [("worker 1", "OpenMP worker 1"), ("0", "main")] {
        let path = traced.convert("perfetto", "b.pftrace", &["--thread", wanted]);
        same(&pftrace::intervals(&path), &of(thread), wanted);
        query(&path, &[]);
    }
    let trace = traced.trace().to_str().expect("UTF-8");
    let output = omptrace(["convert", trace, "--to", "text", "-o", "-", "--thread", "nobody"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("OpenMP worker 1"), "{said}");
}

#[test]
fn what_is_too_short_is_left_out() {
    for (example, arguments) in [("task_tree", &["9", "4"][..]), ("lock_fight", &["500"])] {
        let traced = Traced::example(example, arguments);
        let whole = pftrace::intervals(&traced.convert("perfetto", "a.pftrace", &[]));
        let is_long = |slice: &&Interval| slice.end - slice.begin >= 2_000;
        let expected: Vec<Interval> = whole.iter().filter(is_long).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < whole.len());

        let options = ["--min-duration", "2us"];
        let path = traced.convert("perfetto", "b.pftrace", &options);
        same(&pftrace::intervals(&path), &expected, example);
        let json = traced.convert("chrome", "b.json", &options);
        same(&of_chrome(&json), &lasting(&expected), example);
        query(&path, &[]);
    }
}

#[test]
fn a_series_of_files_is_the_whole() {
    let traced = Traced::example("lock_fight", &["6000"]);
    let whole = traced.convert("perfetto", "a.pftrace", &[]);
    // How much there is depends on how often the threads had to wait.
    let bytes = fs::metadata(&whole).expect("a file").len();
    let split = (bytes / 4).min(500_000).to_string();
    let whole = pftrace::intervals(&whole);
    traced.convert("perfetto", "b.pftrace", &["--split", &split]);
    let parts: Vec<_> = (1..)
        .map(|number| traced.path(&format!("b-{number:03}.pftrace")))
        .take_while(|path| path.exists())
        .collect();
    assert!(parts.len() > 2, "{} parts", parts.len());
    assert!(!traced.path("b.pftrace").exists());

    // Where one ends the next begins, and each shows what the whole shows of its time.
    let parts: Vec<Vec<Interval>> = parts
        .iter()
        .map(|path| {
            query(path, &[]);
            assert!(fs::metadata(path).expect("a file").len() < 1_500_000);
            pftrace::intervals(path)
        })
        .collect();
    let mut begin = 0;
    for part in &parts {
        let end = part.iter().map(|slice| slice.end).max().expect("slices");
        same(part, &cut(&whole, begin, end), "a part");
        begin = end;
    }
}

/// Threads of nested regions are ahead of others at times.
#[test]
fn slices_end_in_each_file_of_a_series() {
    let traced = Traced::program("tests/programs/nearly_everything.c", &["3", "10"]);
    traced.convert("chrome", "b.json", &["--split", "100K"]);
    let parts = (1..).map(|number| traced.path(&format!("b-{number:03}.json")));
    let (mut end, mut number_of_parts) = (0, 0);
    for part in parts.take_while(|path| path.exists()) {
        let times = "select min(ts) begin, max(ts + dur) end from slice where category != 'omptrace'";
        let rows = query(&part, &[times]);
        assert!(number(&rows[0], "begin") >= end, "{}", part.display());
        end = number(&rows[0], "end");
        number_of_parts += 1;
    }
    assert!(number_of_parts > 2, "{number_of_parts} parts");
}

#[test]
fn a_series_of_files_says_how_many_arrows_it_cuts() {
    let traced = Traced::example("task_tree", &["9", "6"]);
    const ARROWS: &str = "select count(*) n from flow";
    for (format, extension) in [("perfetto", "pftrace"), ("chrome", "json")] {
        let whole = traced.convert(format, &format!("a.{extension}"), &[]);
        let bytes = fs::metadata(&whole).expect("a file").len();
        let all = number(&query(&whole, &[ARROWS])[0], "n");
        let out = traced.path(&format!("b.{extension}"));
        let mut convert = omptrace([
            Path::new("convert"),
            traced.trace(),
            Path::new("--to"),
            Path::new(format),
            Path::new("--split"),
            Path::new(&(bytes / 4).to_string()),
            Path::new("-o"),
            &out,
        ]);
        let said = String::from_utf8(std::mem::take(&mut convert.stderr)).expect("UTF-8");
        assert!(convert.status.success(), "{said}");
        let cut = said
            .lines()
            .find_map(|line| line.split_once("arrows from one file to another were left out: "))
            .map_or(0, |(_, count)| count.replace(',', "").parse().expect("a number"));
        let parts: Vec<_> = (1..)
            .map(|number| traced.path(&format!("b-{number:03}.{extension}")))
            .take_while(|path| path.exists())
            .collect();
        assert!(parts.len() > 2, "{} parts", parts.len());
        let (mut shown, mut ends) = (0, 0);
        for part in &parts {
            let notes = "select cast(substr(name, instr(name, ':') + 1) as int) n from slice \
                         where name glob 'arrows from or to other files of the series were left out: *'";
            let rows = query(part, &[ARROWS, notes]);
            shown += number(&rows[0], "n");
            ends += rows[1].iter().map(|row| row["n"].as_u64().expect("a number")).sum::<u64>();
        }
        assert_eq!(shown + cut, all, "{format}: {cut} cut of {all}");
        assert_eq!(ends, 2 * cut, "{format}");
        assert!(cut > 0 && cut < all, "{format}: {cut} cut of {all}");
    }
}

#[test]
fn arguments_are_chosen() {
    let traced = Traced::example("stencil", &["100", "3"]);
    let keys = "select count(*) n from slice join args using (arg_set_id) \
                where key like 'debug.%' or key like 'source.%'";
    let ids = "select count(*) n from slice join args using (arg_set_id) where key = 'debug.task_data'";
    let of = |choice: &str| {
        let path = traced.convert("perfetto", "a.pftrace", &["--args", choice]);
        let results = query(&path, &[keys, ids]);
        (number(&results[0], "n"), number(&results[1], "n"))
    };
    let (all, ids_of_all) = of("all");
    let (few, ids_of_few) = of("ids");
    assert_eq!(of("none"), (0, 0));
    assert_eq!(ids_of_all, ids_of_few);
    assert!(0 < few && few < all, "{few} of {all}");
}
