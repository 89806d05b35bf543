//! Compares this crate with every `omp-tools.h` on this machine: sizes, offsets and types of fields, signatures,
//! values.
//!
//! Each fact is a C declaration, `long long fact_N = EXPRESSION;`, whose value is compared with the one in Rust. If an
//! expression does not compile, the header lacks something. Headers are older than this crate; each absence must have
//! its row in [`ABSENCES`].

mod c_type;
mod facts;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use facts::{Fact, facts};

/// Facts that some headers lack. A different value is never accepted.
struct Absence {
    why: &'static str,
    /// The LLVM version from which on the header must have them.
    present_from: u32,
    /// Patterns: a [`Fact::name`], or the start of several names followed by `*`.
    facts: &'static [&'static str],
}

/// Absent from the headers of all LLVM versions up to 22.
const NOT_YET: u32 = u32::MAX;

const ABSENCES: &[Absence] = &[
    Absence {
        why: "OpenMP 5.2: kinds of loops, and chunks",
        present_from: 15,
        facts: &[
            "ompt_work_loop_*",
            "ompt_dispatch_ws_loop_chunk",
            "ompt_dispatch_taskloop_chunk",
            "ompt_dispatch_distribute_chunk",
            "ompt_dispatch_chunk_t*",
        ],
    },
    Absence {
        why: "named wstype up to OpenMP 5.1",
        present_from: 15,
        facts: &["ompt_record_work_t.work_type*"],
    },
    Absence {
        why: "OpenMP 5.2: omp_all_memory",
        present_from: 19,
        facts: &["ompt_dependence_type_out_all_memory", "ompt_dependence_type_inout_all_memory"],
    },
    Absence {
        why: "defined by the tool; older headers do not declare it",
        present_from: 19,
        facts: &["ompt_start_tool"],
    },
    Absence {
        why: "OpenMP 5.1 and 5.2, forgotten by LLVM",
        present_from: NOT_YET,
        facts: &[
            "ompt_record_ompt_t.record.error*",
            "ompt_target_map_flag_always",
            "ompt_target_map_flag_present",
            "ompt_target_map_flag_close",
            "ompt_target_map_flag_shared",
        ],
    },
    Absence {
        why: "OpenMP 6.0",
        present_from: NOT_YET,
        facts: &[
            "ompt_get_buffer_limits_t",
            "ompt_record_ompt_t.record.target_emi*",
            "ompt_record_ompt_t.record.target_data_op_emi*",
            "ompt_record_ompt_t.record.target_map_emi*",
            "ompt_record_ompt_t.record.target_submit_emi*",
            "ompt_state_work_free_agent",
            "ompt_state_work_induction",
            "ompt_subvolume_t*",
            "ompt_target_data_transfer",
            "ompt_target_data_transfer_async",
            "ompt_target_data_transfer_rect*",
            "ompt_target_data_memset*",
            "ompt_task_importing",
            "ompt_task_exporting",
            "ompt_work_workdistribute",
        ],
    },
    Absence {
        why: "declared by omp.h, which need not be beside omp-tools.h",
        present_from: NOT_YET,
        facts: &["omp_control_tool*"],
    },
];

