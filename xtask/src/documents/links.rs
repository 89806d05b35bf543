//! Links of Markdown pages: where they lead, and which headings a page has.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// A link of a page, `[text](target)`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    /// What the link names.
    pub(crate) target: &'a str,
    /// Where that lies in the page, in bytes.
    pub(crate) place: Range<usize>,
}

/// The links of a page, in order; not those within code.
pub(crate) fn links(page: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (begin, line) in text_lines(page) {
        let mut from = 0;
        while let Some(at) = line[from..].find("](").map(|at| from + at + 2) {
            let Some(length) = line[at..].find(')') else {
                break;
            };
            found.push(Link { target: &line[at..at + length], place: begin + at..begin + at + length });
            from = at + length;
        }
    }
    found
}

/// The names by which links reach the headings of a page, as GitHub and mdBook make them.
#[cfg(test)]
pub(crate) fn anchors(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in text_lines(page) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let of_character = |character: char| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ if character.is_alphanumeric() => Some(character.to_ascii_lowercase()),
            _ => None,
        };
        let name: String = heading.trim().chars().filter_map(of_character).collect();
        // Headings of the same words get numbers.
        let earlier = found.iter().filter(|known| **known == name).count();
        found.push(match earlier {
            0 => name,
            _ => format!("{name}-{earlier}"),
        });
    }
    found
}

/// The lines of a page that are no code, each with the byte at which it begins.
fn text_lines(page: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let (mut begin, mut is_fenced) = (0, false);
    for line in page.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if !is_fence && !is_fenced && !line.starts_with("    ") {
            lines.push((begin, line));
        }
        begin += line.len();
    }
    lines
}

/// A link's file and the heading in it, as seen from the folder of the page. `None` for addresses of the web.
pub(crate) fn resolved<'a>(target: &'a str, folder: &Path) -> Option<(PathBuf, Option<&'a str>)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    Some((path, heading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_code_are_none() {
        let page = "see [a](b.md#c) and ![d](e.png)\n\n    $ [no](x)\n```\n[no](y)\n```\n";
        let targets = links(page).into_iter().map(|link| {
            assert_eq!(&page[link.place.clone()], link.target);
            link.target
        });
        assert_eq!(targets.collect::<Vec<_>>(), ["b.md#c", "e.png"]);
    }

    #[test]
    fn headings_have_names() {
        let page = "# The JSON of `stats`\n## What can't be seen?\n## GCC's own\n## GCC's own\n    # no\n";
        let names = ["the-json-of-stats", "what-cant-be-seen", "gccs-own", "gccs-own-1"];
        assert_eq!(anchors(page), names);
    }

    #[test]
    fn a_path_is_that_of_the_repository() {
        let of = |target| resolved(target, Path::new("docs/design"));
        assert_eq!(of("https://a.b/c#d"), None);
        assert_eq!(of("../../README.md#use-it"), Some((PathBuf::from("README.md"), Some("use-it"))));
        assert_eq!(of("001.md"), Some((PathBuf::from("docs/design/001.md"), None)));
    }
}
