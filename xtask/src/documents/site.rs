//! The documentation as a site, in `target/site/book`: the pages of `docs/` and those of the top folder, by mdBook.
//!
//! ```text
//! pages --> links to pages stay, links to other files lead to the repository --> target/site/src --> mdbook --> its links are checked
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::documents::links::{links, resolved};
use crate::process::{command, root, run, target};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;
use crate::setup::tools::tools;

/// Pages that lie elsewhere than in `docs/`, and their names in the site.
const FURTHER: [(&str, &str); 6] = [
    ("README.md", "introduction.md"),
    ("docs/README.md", "documentation.md"),
    ("ARCHITECTURE.md", "architecture.md"),
    ("CONTRIBUTING.md", "contributing.md"),
    ("CHANGELOG.md", "changelog.md"),
    ("examples/README.md", "examples.md"),
];
/// Where the files are that are no pages.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main");
/// The order of the pages.
const SUMMARY: &str = "SUMMARY.md";

/// Builds the site and checks its links.
///
/// # Errors
/// mdBook is missing or refuses a page, or a link leads nowhere.
pub(crate) fn build(may_install: bool) -> Result<()> {
    setup::ensure(Purpose::Site, may_install)?;
    let site = target().join("site");
    if site.exists() {
        fs::remove_dir_all(&site)?;
    }
    let pages = pages()?;
    for (source, name) in &pages {
        let to = site.join("src").join(name);
        fs::create_dir_all(to.parent().expect("it lies in the site"))?;
        let from = root().join(source);
        if source.extension().is_none_or(|end| end != "md") {
            fs::copy(&from, &to)?;
            continue;
        }
        let mut text = fs::read_to_string(&from)?;
        if name == Path::new(SUMMARY) {
            text.push_str(&not_listed(&text, &pages)?);
        }
        fs::write(&to, led_within(&text, source, name, &pages))?;
    }
    fs::copy(root().join("docs/book.toml"), site.join("book.toml"))?;
    run(command(tools().join("bin/mdbook"), ["build"]).arg(&site))?;
    let checked = check(&site.join("book"))?;
    println!("{checked} links lead somewhere: {}", site.join("book/index.html").display());
    Ok(())
}

/// The files of the site: their paths in the repository, and in the site.
fn pages() -> Result<BTreeMap<PathBuf, PathBuf>> {
    let further = FURTHER.map(|(source, name)| (PathBuf::from(source), PathBuf::from(name)));
    let mut pages = BTreeMap::from(further);
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end != "toml") {
                let name = path.strip_prefix("docs")?.to_owned();
                pages.entry(path).or_insert(name);
            }
        }
    }
    Ok(pages)
}

/// The part of the summary with those pages that it does not name: decisions and lab notes come and go.
fn not_listed(summary: &str, pages: &BTreeMap<PathBuf, PathBuf>) -> Result<String> {
    let folder = Path::new("docs");
    let listed: BTreeSet<PathBuf> =
        links(summary).iter().filter_map(|link| Some(resolved(link.target, folder)?.0)).collect();
    let mut further = String::from("\n# Decisions and notes\n\n");
    for (source, name) in pages {
        let is_page = source.extension().is_some_and(|end| end == "md");
        if !is_page || name == Path::new(SUMMARY) || listed.contains(source) {
            continue;
        }
        let text = fs::read_to_string(root().join(source))?;
        let title = text.lines().next().unwrap_or_default().trim_matches(['#', ' ']);
        further.push_str(&format!("- [{title}]({})\n", name.display()));
    }
    Ok(further)
}

/// The text of the page `source` with links that lead to pages of the site, else to the repository.
fn led_within(text: &str, source: &Path, name: &Path, pages: &BTreeMap<PathBuf, PathBuf>) -> String {
    let folder = source.parent().unwrap_or(Path::new(""));
    let up = "../".repeat(name.components().count() - 1);
    let mut changed = String::new();
    let mut done = 0;
    for link in links(text) {
        changed.push_str(&text[done..link.place.start]);
        done = link.place.end;
        match resolved(link.target, folder) {
            // A heading of the same page, or what `not_listed` has named by its place in the site.
            Some(_) if link.target.starts_with('#') => changed.push_str(link.target),
            Some((path, heading)) => {
                match pages.get(&path) {
                    Some(page) => changed.push_str(&format!("{up}{}", page.display())),
                    None if root().join(&path).exists() => {
                        changed.push_str(&format!("{REPOSITORY}/{}", path.display()));
                    }
                    None => changed.push_str(link.target),
                }
                if let Some(heading) = heading {
                    changed.push_str(&format!("#{heading}"));
                }
            }
            None => changed.push_str(link.target),
        }
    }
    changed.push_str(&text[done..]);
    changed
}

/// The number of links within the site, all of which lead somewhere.
fn check(book: &Path) -> Result<usize> {
    let mut files = BTreeMap::new();
    let mut folders = vec![book.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "html") {
                files.insert(path.clone(), fs::read_to_string(path)?);
            }
        }
    }
    let mut checked = 0;
    let mut dead = Vec::new();
    for (file, text) in &files {
        let folder = file.parent().unwrap_or(book);
        for target in ["href", "src"].iter().flat_map(|name| values(text, name)) {
            let is_elsewhere = target.starts_with("data:") || target.starts_with("javascript:");
            let Some((mut path, heading)) = resolved(target, folder).filter(|_| !is_elsewhere) else {
                continue;
            };
            if target.is_empty() || target.starts_with('#') {
                path = file.clone();
            }
            let is_there = match (heading, files.get(&path)) {
                (Some(heading), Some(text)) if !heading.is_empty() => {
                    values(text, "id").any(|id| id == heading)
                }
                _ => path.exists(),
            };
            checked += 1;
            if !is_there {
                dead.push(format!("{}: {target}", file.display()));
            }
        }
    }
    match dead.is_empty() {
        true => Ok(checked),
        false => Err(format!("links lead nowhere:\n{}", dead.join("\n")).into()),
    }
}

/// The values of an attribute, in order.
fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {attribute}=\"");
    let mut rest = html;
    std::iter::from_fn(move || {
        let at = rest.find(&begin)?;
        let (value, after) = rest[at + begin.len()..].split_once('"')?;
        rest = after;
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_the_site_or_to_the_repository() {
        let pages = pages().expect("the documents can be read");
        let text = "[a](../manual.md#record) [b](../../README.md) [c](../../cli/src/main.rs) [d](#x) [e](https://a.b)";
        let source = Path::new("docs/design/001.md");
        let changed = led_within(text, source, Path::new("design/001.md"), &pages);
        let expected = format!(
            "[a](../manual.md#record) [b](../introduction.md) [c]({REPOSITORY}/cli/src/main.rs) [d](#x) [e](https://a.b)"
        );
        assert_eq!(changed, expected);
    }

    #[test]
    fn dead_links_and_headings_are_found() {
        let book = std::env::temp_dir().join(format!("omptrace-site-{}", std::process::id()));
        fs::create_dir_all(&book).unwrap();
        let page = |text: &str| fs::write(book.join("a.html"), text).unwrap();
        page("<h1 id=\"x\"></h1><a href=\"#x\"></a><a href=\"a.html#x\"></a><a href=\"https://b\"></a>");
        assert_eq!(check(&book).unwrap(), 2);
        page("<a href=\"#x\"></a><img src=\"no.png\">");
        let said = check(&book).unwrap_err().to_string();
        assert!(said.contains(": #x") && said.contains(": no.png"), "{said}");
        fs::remove_dir_all(book).unwrap();
    }
}
