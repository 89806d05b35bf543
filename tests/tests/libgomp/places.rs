//! Constructs in GCC's code are at the lines of their directives: a table of programs whose sources say which these are (`@construct`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, root};
use omptrace_tests::trace::omptrace;
use serde_json::Value;
use tempfile::TempDir;

/// The constructs that sources mark.
const CONSTRUCTS: [&str; 6] = ["parallel", "task", "taskloop", "single", "sections", "for"];

const PROGRAMS: [(&str, Compiler, &[&str]); 3] = [
    ("gcc_places.c", Compiler::Gcc, &[]),
    ("gcc_places.cc", Compiler::Gcc, &["-lstdc++"]),
    ("gcc_places.f90", Compiler::Gfortran, &[]),
];

type Place = (String, u64);

/// A source, compiled in a folder of its own: nobody changes it after that.
struct Built {
    folder: TempDir,
    source: &'static str,
}

impl Built {
    fn new((source, compiler, further): (&'static str, Compiler, &[&str]), level: &str) -> Built {
        let folder = TempDir::new().expect("a folder");
        for file in [source, "gcc_places.h"] {
            let from = root().join("tests/programs").join(file);
            fs::copy(from, folder.path().join(file)).expect("a source");
        }
        let done = Command::new(compiler.path())
            .current_dir(&folder)
            .args(["-g", "-fopenmp", "-o", "program"])
            .args(level.split(' '))
            .arg(folder.path().join(source))
            .args(further)
            .output()
            .expect("a compiler");
        assert!(done.status.success(), "{source} {level}: {done:?}");
        Built { folder, source }
    }

    /// The constructs that the source marks.
    fn marked(&self) -> BTreeSet<Place> {
        let text = fs::read_to_string(self.folder.path().join(self.source)).expect("a source");
        let lines = (1..).zip(text.lines());
        let marks = lines.filter(|(_, line)| line.contains("omp ")).flat_map(|(number, line)| {
            let marks = line.split('@').skip(1).filter_map(|mark| mark.split_whitespace().next());
            marks.map(move |mark| (mark.to_owned(), number)).collect::<Vec<_>>()
        });
        marks.collect()
    }

    /// The rows that the constructs have.
    fn rows(&self) -> Vec<Value> {
        let (trace, program) = (self.folder.path().join("t.omptrace"), self.folder.path().join("program"));
        // Of an earlier recording.
        let _ = fs::remove_file(&trace);
        let command = ["record", "--quiet", "-o"].map(OsStr::new).into_iter();
        let command = command.chain([trace.as_os_str(), OsStr::new("--"), program.as_os_str()]);
        let recorded = omptrace(command);
        assert!(recorded.status.success(), "{}: {recorded:?}", self.source);
        let stats = ["stats", "--json", "--all"].map(OsStr::new).into_iter();
        let stats = omptrace(stats.chain([trace.as_os_str()]));
        let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
        let rows = stats["constructs"].as_array().expect("a list").iter();
        let is_marked = |row: &&Value| {
            let is_wake_up = row["name"].as_str().is_some_and(|name| name.contains("(wake-up)"));
            !is_wake_up && CONSTRUCTS.iter().any(|construct| row["construct"] == *construct)
        };
        rows.filter(is_marked).cloned().collect()
    }

    /// The rows of constructs that are said to be at a line.
    fn found(&self, rows: &[Value]) -> Vec<Place> {
        let at = rows.iter().filter(|row| row["position"] == "at");
        let places = at.map(|row| {
            let file = Path::new(row["file"].as_str().expect("a file"));
            assert_eq!(file.file_name(), Some(OsStr::new(self.source)), "{row}");
            (row["construct"].as_str().expect("a name").to_owned(), row["line"].as_u64().expect("a line"))
        });
        places.collect()
    }
}

#[test]
fn each_construct_is_at_its_directive_and_has_a_row_of_its_own() {
    for level in ["-O0", "-O1", "-O2", "-O3", "-O2 -flto"] {
        let (mut right, mut all) = (0, 0);
        for program in PROGRAMS {
            let built = Built::new(program, level);
            let rows = built.rows();
            let (marked, found) = (built.marked(), built.found(&rows));
            let distinct: BTreeSet<Place> = found.iter().cloned().collect();
            // A line is right, or it is not said to be the construct's.
            let wrong: Vec<_> = distinct.difference(&marked).collect();
            assert!(wrong.is_empty(), "{level} {}: {wrong:?}", built.source);
            // Instances of a template are functions of their own.
            let at = rows.iter().filter(|row| row["position"] == "at");
            let apart: BTreeSet<_> = at
                .map(|row| (row["construct"].to_string(), row["line"].as_u64(), row["function"].to_string()))
                .collect();
            assert_eq!(apart.len(), found.len(), "{level} {}: {found:?}", built.source);
            right += marked.intersection(&distinct).count();
            all += marked.len();
        }
        assert!(all > 46 && right + 3 >= all, "{level}: {right} of {all}");
    }
}

/// What GCC makes a function of is so without the source, too. The others are near the line of an earlier statement, each with a row.
#[test]
fn without_the_source_the_places_of_calls_are_not_exact() {
    for level in ["-O0", "-O2"] {
        let built = Built::new(PROGRAMS[0], level);
        let source = built.folder.path().join(built.source);
        let marked = built.marked();
        fs::remove_file(source).expect("a source");
        let rows = built.rows();
        let has_function = |(construct, _): &&Place| ["parallel", "task", "taskloop"].contains(&&**construct);
        let of_functions: BTreeSet<&Place> = marked.iter().filter(has_function).collect();
        let found = built.found(&rows);
        let found: BTreeSet<&Place> = found.iter().filter(|place| place.0 != "for").collect();
        assert_eq!(found, of_functions, "{level}");
        let near: Vec<&Value> = rows.iter().filter(|row| row["position"] == "near").collect();
        let singles = near.iter().filter(|row| row["construct"] == "single");
        let codes: BTreeSet<&str> = singles.map(|row| row["code"].as_str().expect("an address")).collect();
        let marked_singles = marked.iter().filter(|(construct, _)| construct == "single").count();
        assert_eq!(codes.len(), marked_singles, "{level}: {near:?}");
        assert!(
            near.iter()
                .all(|row| row["name"].as_str().is_some_and(|name| name.contains(" near @gcc_places.c:")))
        );
        // What is inlined before a call is no place of it.
        assert!(
            near.iter().all(|row| row["file"].as_str().is_some_and(|file| file.ends_with(".c"))),
            "{near:?}"
        );
    }
}

/// Functions that GCC made of constructs have addresses where they have no lines.
#[test]
fn regions_of_one_function_are_told_apart_without_debug_information() {
    let built = Built::new(PROGRAMS[0], "-O1 -g0");
    let rows = built.rows();
    let regions = rows.iter().filter(|row| row["construct"] == "parallel");
    let of_branches: Vec<&Value> = regions.filter(|row| row["function"] == "branches").collect();
    let codes: BTreeSet<_> = of_branches.iter().map(|row| row["code"].as_str()).collect();
    assert_eq!((of_branches.len(), codes.len()), (3, 3), "{of_branches:?}");
    let names = of_branches.iter().map(|row| row["name"].as_str().expect("a name"));
    assert!(names.into_iter().all(|name| name.contains("@branches (program+0x")), "{of_branches:?}");
}
