//! Whether a program can be traced, why not, and what to do about it. `doctor` reports it before a run, and `record`
//! after a run without a trace.

use std::env;

use omptrace_runtimes::Vendor;
use serde::Serialize;

use crate::record::advice::{INSIST, INSTALL_LIBOMP, KEEP_PRELOAD, OBSERVE};
use crate::record::child_process::End;
use crate::record::crash_hints;
use crate::record::find_tracer;
use crate::record::libgomp::{Decision, StandIn};
use crate::system::executable::{Kind, Program, RuntimeNeeded};
use crate::system::library_search::Loader;
use crate::system::openmp_runtime;
use crate::system::processor;
use crate::system::symbol_versions;

/// The diagnosis of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnosis {
    /// Whether it can be traced.
    pub(crate) traceable: Traceable,
    /// The reason, as a sentence without full stop.
    pub(crate) reason: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

/// Whether a program can be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Traceable {
    /// Yes: its OpenMP runtime has a tools interface.
    Yes,
    /// Yes, on GCC's runtime, to which the adapter adds a tools interface.
    Observed,
    /// Yes, on LLVM's runtime instead of GCC's.
    Replaced,
    /// Unknown from its file, because it starts other programs or loads libraries later.
    Unknown,
    /// No.
    No,
}

/// Why a runtime cannot replace libgomp, as the end of a sentence.
pub(crate) fn cannot_replace(stand_in: &StandIn) -> String {
    format!(
        "{} lacks functions that the program calls: {}",
        stand_in.libomp.display(),
        symbol_versions::described(&stand_in.lacking)
    )
}

/// How to trace runtimes that do not look for a tool and that are not known before the run.
const WITH_AN_OLD_RUNTIME: &str =
    "if the program's OpenMP runtime is older than OpenMP 5.0, record with --preload";

impl Diagnosis {
    fn new(traceable: Traceable, reason: impl Into<String>) -> Self {
        Diagnosis { traceable, reason: reason.into(), remedy: None }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Diagnosis { remedy: Some(remedy.into()), ..self }
    }

    /// Diagnoses a program. `libgomp`: the decision about libgomp, if the program needs it.
    pub(crate) fn of(program: &Program, libgomp: &Decision) -> Diagnosis {
        let path = program.path.display();
        if program.privileged {
            return Diagnosis::new(
                Traceable::No,
                format!(
                    "{path} runs with the privileges of another user or group (set-user-ID), so the loader ignores libraries that environment variables such as LD_PRELOAD list"
                ),
            )
            .remedy("trace a copy of the program that does not have these privileges, and run the copy as that user");
        }
        match &program.kind {
            Kind::Unreadable(error) => {
                Diagnosis::new(Traceable::Unknown, format!("{path} cannot be read: {error}"))
            }
            Kind::Foreign(machine) => Diagnosis::new(
                Traceable::No,
                format!("{path} is a program for {machine}, but libomptrace.so is for {}", env::consts::ARCH),
            )
            .remedy("build the program for this machine"),
            Kind::Musl => Diagnosis::new(
                Traceable::No,
                format!("{path} is linked with the C library musl, but the tracer's libraries are for glibc"),
            )
            .remedy("build the program for glibc, for example in a Debian or Fedora container instead of an Alpine one"),
            Kind::Script { .. } if program.runs_packages() => Diagnosis::new(
                Traceable::Unknown,
                format!("{path} is a script; omptrace cannot determine which OpenMP runtime is loaded by the packages that the script imports"),
            ),
            Kind::Script { interpreter } => Diagnosis::new(
                Traceable::Unknown,
                format!("{path} is a script ({interpreter}); check each program that the script starts"),
            )
            .remedy(format!(
                "run `omptrace doctor` on the program that uses OpenMP; {}; {WITH_AN_OLD_RUNTIME}",
                of_gcc(libgomp)
            )),
            Kind::Static { openmp: true } => Diagnosis::new(
                Traceable::No,
                format!("{path} is linked statically, including its OpenMP runtime, so the program cannot load a tool"),
            )
            .remedy("link the program dynamically (without -static)"),
            Kind::Static { openmp: false } => Diagnosis::new(
                Traceable::No,
                format!("{path} is linked statically and contains no OpenMP runtime that could load a tool"),
            )
            .remedy("if the program uses OpenMP, link it dynamically (without -static)"),
            Kind::Dynamic { .. } if openmp_runtime::finds_its_own_tool(&program.path) => Diagnosis::new(
                Traceable::No,
                format!(
                    "{path} contains an OpenMP runtime with the tools interface of 2014, which calls only the runtime's own built-in tool, and that tool does nothing"
                ),
            )
            .remedy("link the runtime dynamically (clang: without -static-openmp)"),
            Kind::Dynamic { .. } if program.needs_preloaded_tool() => Diagnosis::new(
                Traceable::Yes,
                format!(
                    "{path}, or a library that it uses, contains an OpenMP runtime with a tools interface older than OpenMP 5.0, so `omptrace record` preloads the tracer"
                ),
            ),
            Kind::Dynamic {
                runtimes,
                openmp_inside,
                ..
            } if runtimes.is_empty() => without_runtime(program, *openmp_inside),
            Kind::Dynamic { .. } => with_runtimes(program, libgomp),
        }
    }
}

