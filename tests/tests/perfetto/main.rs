//! Perfetto's format, less of a timeline, and the way into the UI: of real programs, judged by Perfetto itself.

mod export;
mod filter;
mod intervals;
mod pftrace;
mod view;

use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::{Traces, omptrace};

/// A trace of a program, and what is made of it.
pub(crate) struct Traced {
    traces: Traces,
    trace: PathBuf,
}

impl Traced {
    /// Runs an example under the tracer.
    pub(crate) fn example(name: &str, arguments: &[&str]) -> Traced {
        Traced::program(&format!("examples/{name}.c"), arguments)
    }

    /// Runs any program of the workspace under the tracer.
    pub(crate) fn program(source: &str, arguments: &[&str]) -> Traced {
        let program = compile(source, Compiler::Clang22, &[]);
        let traces = Traces::folder();
        traces.record(
            Command::new(program)
                .args(arguments)
                .env("OMP_NUM_THREADS", "2")
                .env("OMP_CANCELLATION", "true"),
        );
        let trace = traces.only();
        Traced { traces, trace }
    }

    pub(crate) fn trace(&self) -> &Path {
        &self.trace
    }

    /// A path in the trace's folder.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.traces.path().join(file)
    }

    /// Converts the trace to `file`; `options` are those of `omptrace convert`.
    pub(crate) fn convert(&self, format: &str, file: &str, options: &[&str]) -> PathBuf {
        let path = self.path(file);
        let (trace, out) = (self.trace.to_str(), path.to_str());
        let (trace, out) = trace.zip(out).expect("a test's path is UTF-8");
        let mut words = vec!["convert", trace, "--to", format, "-o", out];
        words.extend(options);
        let output = omptrace(words);
        assert!(output.status.success(), "{output:?}");
        path
    }
}
