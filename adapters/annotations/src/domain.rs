//! Which domains are recorded.

use omptrace_trace_format::wildcards;

use crate::recorder::settings;

/// What LLVM's and Intel's OpenMP runtimes say of themselves by ITT is known better from their callbacks.
fn is_openmp(name: &[u8]) -> bool {
    name == b"OMP Metadata" || name.windows(5).any(|part| part == b"$omp$")
}

/// Whether a domain of this name is recorded.
pub(crate) fn is_on(name: &[u8]) -> bool {
    let Some(settings) = settings() else { return false };
    !is_openmp(name) && allows(&settings.domains, name)
}

/// What the list says: the last pattern that the name matches decides. A list without a pattern that includes some includes all others.
fn allows(patterns: &[String], name: &[u8]) -> bool {
    let includes = |pattern: &&String| !pattern.starts_with('-');
    let mut is_on = !patterns.iter().any(|pattern| includes(&pattern));
    for pattern in patterns {
        let (is_included, glob) = match pattern.strip_prefix('-') {
            Some(glob) => (false, glob),
            None => (true, pattern.as_str()),
        };
        if wildcards::match_name(glob.as_bytes(), name) {
            is_on = is_included;
        }
    }
    is_on
}