/// What happens with GCC programs and libraries that are started or loaded later.
fn of_gcc(libgomp: &Decision) -> &'static str {
    match libgomp {
        Decision::ObserveBy(_) => KEEP_PRELOAD,
        _ if processor::THIS.observes_libgomp() => {
            "if the program was built by GCC, record with --libgomp observe"
        }
        _ => {
            "if the program was built by GCC, it can be traced on this CPU only if it runs on LLVM's OpenMP runtime"
        }
    }
}

fn without_runtime(program: &Program, openmp_inside: bool) -> Diagnosis {
    let path = program.path.display();
    if openmp_inside && openmp_runtime::has_tools_interface(&program.path) {
        Diagnosis::new(Traceable::Yes, format!("{path} contains an OpenMP runtime with a tools interface"))
    } else if openmp_inside {
        Diagnosis::new(
            Traceable::No,
            format!("{path} contains an OpenMP runtime in which no tools interface was found"),
        )
        .remedy("link the runtime dynamically (clang: without -static-openmp; GCC: without -static-libgomp)")
    } else if program.runs_packages() {
        Diagnosis::new(
            Traceable::Unknown,
            format!("{path} itself needs no OpenMP runtime, but packages that it imports may load one"),
        )
    } else {
        Diagnosis::new(
            Traceable::Unknown,
            format!(
                "{path} and its libraries do not use OpenMP, but programs that it starts, or libraries that it loads while it runs, may use OpenMP"
            ),
        )
        .remedy("to use OpenMP, compile and link the program with -fopenmp; to check a program that it starts, run: omptrace doctor PROGRAM")
    }
}

fn with_runtimes(program: &Program, libgomp: &Decision) -> Diagnosis {
    let path = program.path.display();
    let missing = program.runtimes().iter().find(|runtime| runtime.path.is_none());
    if let Some(missing) = missing {
        return Diagnosis::new(
            Traceable::No,
            format!("{path} needs {}, which the loader does not find", missing.name),
        )
        .remedy("add the directory of this library to LD_LIBRARY_PATH, or load the environment module that does so");
    }
    if program.needs_libgomp() {
        let needs = format!("{path} needs GCC's libgomp, which has no tools interface");
        return match libgomp {
            Decision::ObserveBy(adapter) => {
                Diagnosis::new(Traceable::Observed, format!("{needs}; {} adds one", adapter.display()))
            }
            Decision::ReplaceBy(stand_in) => Diagnosis::new(
                Traceable::Replaced,
                format!("{needs}; the program can run on {} instead", stand_in.libomp.display()),
            ),
            Decision::CannotReplaceBy(stand_in) => {
                Diagnosis::new(Traceable::No, format!("{needs}, and {}", cannot_replace(stand_in)))
                    .remedy(INSIST)
            }
            Decision::Keep => Diagnosis::new(Traceable::No, needs).remedy(OBSERVE),
            Decision::NothingInstalled => Diagnosis::new(Traceable::No, needs).remedy(INSTALL_LIBOMP),
        };
    }
    let paths =
        || program.runtimes().iter().filter_map(|needed| Some((needed.runtime, needed.path.as_ref()?)));
    match paths().find(|(_, path)| openmp_runtime::has_tools_interface(path)) {
        Some((known, runtime)) => Diagnosis::new(
            Traceable::Yes,
            format!("{path} uses {}'s OpenMP runtime {}", known.name, runtime.display()),
        ),
        None => Diagnosis::new(
            Traceable::No,
            format!(
                "{path} uses an OpenMP runtime without a tools interface: {}",
                paths().map(|(_, path)| path.display().to_string()).collect::<Vec<_>>().join(", ")
            ),
        )
        .remedy(paths().next().map_or("", |(runtime, _)| runtime.remedy)),
    }
}

