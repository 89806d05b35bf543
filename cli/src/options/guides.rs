//! The pages of the documentation that are in the program: a cluster's nodes have no internet.

/// A page of `docs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guide {
    /// What `omptrace help` calls it.
    pub name: &'static str,
    /// The page, in Markdown, with its title in the first line.
    pub text: &'static str,
}

impl Guide {
    /// The page of this name.
    pub(crate) fn of(name: &str) -> Option<&'static Guide> {
        GUIDES.iter().find(|guide| guide.name == name)
    }

    pub(crate) fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

/// Turns names and files into the table of pages.
macro_rules! guides {
    ($($name:literal: $file:literal),* $(,)?) => {
        /// In the order in which they are listed. No name is that of a command, whose help comes first.
        pub(crate) const GUIDES: &[Guide] =
            &[$(Guide { name: $name, text: include_str!(concat!("../../../docs/", $file)) }),*];
    };
}

guides! {
    "tutorial": "tutorial.md",
    "faq": "faq.md",
    "troubleshooting": "troubleshooting.md",
    "glossary": "glossary.md",
    "analysis": "analysis.md",
    "timeline": "viewers.md",
    "samples": "samples.md",
    "counters": "counters.md",
    "accuracy": "accuracy.md",
    "performance": "performance.md",
    "annotations": "how-to/annotations.md",
    "ci": "how-to/ci.md",
    "compare-versions": "how-to/compare-versions.md",
    "containers": "how-to/containers.md",
    "flight-recorder": "how-to/flight-recorder.md",
    "fortran": "how-to/fortran.md",
    "gcc": "how-to/gcc.md",
    "gpu": "how-to/gpu.md",
    "huge-traces": "how-to/huge-traces.md",
    "mpi": "how-to/mpi.md",
    "offline": "how-to/offline.md",
    "parts": "how-to/parts.md",
    "python": "how-to/python-programs.md",
    "sharing": "how-to/sharing.md",
}
