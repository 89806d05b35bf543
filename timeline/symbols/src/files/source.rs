//! The OpenMP directives in source files.
//!
//! The debug information from GCC lacks the lines of some directives: the call generated for such a directive has the
//! line of the statement before. In the source, the directive is between that statement and the next.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::directive::Directive;

/// Maximum size of a source file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// A directive in a source file.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    /// Its lines, counted from 1.
    first: u32,
    last: u32,
    /// The first line after it that is not empty or a comment.
    statement: Option<u32>,
    /// Its words in lower case: names, and the text in parentheses.
    words: Vec<String>,
}

impl Written {
    /// Whether several directives are combined. Then GCC calls the runtime for the inner ones in the function of the
    /// outer one.
    fn is_combined(&self) -> bool {
        self.words
            .first()
            .is_some_and(|name| matches!(&**name, "parallel" | "teams" | "target" | "distribute"))
    }

    /// Whether the directive is at this line, or belongs to a loop that starts there.
    fn is_at(&self, line: u32, directive: Directive) -> bool {
        (self.first..=self.last).contains(&line)
            || directive == Directive::Loop && self.statement == Some(line)
    }

    /// Whether this directive is the reason for GCC to call the runtime for `directive`, at its start.
    fn is(&self, directive: Directive) -> bool {
        let has = |words: &[&str]| self.words.iter().any(|word| words.contains(&word.as_str()));
        let name = self.words.first().map_or("", String::as_str);
        match directive {
            Directive::Sections => name == "sections" || self.is_combined() && has(&["sections"]),
            Directive::Single => name == "single",
            Directive::Scope => name == "scope",
            // Static loops do not call the runtime.
            Directive::Loop => {
                has(&["for", "do", "loop"])
                    && has(&["dynamic", "guided", "runtime", "ordered", "conditional", "task", "inscan"])
            }
            Directive::Taskgroup => name == "taskgroup",
            Directive::Ordered => name == "ordered" && !has(&["depend", "doacross"]),
            Directive::Atomic => name == "atomic",
            Directive::Barrier => name == "barrier",
            Directive::Parallel | Directive::Taskloop | Directive::Task | Directive::Section => false,
        }
    }
}

/// The source files of a module, each read at most once.
pub(crate) struct Sources {
    modified_ns: u64,
    files: HashMap<String, Vec<Written>>,
}

impl Sources {
    /// Uses only files that are not newer than the module, which was modified at `modified_ns` (Unix time; 0: unknown).
    /// Newer files may have directives at other lines.
    pub(crate) fn older_than(modified_ns: u64) -> Sources {
        Sources { modified_ns, files: HashMap::new() }
    }

    /// The line of the directive for which the runtime is called, if the debug information contains `line` for the
    /// call. `next`: the next line for which it contains code. `None` unless exactly one directive is possible.
    pub(crate) fn directive(
        &mut self,
        file: &str,
        directive: Directive,
        line: u32,
        next: Option<u32>,
    ) -> Option<u32> {
        let written = self.of(file).iter().filter(|written| written.is(directive));
        let mut behind = Vec::new();
        for written in written {
            if written.is_at(line, directive) {
                return Some(written.first);
            }
            if written.first > line && next.is_none_or(|next| written.first <= next) && !written.is_combined()
            {
                behind.push(written.first);
            }
        }
        match behind[..] {
            [only] if directive.follows_its_call() => Some(only),
            _ => None,
        }
    }

    /// Whether the directive at `line` is combined with one for which the runtime is called.
    pub(crate) fn is_combined(&mut self, file: &str, line: u32, directive: Directive) -> bool {
        let mut written = self.of(file).iter().filter(|written| written.first == line);
        written.any(|written| written.is_combined() && written.is(directive))
    }

    /// The first line of the directive that includes `line`, as far as the source shows it: gfortran gives a directive
    /// of several lines one of its other lines.
    pub(crate) fn first_line(&mut self, file: &str, line: u32) -> u32 {
        let written = self.of(file).iter().find(|written| (written.first..=written.last).contains(&line));
        written.map_or(line, |written| written.first)
    }