/// What to try if a program built for GCC's runtime died on LLVM's.
pub(crate) fn hint_at_death(
    end: End,
    decision: &Decision,
    programs: &[Program],
    loader: &Loader,
) -> Option<String> {
    let (Decision::ReplaceBy(stand_in), true) = (decision, crash_hints::is_fault(end)) else {
        return None;
    };
    let hazards = symbol_versions::hazards_of(programs, loader);
    let known = if hazards.is_empty() { String::new() } else { format!(" ({})", hazards.join("; ")) };
    Some(format!(
        "if the program does not crash with --libgomp keep, the crash was caused by {}, which replaced libgomp{known}",
        stand_in.libomp.display()
    ))
}

/// Why a program's own OMPT tool prevents tracing, and what to do about it.
pub(crate) fn refusal_by_own_tool(
    program: &Program,
    is_preloaded: bool,
    loader: &Loader,
) -> Option<(String, String)> {
    let path = program.path.display();
    let tool = symbol_versions::own_tool(program, loader)?;
    let comes_first =
        "(ompt_start_tool), which takes precedence over the tracer, so the program cannot be traced";
    if tool == program.path {
        Some((
            format!("{path} contains its own OMPT tool {comes_first}"),
            "link the program without that tool".to_owned(),
        ))
    } else if is_preloaded {
        None
    } else {
        Some((
            format!("{path} uses an OMPT tool in {} {comes_first}", tool.display()),
            "record with --preload, so that the tracer comes first and passes events on to that tool"
                .to_owned(),
        ))
    }
}

/// Whether the tracer passes events on to another tool.
pub(crate) fn passes_on() -> bool {
    find_tracer::variable("OMPTRACE_CHAIN").is_none_or(|value| value != "0")
}

/// Remarks about a program that are useful before recording, each with what to do about it.
pub(crate) fn remarks_on(program: &Program, is_preloaded: bool, loader: &Loader) -> Vec<(String, String)> {
    let path = program.path.display();
    let refusal = refusal_by_own_tool(program, is_preloaded, loader);
    let mut remarks: Vec<_> = refusal.into_iter().collect();
    let is_nvidias = |needed: &RuntimeNeeded| needed.runtime.vendor == Vendor::Nvidia;
    if program.runtimes().iter().any(is_nvidias) {
        remarks.push((
            format!("{path} needs NVIDIA's OpenMP runtime, which calls tools only in programs that were linked with -mp=ompt"),
            "link the program with nvc, nvc++ or nvfortran and -mp=ompt".to_owned(),
        ));
    }
    if !passes_on() && symbol_versions::has_thread_sanitizer(program, loader) {
        remarks.push((
            format!(
                "{path} is built with ThreadSanitizer, so LLVM's OpenMP runtime would load the tool Archer, if installed; because OMPTRACE_CHAIN=0 is set, the tracer runs instead of Archer"
            ),
            "unset OMPTRACE_CHAIN, because ThreadSanitizer reports false races without Archer".to_owned(),
        ));
    }
    remarks
}

/// Environment variables that prevent tracing in every program, each with what to do about it.
pub(crate) fn refusals_in_environment() -> Vec<(String, String)> {
    let mut refusals = Vec::new();
    // OpenMP 5.2, section 21.3.1: any value other than `enabled` (the default) loads no tool.
    if let Some(value) = env::var_os("OMP_TOOL").filter(|value| !value.eq_ignore_ascii_case("enabled")) {
        refusals.push((
            format!("OMP_TOOL={} is set, so OpenMP runtimes will not load any tool", value.display()),
            "unset OMP_TOOL".to_owned(),
        ));
    }
    if let Some(value) = env::var_os("OMPTRACE_DISABLED").filter(|value| value == "1") {
        refusals.push((
            format!("OMPTRACE_DISABLED={} is set, so the tracer will not record anything", value.display()),
            "unset OMPTRACE_DISABLED".to_owned(),
        ));
    }
    refusals
}
