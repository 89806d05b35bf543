//! Tables in Parquet files, as DuckDB and Spark read them: their sums are those of `stats`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, omptrace_program, python, python_package, root};
use omptrace_tests::trace::{Traces, omptrace};
use serde_json::json;

/// Traces of many runtimes, which come with the sources.
fn historic() -> PathBuf {
    root().join("viewer-export/tests/historic")
}

/// Runs a file of the Python package's tests.
fn python_tests(file: &str, environment: &[(&str, &OsStr)]) {
    let output = Command::new(python())
        .arg(root().join("python/tests").join(file))
        .env("PYTHONPATH", python_package())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OMPTRACE_PROGRAM", omptrace_program())
        .envs(environment.iter().copied())
        .output()
        .expect("Python can be run");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file}: {words}");
    assert!(words.contains("\nOK\n"), "{file}: {words}");
}

#[test]
fn duckdb_and_stats_have_the_same_numbers() {
    let programs = [
        ("tests/programs/nearly_everything.c", &[][..]),
        ("tests/programs/locks.c", &[]),
        ("tests/programs/nested.c", &[]),
        ("tests/programs/tasks.c", &["2", "8"]),
        ("tests/programs/pause_resource.c", &[]),
    ];
    let traces = Traces::folder();
    for (source, arguments) in programs {
        let program = compile(source, Compiler::Clang22, &[]);
        traces.record(
            Command::new(program).args(arguments).env("OMP_NUM_THREADS", "2").env("OMP_CANCELLATION", "true"),
        );
    }
    // Each alone, and all as a job.
    let files = traces.files();
    let mut jobs: Vec<Vec<&Path>> = vec![files.iter().map(PathBuf::as_path).collect()];
    jobs.extend(files.iter().map(|file| vec![file.as_path()]));
    let historic = historic();
    jobs.push(vec![&historic]);
    let program = compile("examples/stencil.c", Compiler::Clang22, &[]);
    python_tests(
        "test_dataset.py",
        &[
            ("OMPTRACE_TEST_JOBS", json!(jobs).to_string().as_ref()),
            ("OMPTRACE_TEST_PROGRAM", program.as_ref()),
        ],
    );
}

/// Executors are processes of their own, of which one dies.
#[test]
fn spark_and_stats_have_the_same_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let traces = folder.path().join("traces");
    fs::create_dir(&traces).expect("a folder");
    let entries = fs::read_dir(historic()).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "omptrace"));
    for (copy, file) in files.iter().cycle().take(200).enumerate() {
        fs::copy(file, traces.join(format!("rank{copy}.omptrace"))).expect("can be copied");
    }
    python_tests("test_spark.py", &[("OMPTRACE_TEST_TRACES", traces.as_ref())]);
}

