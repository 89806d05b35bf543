//! The times of constructs of GCC's programs: on libgomp alone, with the adapter, and on LLVM's runtime.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::omptrace::release;
use crate::process::{command, output, root, run};
use crate::result::Result;

use crate::bench::tools::Tools;

/// A way to run the program: its name, what is preloaded, and the tool.
struct Way {
    name: &'static str,
    preloaded: Option<PathBuf>,
    tool: Option<PathBuf>,
}

/// Nanoseconds of each construct, in the order of the program, by way.
type Times = Vec<(String, BTreeMap<&'static str, Vec<f64>>)>;

/// Measures `tests/benches/programs/gcc.c` in each way, one after the other, `rounds` times, and prints the least of each.
///
/// # Errors
/// The program cannot be built or run.
pub(crate) fn measure(folder: &Path, tools: &Tools, rounds: u32, threads: &[usize]) -> Result<()> {
    let program = folder.join("gcc");
    let source = root().join("tests/benches/programs/gcc.c");
    run(command("gcc", ["-O2", "-fopenmp", "-o"]).arg(&program).arg(source))?;
    let library = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name);
        tool.and_then(|tool| tool.library.clone())
    };
    let adapter = || Some(release().join("libomptgomp.so"));
    let llvm = || Some(crate::setup::tools::tools().join("runtimes/llvm-21/libomp.so.5"));
    let omptrace = library(crate::bench::tools::OMPTRACE);
    let way = |name, preloaded, tool| Way { name, preloaded, tool };
    let ways = [
        way("libgomp", None, None),
        way("adapter", adapter(), None),
        way("empty tool", adapter(), library(crate::bench::tools::EMPTY)),
        way("omptrace", adapter(), omptrace.clone()),
        way("LLVM", llvm(), None),
        way("LLVM, omptrace", llvm(), omptrace),
    ];
    let ways: Vec<Way> =
        ways.into_iter().filter(|way| way.preloaded.as_ref().is_none_or(|path| path.is_file())).collect();
    for &threads in threads {
        let mut times = Times::new();
        for _ in 0..rounds {
            for way in &ways {
                way.run(&program, threads, folder, &mut times)?;
            }
        }
        print!("{}", table(threads, &ways, &times));
    }
    Ok(())
}

impl Way {
    fn run(&self, program: &Path, threads: usize, folder: &Path, times: &mut Times) -> Result<()> {
        let mut command = Command::new(program);
        command
            .arg(threads.to_string())
            .env("OMPTRACE_OUTPUT", folder.join("gcc.omptrace"))
            .env_remove("OMP_TOOL_LIBRARIES")
            .envs(self.preloaded.iter().map(|path| ("LD_PRELOAD", path)));
        match &self.tool {
            Some(tool) => command.env("OMP_TOOL_LIBRARIES", tool),
            None => command.env("OMP_TOOL", "disabled"),
        };
        for line in String::from_utf8_lossy(&output(&mut command)?).lines() {
            let (construct, ns) = line.split_once(' ').ok_or("a line of two words")?;
            let ns: f64 = ns.parse()?;
            let known = times.iter_mut().find(|(name, _)| name == construct);
            let row = match known {
                Some((_, row)) => row,
                None => {
                    times.push((construct.to_owned(), BTreeMap::new()));
                    &mut times.last_mut().expect("it was pushed").1
                }
            };
            row.entry(self.name).or_default().push(ns);
        }
        Ok(())
    }
}

/// The least of each way: what else the machine does only adds.
fn table(threads: usize, ways: &[Way], times: &Times) -> String {
    let unit = if threads == 1 { "thread " } else { "threads" };
    let mut text = format!("\nGCC, {threads} {unit}, ns    ");
    for way in ways {
        let _ = write!(text, " {:>14}", way.name);
    }
    for (construct, row) in times {
        let _ = write!(text, "\n{construct:<22}");
        for way in ways {
            let all = row.get(way.name).into_iter().flatten();
            let least = all.copied().fold(f64::INFINITY, f64::min);
            let _ = write!(text, " {least:>14.1}");
        }
    }
    text + "\n"
}
