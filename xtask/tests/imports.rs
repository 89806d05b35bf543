//! No two files of a crate import each other, be it through others: what a file uses can be read before it.
//!
//! An import is a `use`, or a path in code that begins with `crate`, `super`, or a module in scope. It leads to the file that defines
//! the name, through those that export it again. Methods are not seen: whoever has a value may call them. A file that takes
//! all of a module around it in (`use super::*`) continues that, and counts as one with it. Who exports names of its own parts again does
//! not import them, unless its code has them. Code of tests is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// A name that a module has from elsewhere: `path` in that module's words, known as `name`. A glob has no name.
struct Import {
    path: Vec<String>,
    name: Option<String>,
    is_exported: bool,
}

/// A module of a crate: a file, or a part of one.
struct Module {
    file: usize,
    parent: usize,
    children: BTreeMap<String, usize>,
    imports: Vec<Import>,
    /// The paths in its code.
    paths: Vec<Vec<String>>,
    /// The names that it defines.
    items: BTreeSet<String>,
}

#[derive(Default)]
struct Crate {
    files: Vec<PathBuf>,
    modules: Vec<Module>,
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let test = attribute.path().is_ident("test");
        let condition = || attribute.parse_args::<syn::Meta>().ok();
        test || attribute.path().is_ident("cfg") && condition().is_some_and(|meta| has_test(&meta))
    })
}

fn has_test(meta: &syn::Meta) -> bool {
    match meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("all") => {
            list.tokens.to_string().split(',').any(|part| part.trim() == "test")
        }
        _ => false,
    }
}

impl Crate {
    /// Reads the crate whose first file this is.
    fn read(first: &Path) -> Crate {
        let mut all = Crate::default();
        all.read_file(first, 0, first.parent().expect("a folder"));
        all
    }

    /// Reads a file, whose modules lie in `folder`.
    fn read_file(&mut self, path: &Path, parent: usize, folder: &Path) -> usize {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let code = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.files.push(path.to_owned());
        self.add(self.files.len() - 1, parent, folder, &code.items)
    }

