//! Which domains are recorded.

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
        if matches(glob.as_bytes(), name) {
            is_on = is_included;
        }
    }
    is_on
}

/// Whether a name matches a pattern with `*` and `?`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where the last star was, and what it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((place, until)) => {
                    star = Some((place, until + 1));
                    at = place + 1;
                    from = until + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}