/// Converts the historic traces to `folder`.
fn to_parquet(folder: &Path, options: &[&str]) -> Output {
    let words = ["convert", "--to", "parquet", "-o"].map(OsStr::new);
    let inputs = historic();
    let options = options.iter().map(OsStr::new);
    let inputs = [folder.as_os_str(), inputs.as_os_str()];
    omptrace(words.into_iter().chain(inputs).chain(options))
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = PathBuf::from(path.file_name().expect("a name"));
        match path.is_dir() {
            true => {
                let inner = files(&path).into_iter();
                found.extend(inner.map(|(path, bytes)| (name.join(path), bytes)));
            }
            false => {
                found.insert(name, fs::read(path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn files_are_the_same_for_any_number_of_threads_and_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let [alone, threads, parts] = ["alone", "threads", "parts"].map(|name| folder.path().join(name));
    for (folder, options) in [
        (&alone, &["--jobs", "1"][..]),
        (&threads, &["--jobs", "8"]),
        (&parts, &["--part", "2/3"]),
        (&parts, &["--part", "3/3"]),
        // Another did it before, and died.
        (&parts, &["--part", "1/3"]),
        (&parts, &["--part", "1/3"]),
    ] {
        let output = to_parquet(folder, options);
        assert!(output.status.success(), "{output:?}");
    }
    let expected = files(&alone);
    assert!(expected.len() > 200, "{}", expected.len());
    assert!(files(&threads) == expected);
    assert!(files(&parts) == expected);
    // An export takes the place of an older one.
    let output = to_parquet(&parts, &["--sums-only"]);
    assert!(output.status.success(), "{output:?}");
    assert!(files(&parts).len() < expected.len());
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn what_is_no_data_set_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = folder.path().join("table=mine.txt");
    fs::write(&mine, "mine").expect("can be written");
    let output = to_parquet(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read(&mine).expect("a file"), b"mine");
}

#[test]
fn selections_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("tables");
    for options in [
        &["--window", "1s..2s"][..],
        &["--thread", "0"],
        &["--min-duration", "1us"],
        &["--critical-path"],
        &["--split", "1M"],
        &["--part", "3/2"],
        &["--run", "a/b"],
    ] {
        let output = to_parquet(&target, options);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {output:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        let is_named = words.contains(options[0]) || words.contains("--split does not work with");
        assert!(is_named, "{words}");
        assert!(!target.exists());
    }
    let words = ["convert", "--part", "1/2", "--to", "text"].map(OsStr::new);
    let output = omptrace(words.into_iter().chain([historic().as_os_str()]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// For each table, the number of rows and a sum of what is in them.
const SUMS: &str = "
import duckdb, json, pathlib, sys
def sums(folder):
    for table in sorted(pathlib.Path(folder).glob('table=*')):
        rows = duckdb.execute(f\"SELECT count(*), sum(hash(t)::HUGEINT)::VARCHAR FROM read_parquet('{table}/**/*.parquet') AS t\")
        yield [table.name, *rows.fetchone()]
print(json.dumps([list(sums(folder)) for folder in sys.argv[1:]]))
";

#[test]
fn parts_of_one_process_have_each_row_once() {
    let traces = Traces::folder();
    let program = compile("tests/programs/one_creator.c", Compiler::Clang22, &["-O2"]);
    // How well events compress depends on how they happen to fall: without that there are always megabytes to divide.
    traces.record(Command::new(program).env("OMP_NUM_THREADS", "2").env("OMPTRACE_COMPRESS", "off"));
    let trace = traces.only();
    let third = fs::metadata(&trace).expect("a file").len().div_ceil(3);
    let convert = |folder: &Path, options: &[&str]| {
        let words = ["convert", "--to", "parquet", "-o"].map(OsStr::new);
        let options = options.iter().map(OsStr::new);
        let inputs = [folder.as_os_str(), trace.as_os_str()];
        omptrace(words.into_iter().chain(inputs).chain(options))
    };
    let listed = omptrace(
        ["info", "--splits", &third.to_string(), "--json"]
            .map(OsStr::new)
            .into_iter()
            .chain([trace.as_os_str()]),
    );
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).expect("JSON is UTF-8");
    let parts = listed.lines().map(|line| {
        let part: serde_json::Value = serde_json::from_str(line).expect("an object per line");
        part["part"].as_str().expect("a text").to_owned()
    });
    let parts: Vec<String> = parts.collect();
    assert_eq!(parts.len(), 3, "{listed}");

    let folder = tempfile::tempdir().expect("a folder");
    let [whole, divided] = ["whole", "divided"].map(|name| folder.path().join(name));
    assert!(convert(&whole, &[]).status.success());
    for part in &parts {
        let output = convert(&divided, &["--part", part]);
        assert!(output.status.success(), "{output:?}");
    }
    let slices = files(&divided).into_keys();
    let slices = slices.filter(|file| file.starts_with("table=slices"));
    assert!(slices.count() > 1);
    let output = Command::new(python())
        .args(["-c", SUMS])
        .args([&whole, &divided])
        .env("PYTHONPATH", python_package())
        .output()
        .expect("Python can be run");
    assert!(output.status.success(), "{output:?}");
    let sums: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(sums[0], sums[1]);

    // Rows that are there in other parts would be there twice.
    let output = convert(&divided, &["--part", "1/1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("divided into"), "{words}");
}