    /// The directives of a file, in order.
    fn of(&mut self, file: &str) -> &[Written] {
        if !self.files.contains_key(file) {
            let written = read(Path::new(file), self.modified_ns).unwrap_or_default();
            self.files.insert(file.to_owned(), written);
        }
        &self.files[file]
    }
}

/// The directives of a file, unless it is newer.
fn read(path: &Path, modified_ns: u64) -> Option<Vec<Written>> {
    // Checked before opening, because opening a pipe would wait for a writer.
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let written_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    if !path.is_absolute() || metadata.len() > MAX_BYTES || written_ns > i128::from(modified_ns) {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(directives(&String::from_utf8_lossy(&bytes)))
}

/// The directives of a C, C++ or Fortran source.
fn directives(text: &str) -> Vec<Written> {
    let mut all = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((first, line)) = lines.next() {
        let (mut text, mut last) = match (of_c(line), of_fortran(line)) {
            (Some(text), _) | (None, Some(text)) => (text.to_owned(), first),
            (None, None) => continue,
        };
        let is_fortran = of_c(line).is_none();
        while let Some((number, next)) = lines.peek() {
            let further = match is_fortran {
                true => of_fortran(next).filter(|next| goes_on(&text) || continues(next)),
                false => text.trim_end().ends_with('\\').then_some(*next),
            };
            let Some(further) = further else {
                break;
            };
            last = *number;
            if is_fortran {
                text = without_comment(&text).trim_end().trim_end_matches('&').to_owned();
            } else {
                text.truncate(text.trim_end().len() - 1);
            }
            text.push(' ');
            text.push_str(further);
            lines.next();
        }
        let text = match is_fortran {
            true => without_comment(&text),
            false => text.split("/*").next().unwrap_or_default().split("//").next().unwrap_or_default(),
        };
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let words = words.map(str::to_ascii_lowercase).collect();
        let is_code = |line: &&(u32, &str)| {
            let line = line.1.trim_start();
            !line.is_empty() && !["//", "/*", "!"].iter().any(|comment| line.starts_with(comment))
        };
        let statement = lines.clone().find(|line| is_code(&line)).map(|(number, _)| number);
        all.push(Written { first, last, statement, words });
    }
    all
}

/// The text after `#pragma omp`.
fn of_c(line: &str) -> Option<&str> {
    let word = |text: &'_ str, word: &str| -> Option<usize> {
        let rest = text.trim_start().strip_prefix(word)?;
        rest.starts_with(|c: char| c.is_whitespace()).then(|| text.len() - rest.len())
    };
    if let Some(rest) = line.trim_start().strip_prefix('#') {
        let rest = &rest[word(rest, "pragma")?..];
        return Some(&rest[word(rest, "omp")?..]);
    }
    let rest = line.split_once("_Pragma")?.1.trim_start().strip_prefix('(')?;
    let rest = rest.trim_start().strip_prefix('"')?;
    Some(rest[word(rest, "omp")?..].split('"').next().unwrap_or_default())
}

/// The text after `!$omp`, or after one of the two other sentinels of Fortran's fixed form, which start in the first
/// column.
fn of_fortran(line: &str) -> Option<&str> {
    let is = |text: &str, sentinel: &str| {
        text.get(..sentinel.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(sentinel))
    };
    let free = line.trim_start();
    if is(free, "!$omp") {
        return Some(&free[5..]);
    }
    (is(line, "c$omp") || is(line, "*$omp")).then(|| &line[5..])
}

/// Whether a line in Fortran's free form is continued.
fn goes_on(text: &str) -> bool {
    without_comment(text).trim_end().ends_with('&')
}

/// Whether a line in Fortran's fixed form continues the previous one, by its sixth column.
fn continues(text: &str) -> bool {
    text.starts_with(|c: char| !c.is_whitespace() && c != '0')
}