#[test]
fn agrees_with_every_header() {
    let headers = headers();
    assert!(
        !headers.is_empty(),
        "no omp-tools.h found; `cargo xtask setup` fetches some, OMPTRACE_OMP_TOOLS_H names further folders"
    );
    let facts = facts();
    let unexplained: Vec<String> = headers
        .iter()
        .flat_map(|header| {
            let values = values(header, &facts);
            let version = llvm_version(header);
            facts
                .iter()
                .zip(values)
                .filter(|(fact, value)| match value {
                    Some(value) => *value != fact.rust,
                    None => !may_be_absent(&fact.name, version),
                })
                .map(|(fact, value)| {
                    let value = value.map_or("absent".into(), |value| value.to_string());
                    format!("{}: {} is {value}, in Rust {}", header.display(), fact.name, fact.rust)
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
}

#[test]
fn no_fact_is_listed_twice() {
    let mut seen = BTreeSet::new();
    for fact in facts() {
        assert!(seen.insert(fact.name.clone()), "{}", fact.name);
    }
}

#[test]
fn every_absence_is_about_facts() {
    let facts = facts();
    for absence in ABSENCES {
        for pattern in absence.facts {
            assert!(facts.iter().any(|fact| matches(pattern, &fact.name)), "{pattern} ({})", absence.why);
        }
    }
}

fn may_be_absent(fact: &str, version: Option<u32>) -> bool {
    ABSENCES.iter().any(|absence| {
        // A header of unknown version may be of any version.
        version.is_none_or(|version| version < absence.present_from)
            && absence.facts.iter().any(|pattern| matches(pattern, fact))
    })
}

fn matches(pattern: &str, fact: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => fact.starts_with(start),
        None => fact == pattern,
    }
}

/// Every `omp-tools.h` in the directories of compilers, of `cargo xtask setup`, and of the user.
fn headers() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("the workspace");
    let mut folders = subfolders(&root.join("target/tools/headers"));
    for llvm in subfolders(Path::new("/usr/lib")) {
        folders.extend(subfolders(&llvm.join("lib/clang")).iter().map(|version| version.join("include")));
    }
    for target in subfolders(Path::new("/usr/lib/gcc")) {
        folders.extend(subfolders(&target).iter().map(|version| version.join("include")));
    }
    if let Some(own) = env::var_os("OMPTRACE_OMP_TOOLS_H") {
        folders.extend(env::split_paths(&own));
    }
    let headers: BTreeSet<PathBuf> =
        folders.iter().filter_map(|folder| folder.join("omp-tools.h").canonicalize().ok()).collect();
    headers.into_iter().collect()
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect()
}

/// The major version in `.../llvm-19/...`, as named by Debian and by `cargo xtask setup`.
fn llvm_version(header: &Path) -> Option<u32> {
    let folder = header.iter().find_map(|folder| folder.to_str()?.strip_prefix("llvm-"))?;
    folder.split('.').next()?.parse().ok()
}

/// The value of each fact by a header; `None` for what the header does not have.
fn values(header: &Path, facts: &[Fact]) -> Vec<Option<i128>> {
    let mut present: Vec<bool> = vec![true; facts.len()];
    loop {
        let program = program(header, facts, &present);
        match run(&program) {
            Ok(output) => {
                let mut values = output.lines().map(|line| line.parse().expect("a number"));
                return present.iter().map(|present| present.then(|| values.next()).flatten()).collect();
            }
            Err(absent) => absent.into_iter().for_each(|fact| present[fact] = false),
        }
    }
}

/// A C program that prints the facts that are present, one per line.
fn program(header: &Path, facts: &[Fact], present: &[bool]) -> String {
    let mut program = format!(
        "#include <stdio.h>\n#include \"{}\"\n#if __has_include(\"{1}\")\n#include \"{1}\"\n#endif\n",
        header.display(),
        header.with_file_name("omp.h").display()
    );
    let present = || (0..facts.len()).filter(|&fact| present[fact]);
    for fact in present() {
        // The file's name in errors about this line is the fact's number.
        writeln!(program, "#line 1 \"{fact}\"\nlong long fact_{fact} = {};", facts[fact].c)
            .expect("a String");
    }
    program.push_str("int main(void) {\n");
    for fact in present() {
        writeln!(program, "printf(\"%lld\\n\", fact_{fact});").expect("a String");
    }
    program.push_str("return 0; }\n");
    program
}

/// Compiles and runs a program: what it prints, or the facts whose lines the compiler rejects.
fn run(program: &str) -> Result<String, BTreeSet<usize>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, binary) = (folder.path().join("facts.c"), folder.path().join("facts"));
    fs::write(&source, program).expect("the source");
    let compiler = env::var_os("CC").unwrap_or("cc".into());
    let compiled = Command::new(compiler)
        .args(["-w", "-std=gnu11", "-o"])
        .args([&binary, &source])
        .env("LC_ALL", "C")
        .output()
        .expect("a C compiler: install gcc or clang, or name one in CC");
    if compiled.status.success() {
        let ran = Command::new(&binary).output().expect("the program");
        return Ok(String::from_utf8(ran.stdout).expect("numbers"));
    }
    let errors = String::from_utf8_lossy(&compiled.stderr);
    let rejected: BTreeSet<usize> = errors
        .lines()
        .filter(|line| line.contains("error:"))
        .filter_map(|line| line.split(':').next()?.parse().ok())
        .collect();
    assert!(!rejected.is_empty(), "the compiler rejects the header itself:\n{errors}");
    Err(rejected)
}