    fn add(&mut self, file: usize, parent: usize, folder: &Path, items: &[Item]) -> usize {
        let number = self.modules.len();
        let (children, imports, paths, names) = Default::default();
        self.modules.push(Module { file, parent, children, imports, paths, items: names });
        for item in items {
            if is_of_tests(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let inner = folder.join(&name);
                    let child = match &module.content {
                        Some((_, items)) => self.add(file, number, &inner, items),
                        None => {
                            let named = module.attrs.iter().find_map(path_attribute);
                            let own = self.files[file].parent().expect("a folder");
                            let candidates = match named {
                                Some(named) => vec![own.join(named)],
                                None => {
                                    vec![folder.join(format!("{name}.rs")), inner.join("mod.rs")]
                                }
                            };
                            let found = candidates.into_iter().find(|path| path.is_file());
                            let found = found.unwrap_or_else(|| panic!("no file of {}", inner.display()));
                            self.read_file(&found, number, &inner)
                        }
                    };
                    self.modules[number].children.insert(name, child);
                }
                Item::Use(import) => {
                    let imports = &mut self.modules[number].imports;
                    flatten(import, imports);
                }
                _ => {
                    let mut code = Code::default();
                    code.visit_item(item);
                    let module = &mut self.modules[number];
                    module.paths.extend(code.paths);
                    module.imports.extend(code.imports);
                    module.items.extend(name_of(item));
                }
            }
        }
        number
    }

    /// Where `path` leads from the module: the module that defines what it names. `None` where it leaves the crate.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent,
            name => {
                let child = self.modules[from].children.get(name);
                match child {
                    Some(child) => *child,
                    None => self.imported(from, name, depth)?,
                }
            }
        };
        while let Some((name, more)) = rest.split_first() {
            if name == "super" {
                at = self.modules[at].parent;
            } else if let Some(child) = self.modules[at].children.get(name) {
                at = *child;
            } else if self.modules[at].items.contains(name) {
                return Some(at);
            } else {
                match self.imported(at, name, depth) {
                    Some(target) => at = target,
                    None => return Some(at),
                }
            }
            rest = more;
        }
        Some(at)
    }

    /// The module that defines `name`, which `module` has from elsewhere.
    fn imported(&self, module: usize, name: &str, depth: usize) -> Option<usize> {
        // Globs may lead in circles.
        if depth > 8 {
            return None;
        }
        let imports = &self.modules[module].imports;
        let named = imports.iter().find(|import| import.name.as_deref() == Some(name));
        if let Some(import) = named {
            // A path that begins with its own name is that of another crate.
            let itself = import.path.first().is_some_and(|first| first == name);
            return (!itself || self.modules[module].children.contains_key(name))
                .then(|| self.resolve(module, &import.path, depth + 1))?;
        }
        let globs = imports.iter().filter(|import| import.name.is_none());
        globs.into_iter().find_map(|glob| {
            let target = self.resolve(module, &glob.path, depth + 1)?;
            let inner = &self.modules[target];
            if inner.items.contains(name) {
                return Some(target);
            }
            inner.children.get(name).copied().or_else(|| self.imported(target, name, depth + 1))
        })
    }

    /// The units of files, by the number of their first file.
    fn units(&self) -> Vec<usize> {
        let mut units: Vec<usize> = (0..self.files.len()).collect();
        for (number, module) in self.modules.iter().enumerate() {
            let globs = module.imports.iter().filter(|import| import.name.is_none());
            let taken_in = globs.filter_map(|import| self.resolve(number, &import.path, 0));
            for around in taken_in.filter(|around| self.is_within(module.parent, *around)) {
                let around_file = self.modules[around].file;
                if module.file != around_file {
                    units[module.file] = units[around_file];
                }
            }
        }
        units
    }

    /// Whether a module is a part of `around`.
    fn is_within(&self, mut module: usize, around: usize) -> bool {
        while module != around && module != 0 {
            module = self.modules[module].parent;
        }
        module == around
    }

    /// The units that each imports.
    fn edges(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let units = self.units();
        let mut edges: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (number, module) in self.modules.iter().enumerate() {
            let own = units[module.file];
            let imports = module.imports.iter().filter_map(|import| {
                let target = self.resolve(number, &import.path, 0)?;
                let again = import.is_exported && self.is_within(target, number);
                (!again).then_some(target)
            });
            let named = module.paths.iter().filter_map(|path| match &path[..] {
                // A variable may be called as a module is.
                [name] => self.imported(number, name, 0),
                path => self.resolve(number, path, 0),
            });
            for target in imports.chain(named) {
                let target = units[self.modules[target].file];
                if target != own {
                    edges.entry(own).or_default().insert(target);
                }
            }
        }
        edges
    }

    /// The files of a folder that import others of it. Its `mod.rs` may, and so may a file and those of the folder named like it.
    fn imports_within(&self, folder: &Path) -> Vec<(PathBuf, PathBuf)> {
        let part = |unit: usize| {
            let inner = self.files[unit].strip_prefix(folder).ok()?;
            let part = inner.components().next()?.as_os_str();
            Some(Path::new(part).with_extension("")).filter(|part| part != Path::new("mod"))
        };
        let all = self.edges();
        let pairs = all.iter().flat_map(|(from, targets)| targets.iter().map(move |target| (*from, *target)));
        let within = pairs.filter(|(from, to)| match (part(*from), part(*to)) {
            (Some(from), Some(to)) => from != to,
            _ => false,
        });
        within.map(|(from, to)| (self.files[from].clone(), self.files[to].clone())).collect()
    }

    /// The sets of files that import each other.
    fn circles(&self) -> Vec<Vec<String>> {
        let edges = self.edges();
        let reached = |from: usize| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(next) = open.pop() {
                for target in edges.get(&next).into_iter().flatten() {
                    if seen.insert(*target) {
                        open.push(*target);
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<usize, BTreeSet<usize>> =
            edges.keys().map(|unit| (*unit, reached(*unit))).collect();
        let mut circles = BTreeSet::new();
        for (unit, from_here) in &reached {
            let circle: BTreeSet<usize> = from_here
                .iter()
                .copied()
                .filter(|other| reached.get(other).is_some_and(|back| back.contains(unit)))
                .collect();
            if !circle.is_empty() {
                circles.insert(circle);
            }
        }
        let name = |file: &usize| self.files[*file].to_string_lossy().into_owned();
        circles.iter().map(|circle| circle.iter().map(name).collect()).collect()
    }
}

/// What code refers to.
#[derive(Default)]
struct Code {
    paths: Vec<Vec<String>>,
    imports: Vec<Import>,
}

impl<'c> Visit<'c> for Code {
    fn visit_path(&mut self, path: &'c syn::Path) {
        if path.leading_colon.is_none() {
            self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, import: &'c syn::ItemUse) {
        flatten(import, &mut self.imports);
    }

    fn visit_macro(&mut self, called: &'c syn::Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_item_macro(&mut self, item: &'c syn::ItemMacro) {
        self.tokens(item.mac.tokens.clone());
        visit::visit_item_macro(self, item);
    }

    fn visit_attribute(&mut self, _: &'c syn::Attribute) {}

    fn visit_impl_item_fn(&mut self, function: &'c syn::ImplItemFn) {
        if !is_of_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

impl Code {
    /// The paths among a macro's tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if path.is_empty() || colons == 2 => {
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() && colons < 2 => {
                    colons += 1
                }
                other => {
                    if !path.is_empty() {
                        self.paths.push(std::mem::take(&mut path));
                    }
                    colons = 0;
                    match other {
                        TokenTree::Ident(word) => path.push(word.to_string()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                    }
                }
            }
        }
        if !path.is_empty() {
            self.paths.push(path);
        }
    }
}

/// Adds what a `use` imports.
fn flatten(import: &syn::ItemUse, into: &mut Vec<Import>) {
    if import.leading_colon.is_none() {
        let is_exported = !matches!(import.vis, syn::Visibility::Inherited);
        flatten_tree(&import.tree, &mut Vec::new(), is_exported, into);
    }
}

fn flatten_tree(tree: &UseTree, path: &mut Vec<String>, is_exported: bool, into: &mut Vec<Import>) {
    let with = |path: &[String], name: &syn::Ident| {
        let mut path = path.to_vec();
        // `use a::{self}`
        if name != "self" || path.is_empty() {
            path.push(name.to_string());
        }
        path
    };
    let (path, name) = match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            flatten_tree(&part.tree, path, is_exported, into);
            path.pop();
            return;
        }
        UseTree::Group(group) => {
            let trees = group.items.iter();
            return trees.for_each(|tree| flatten_tree(tree, path, is_exported, into));
        }
        UseTree::Name(named) => {
            let path = with(path, &named.ident);
            let name = path.last().cloned();
            (path, name)
        }
        UseTree::Rename(named) => (with(path, &named.ident), Some(named.rename.to_string())),
        UseTree::Glob(_) => (path.clone(), None),
    };
    into.push(Import { path, name, is_exported });
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    match &attribute.meta {
        syn::Meta::NameValue(named) if named.path.is_ident("path") => match &named.value {
            syn::Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    folder.expect("the repository").to_owned()
}

/// The first files of the workspace's crates.
fn crates() -> Vec<PathBuf> {
    let root = root();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("Cargo.toml");
    let (_, members) = manifest.split_once("members = [").expect("members");
    let (members, _) = members.split_once(']').expect("an end");
    let folders = members.split('"').skip(1).step_by(2);
    let first = folders.flat_map(|folder| {
        let source = root.join(folder).join("src");
        [source.join("lib.rs"), source.join("main.rs")]
    });
    first.filter(|path| path.is_file()).collect()
}

/// The sets of files of the workspace that import each other, a line each.
fn circles() -> String {
    let root = root();
    let mut lines = String::new();
    for first in crates() {
        for circle in Crate::read(&first).circles() {
            let short = |file: &String| {
                let short = Path::new(file).strip_prefix(&root).expect("a file of the repository");
                short.display().to_string()
            };
            lines += &circle.iter().map(short).collect::<Vec<_>>().join(" ");
            lines += "\n";
        }
    }
    lines
}

#[test]
fn no_files_import_each_other() {
    let circles = circles();
    assert!(circles.is_empty(), "files that import each other, a set on each line:\n{circles}");
}

/// What several commands need lies beside them, so that each can be read alone.
#[test]
fn no_command_imports_another() {
    let program = Crate::read(&root().join("cli/src/lib.rs"));
    let commands = root().join("cli/src/commands");
    assert!(program.files.iter().filter(|file| file.starts_with(&commands)).count() > 10);
    let imports = program.imports_within(&commands);
    assert!(imports.is_empty(), "commands that import commands: {imports:?}");
}

#[test]
fn an_import_within_a_folder_is_found() {
    let folder = Folder::new("within");
    folder.write("lib.rs", "mod parts; mod shared;");
    folder.write("shared.rs", "pub fn f() {}");
    folder.write("parts/mod.rs", "mod a; mod b; fn g() { a::g(); b::f() }");
    folder.write("parts/a.rs", "use crate::shared::f; pub fn g() { f() }");
    folder.write("parts/b.rs", "pub use crate::shared::f;");
    let within = || {
        let imports = Crate::read(&folder.path("lib.rs")).imports_within(&folder.path("parts"));
        imports
            .iter()
            .map(|(from, to)| [from, to].map(|file| file.file_name().map(ToOwned::to_owned)))
            .collect::<Vec<_>>()
    };
    assert!(within().is_empty());
    folder.write("parts/a.rs", "use crate::shared::f; pub fn g() { f() } mod c;");
    folder.write("parts/a/c.rs", "pub(super) fn h() { super::g() }");
    assert!(within().is_empty(), "{:?}", within());
    folder.write("parts/a/c.rs", "use crate::parts::b; pub(super) fn h() { b::f() }");
    folder.write("parts/b.rs", "pub fn f() {}");
    assert_eq!(within(), [["c.rs", "b.rs"].map(|name| Some(name.into()))]);
}

/// A crate that is planted for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("omptrace-imports-{name}-{}", std::process::id())))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_circle_is_found() {
    let folder = Folder::new("circle");
    let write = |name: &str, text: &str| folder.write(name, text);
    write("lib.rs", "mod a; mod b; mod c; pub use a::A;");
    write(
        "a.rs",
        "pub struct A; fn f() { println!(\"{}\", crate::b::B) } #[cfg(test)] mod tests { use crate::c::C; }",
    );
    write("b.rs", "pub const B: u32 = crate::c::number(); mod part; pub(crate) const D: u32 = 1;");
    write("b/part.rs", "use super::*; fn d() -> u32 { D }");
    write(
        "c.rs",
        "use crate::A as Other; pub struct C; pub const fn number() -> u32 { 1 } fn f(_: Other) {}",
    );
    let circles = Crate::read(&folder.path("lib.rs")).circles();
    let names = |circle: &Vec<String>| {
        circle
            .iter()
            .map(|file| Path::new(file).file_name().expect("a name").to_string_lossy().into_owned())
            .collect()
    };
    let found: Vec<Vec<String>> = circles.iter().map(names).collect();
    write("c.rs", "pub struct C; pub const fn number() -> u32 { 1 }");
    let repaired = Crate::read(&folder.path("lib.rs")).circles();
    assert_eq!(found, [["a.rs", "b.rs", "c.rs"]]);
    assert!(repaired.is_empty(), "{repaired:?}");
}