fn without_comment(text: &str) -> &str {
    text.split('!').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, u32, String)> {
        directives(text)
            .into_iter()
            .map(|written| (written.first, written.last, written.words.join(" ")))
            .collect()
    }

    #[test]
    fn directives_are_read_in_each_language() {
        let c = "#pragma omp single /* one */\n  # pragma  omp for \\\n  schedule(dynamic, 1)\n#pragma ompx\n\
                 int pragma;\n_Pragma(\"omp sections nowait\")\n// #pragma omp single\n#pragma omp barrier // end\n";
        let expected = [
            (1, 1, "single"),
            (2, 3, "for schedule dynamic 1"),
            (6, 6, "sections nowait"),
            (8, 8, "barrier"),
        ];
        assert_eq!(found(c), expected.map(|(first, last, words)| (first, last, words.to_owned())));
        let free =
            "  !$OMP DO & ! a loop\n  !$omp & schedule(guided)\n! $omp single\n !$omp end do\n!$omp single";
        let expected = [(1, 2, "do schedule guided"), (4, 4, "end do"), (5, 5, "single")];
        assert_eq!(found(free), expected.map(|(first, last, words)| (first, last, words.to_owned())));
        let fixed = "C$OMP DO\nc$omp+schedule(dynamic)\n*$omp sections\n";
        let expected = [(1, 2, "do schedule dynamic"), (3, 3, "sections")];
        assert_eq!(found(fixed), expected.map(|(first, last, words)| (first, last, words.to_owned())));
    }

    #[test]
    fn a_directive_is_the_only_one_between_two_statements() {
        let text = "a;\n#pragma omp single\n{ b; }\n#pragma omp for\nfor (;;) c;\n#pragma omp for ordered\nfor (;;)\n\
                    #pragma omp ordered\nd;\n#pragma omp single\n#pragma omp barrier\n#pragma omp single\ne;\n";
        let mut sources = Sources::older_than(0);
        sources.files.insert("/a.c".to_owned(), directives(text));
        let mut line = |directive, line, next| sources.directive("/a.c", directive, line, next);
        assert_eq!(line(Directive::Single, 1, Some(3)), Some(2));
        assert_eq!(line(Directive::Single, 2, Some(3)), Some(2));
        assert_eq!(line(Directive::Loop, 3, Some(7)), Some(6));
        assert_eq!(line(Directive::Loop, 7, Some(9)), Some(6));
        assert_eq!(line(Directive::Ordered, 7, Some(9)), Some(8));
        // No directive before the next statement, or two possible ones.
        assert_eq!(line(Directive::Single, 3, Some(5)), None);
        assert_eq!(line(Directive::Single, 9, Some(13)), None);
        // The end of a construct.
        assert_eq!(line(Directive::Barrier, 9, Some(13)), None);
        assert_eq!(line(Directive::Barrier, 11, Some(13)), Some(11));
        assert_eq!(line(Directive::Single, 13, None), None);
        assert_eq!(sources.first_line("/a.c", 4), 4);
        let text =
            "#pragma omp parallel sections\n{}\n#pragma omp parallel\n!$omp parallel do schedule(dynamic)\n";
        sources.files.insert("/c.c".to_owned(), directives(text));
        assert!(sources.is_combined("/c.c", 1, Directive::Sections));
        assert!(!sources.is_combined("/c.c", 1, Directive::Loop));
        assert!(!sources.is_combined("/c.c", 3, Directive::Loop));
        assert!(sources.is_combined("/c.c", 4, Directive::Loop));
        assert_eq!(sources.first_line("/b.c", 2), 2);
    }

    #[test]
    fn a_source_that_was_changed_later_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.c");
        fs::write(&file, "#pragma omp single\n").expect("a file");
        assert_eq!(read(&file, 1), None);
        assert_eq!(read(&file, u64::MAX).map(|all| all.len()), Some(1));
        assert_eq!(read(folder.path(), u64::MAX), None);
        assert_eq!(read(Path::new("a.c"), u64::MAX), None);
    }
}
