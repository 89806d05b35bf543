//! Programs of GCC's with and without the adapter: the same output, the same end, and no fault of the tools interface.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::omptrace::{build, release};
use crate::process::target;
use crate::result::Result;

/// Compares runs of GCC's programs on libgomp with those that `libomptgomp.so` observes.
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// Directory with programs, as single source files in C, C++ or Fortran, or as executables
    folder: PathBuf,
    /// Use only every Nth program
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
}

/// How long a program may take.
const MAX_SECONDS: &str = "120";

/// How often a program is run again, to see whether its output is luck.
const MAX_RUNS: u32 = 4;

/// The compiler of a source, by the end of its name.
const COMPILERS: &[(&str, &str)] = &[
    ("c", "gcc"),
    ("C", "g++"),
    ("cc", "g++"),
    ("cpp", "g++"),
    ("f", "gfortran"),
    ("F", "gfortran"),
    ("f90", "gfortran"),
    ("F90", "gfortran"),
    ("f03", "gfortran"),
];

/// A program, and the variables that it is to be run with.
struct Program {
    path: PathBuf,
    variables: Vec<(String, String)>,
}

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Same,
    DoesNotCompile,
    /// Its output differs from run to run, also without the adapter.
    SameStatus,
    Differs,
    /// A trace that `omptrace check` finds fault with.
    UnsoundTrace,
    BreaksRules,
}

/// Compares all programs of the folder, and prints those that differ.
///
/// # Errors
/// There is one that differs, or the folder cannot be read.
pub(crate) fn run(arguments: &Compare) -> Result<()> {
    build()?;
    let work = target().join("compare");
    fs::create_dir_all(&work)?;
    let mut files: Vec<PathBuf> = fs::read_dir(&arguments.folder)
        .map_err(|error| format!("{}: {error}", arguments.folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut counts: BTreeMap<Outcome, u32> = BTreeMap::new();
    for file in files.iter().step_by(arguments.every as usize) {
        let Some(program) = program(file, &work)? else {
            continue;
        };
        let outcome = match program {
            Some(program) => compare(&program, &work)?,
            None => Outcome::DoesNotCompile,
        };
        if outcome >= Outcome::Differs {
            println!("{outcome:?}: {}", file.display());
        }
        *counts.entry(outcome).or_default() += 1;
    }
    println!("{counts:?}");
    match counts.keys().any(|outcome| *outcome >= Outcome::Differs) {
        true => Err("programs differ".into()),
        false => Ok(()),
    }
}

/// The program of a file: `None` where it is none, `Some(None)` where it does not compile.
fn program(file: &Path, work: &Path) -> Result<Option<Option<Program>>> {
    use std::os::unix::fs::PermissionsExt;

    let end = file.extension().and_then(|end| end.to_str());
    let compiler = COMPILERS.iter().find(|(of, _)| end == Some(of));
    let Some((_, compiler)) = compiler else {
        let metadata = fs::metadata(file)?;
        let is_program = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        return Ok(is_program.then(|| Some(Program { path: file.to_owned(), variables: Vec::new() })));
    };
    let source = String::from_utf8_lossy(&fs::read(file)?).into_owned();
    // Directives of DejaGnu's in GCC's own tests: those that are only compiled, options, variables.
    if source.contains("dg-do compile") || source.contains("dg-do link") {
        return Ok(None);
    }
    let quoted = |directive: &str| -> Vec<Vec<String>> {
        let lines = source.lines().filter(|line| line.contains(directive));
        let words = |line: &str| -> Option<Vec<String>> {
            let (_, rest) = line.split_once(directive)?;
            let (name, rest) = rest.split_once('"')?;
            let (value, rest) = rest.split_once('"')?;
            // With a condition behind it, it is for some machines only.
            let is_general = rest.trim_start().starts_with('}');
            is_general.then(|| vec![name.trim().to_owned(), value.to_owned()])
        };
        lines.filter_map(words).collect()
    };
    let options: Vec<String> = ["dg-options", "dg-additional-options"]
        .into_iter()
        .flat_map(quoted)
        .flat_map(|words| words[1].split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let path = work.join("program");
    let mut compile = Command::new(compiler);
    compile
        .args(["-O1", "-g", "-fopenmp", "-w"])
        .args(options)
        .arg(file)
        .arg("-o")
        .arg(&path)
        .arg("-lm")
        .current_dir(work);
    if !compile.output()?.status.success() {
        return Ok(Some(None));
    }
    let variables = quoted("dg-set-target-env-var").into_iter();
    let variables = variables.filter_map(|words| <[String; 2]>::try_from(words).ok());
    Ok(Some(Some(Program { path, variables: variables.map(|[name, value]| (name, value)).collect() })))
}

/// Ends what follows when it takes too long.
fn limited() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", MAX_SECONDS]);
    command
}

fn compare(program: &Program, work: &Path) -> Result<Outcome> {
    let expected = program.run(&mut limited(), work)?;
    let report = work.join("report");
    let _absent = fs::remove_file(&report);
    let mut checked = limited();
    checked
        .arg("env")
        .arg(variable("LD_PRELOAD", &release().join("libomptgomp.so")))
        .arg(variable("OMP_TOOL_LIBRARIES", &release().join("libomptconformance.so")))
        .arg(variable("OMPT_CONFORMANCE_OUTPUT", &report));
    let checked = program.run(&mut checked, work)?;
    let trace = work.join("program.omptrace");
    let _absent = fs::remove_file(&trace);
    let mut recorded = limited();
    recorded
        .arg(release().join("omptrace"))
        .args(["record", "--quiet", "--libgomp", "observe", "-o"])
        .arg(&trace)
        .arg("--");
    let recorded = program.run(&mut recorded, work)?;
    if status(&checked) != status(&expected) || status(&recorded) != status(&expected) {
        return Ok(Outcome::Differs);
    }
    // One that is killed or calls _exit leaves no report.
    let faults = fs::read_to_string(&report).unwrap_or_default();
    if !faults.is_empty() && !faults.contains(", 0 faults\n") {
        print!("{faults}");
        return Ok(Outcome::BreaksRules);
    }
    // What a program that crashes or aborts leaves open has no end in its trace, either.
    if trace.is_file() && expected.status.success() {
        let check = Command::new(release().join("omptrace")).arg("check").arg(&trace).output()?;
        if !check.status.success() {
            print!("{}", String::from_utf8_lossy(&check.stdout));
            return Ok(Outcome::UnsoundTrace);
        }
    }
    if recorded.stdout == expected.stdout && checked.stdout == expected.stdout {
        return Ok(Outcome::Same);
    }
    for _ in 0..MAX_RUNS {
        let again = program.run(&mut limited(), work)?;
        if again.stdout != expected.stdout {
            return Ok(Outcome::SameStatus);
        }
    }
    Ok(Outcome::Differs)
}

fn variable(name: &str, value: &Path) -> String {
    format!("{name}={}", value.display())
}

/// The status as a shell has it: 128 and the number of the signal.
fn status(output: &Output) -> i32 {
    let of_signal = || output.status.signal().map_or(-1, |signal| 128 + signal);
    output.status.code().unwrap_or_else(of_signal)
}

impl Program {
    /// Runs it as the last word of `command`.
    fn run(&self, command: &mut Command, work: &Path) -> Result<Output> {
        command.arg(&self.path).current_dir(work);
        command.stdin(Stdio::null());
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        Ok(command.envs(variables).output()?)
    }
}
