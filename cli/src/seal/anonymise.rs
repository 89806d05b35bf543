//! Copies of traces that can be passed on: `omptrace convert --anonymise`.
//!
//! | data | in the copy |
//! | --- | --- |
//! | host names, boot ids | `host1`, `boot1`, in the order of occurrence |
//! | directories other than the system's | `/dir1`; file names are kept |
//! | arguments of the program | none |
//! | images of devices, events and keys of newer tracers | none |
//!
//! Names of functions, files, threads and OpenMP variables are kept, because the analysis is about them.

use std::collections::BTreeMap;

use omptrace_symbols::{self as symbols, Table};
use omptrace_trace_format::field::Text;
use omptrace_trace_format::{Event, Fate, Reader};
use serde_json::{Map, Value};

/// System directories, which are the same on all machines.
const OF_SYSTEM: [&str; 10] = [
    "/usr/lib",
    "/usr/bin",
    "/usr/sbin",
    "/usr/share",
    "/usr/include",
    "/lib",
    "/bin",
    "/proc",
    "/sys",
    "/dev",
];

/// Renames hosts and directories, in the same way in all copies.
#[derive(Debug, Default)]
pub(crate) struct Anonymiser {
    hosts: BTreeMap<String, String>,
    boots: BTreeMap<String, String>,
    directories: BTreeMap<String, String>,
}

/// The new name of `old`: its kind, followed by a number.
fn renamed(names: &mut BTreeMap<String, String>, kind: &str, old: &str) -> String {
    let number = names.len() + 1;
    names.entry(old.to_owned()).or_insert_with(|| format!("{kind}{number}")).clone()
}

fn is_of_system(directory: &str) -> bool {
    OF_SYSTEM.iter().any(|system| {
        let rest = directory.strip_prefix(system);
        // Matches `/usr/lib64`, but not `/library`.
        rest.is_some_and(|rest| {
            rest.trim_start_matches(|c: char| c.is_ascii_digit()).is_empty() || rest.starts_with('/')
        })
    })
}

impl Anonymiser {
    /// The metadata of the copy, including symbol names, because they cannot be looked up later.
    pub(crate) fn metadata(&mut self, reader: &Reader, options: &symbols::Options) -> Map<String, Value> {
        let mut object = reader.metadata_object();
        object.insert(symbols::KEY.to_owned(), Table::renewed(reader, options).to_json());
        for key in reader.metadata().other.keys().filter(|key| *key != symbols::KEY) {
            object.remove(key);
        }
        if let Some(host) = reader.metadata().machine.as_ref().map(|machine| &machine.host) {
            self.host(host);
        }
        // Processes complete paths first, because other texts are then searched for their directories.
        let mut paths = |key: &str, text: &str| self.of_key(key, text);
        object.iter_mut().for_each(|(key, value)| change(key, value, &mut paths));
        let mut texts = |key: &str, text: &str| (Kind::of(key) == Kind::Text).then(|| self.text(text));
        object.iter_mut().for_each(|(key, value)| change(key, value, &mut texts));
        object
    }

    /// Anonymises an event.
    pub(crate) fn event(&mut self, event: &mut Event<'static>) -> Fate {
        let text = |text: &mut Text<'static>, new: &mut dyn FnMut(&str) -> String| {
            if text.0.is_some() {
                *text = Text(Some(new(&text.lossy()).into_bytes().into()));
            }
            Fate::Changed
        };
        match event {
            Event::Module(module) => text(&mut module.path, &mut |path| self.path(path)),
            Event::DeviceLoad(load) => text(&mut load.filename, &mut |path| self.path(path)),
            Event::ControlTool(call) => text(&mut call.text, &mut |text| self.text(text)),
            Event::Error(error) => text(&mut error.message, &mut |text| self.text(text)),
            Event::ObjectDefined(object) => text(&mut object.name, &mut |text| self.text(text)),
            Event::ObjectNamed(object) => text(&mut object.name, &mut |text| self.text(text)),
            Event::DeviceImage(_) | Event::Unknown(_) => Fate::LeftOut,
            _ => Fate::Kept,
        }
    }

    /// The new value of a key whose value is not free text.
    fn of_key(&mut self, key: &str, text: &str) -> Option<String> {
        match Kind::of(key) {
            Kind::Host => Some(self.host(text)),
            Kind::Boot => Some(renamed(&mut self.boots, "boot", text)),
            Kind::Directory => Some(self.directory(text)),
            Kind::Path => Some(self.path(text)),
            Kind::Name if is_file(text) => Some(self.path(text)),
            Kind::Name | Kind::Text => None,
        }
    }

    fn host(&mut self, host: &str) -> String {
        match host {
            "" => String::new(),
            host => renamed(&mut self.hosts, "host", host),
        }
    }

    fn directory(&mut self, directory: &str) -> String {
        match directory {
            "" | "." | "/" => directory.to_owned(),
            known if self.directories.values().any(|new| new == known) => known.to_owned(),
            system if is_of_system(system) => system.to_owned(),
            own => renamed(&mut self.directories, "/dir", own),
        }
    }

    /// The path with its directory renamed.
    fn path(&mut self, path: &str) -> String {
        match path.rsplit_once('/') {
            None | Some(("", _)) => path.to_owned(),
            Some((directory, name)) => format!("{}/{name}", self.directory(directory)),
        }
    }

    /// The text with directories and hosts renamed.
    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longest directories first, because one may contain another. They may contain blanks. Relative ones are
        // skipped, because they may be words or parts of words.
        let known = self.directories.iter().filter(|(old, _)| old.starts_with('/'));
        let mut known: Vec<(String, String)> = known.map(|(old, new)| (old.clone(), new.clone())).collect();
        known.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        for (old, new) in &known {
            text = text.replace(old, new);
        }
        let is_part = |c: char| c.is_alphanumeric() || "/._-+@~".contains(c);
        let mut rest = text.as_str();
        let mut changed = String::with_capacity(text.len());
        while let Some(begin) = rest.find(is_part) {
            let (before, from) = rest.split_at(begin);
            let (word, behind) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
            changed.push_str(before);
            match self.hosts.get(word) {
                Some(new) => changed.push_str(new),
                None if word.starts_with(['/', '~']) || word.starts_with("../") => {
                    changed.push_str(&self.path(word))
                }
                None => changed.push_str(word),
            }
            rest = behind;
        }
        changed.push_str(rest);
        changed
    }
}

/// The kind of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host,
    Boot,
    Directory,
    Path,
    /// The name of a function or file.
    Name,
    /// Free text, which may contain hosts and paths.
    Text,
}

impl Kind {
    fn of(key: &str) -> Kind {
        match key {
            "host" => Kind::Host,
            "boot" => Kind::Boot,
            "directory" => Kind::Directory,
            // Of a command line, only the program is kept.
            "executable" | "path" | "command_line" => Kind::Path,
            "strings" => Kind::Name,
            _ => Kind::Text,
        }
    }
}

/// Whether a name is that of a file: function names contain no slash, except for C++'s operator and some template
/// arguments.
fn is_file(name: &str) -> bool {
    name.contains('/') && !name.contains(['(', '<']) && !name.contains("operator")
}

/// Replaces each text in `value`, the value of `key`, by the result of `new`.
fn change(key: &str, value: &mut Value, new: &mut dyn FnMut(&str, &str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(new) = new(key, text) {
                *text = new;
            }
        }
        Value::Array(all) => {
            if key == "command_line" {
                all.truncate(1);
            }
            all.iter_mut().for_each(|value| change(key, value, new));
        }
        Value::Object(object) => object.iter_mut().for_each(|(key, value)| change(key, value, new)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::event;

    use super::*;

    #[test]
    fn directories_and_hosts_in_texts_are_renamed() {
        let mut names = Anonymiser::default();
        assert_eq!(names.host("node17"), "host1");
        assert_eq!(names.path("/home/anne/my work/solve.c"), "/dir1/solve.c");
        assert_eq!(names.path("/home/anne/my work/lib/fft.c"), "/dir2/fft.c");
        assert_eq!(
            names.path("/usr/lib/x86_64-linux-gnu/libgomp.so.1"),
            "/usr/lib/x86_64-linux-gnu/libgomp.so.1"
        );
        assert_eq!(names.path("/lib64/libc.so.6"), "/lib64/libc.so.6");
        assert_eq!(names.path("/library/secret/x"), "/dir3/x");
        assert_eq!(names.path("src/a.c"), "/dir4/a.c");
        assert_eq!(names.path("a.c"), "a.c");
        let text = "cannot open \"/home/anne/my work/lib/fft.c\" on node17: /scratch/bob/x=/home/anne/my work/a, ../bob/y";
        assert_eq!(names.text(text), "cannot open \"/dir2/fft.c\" on host1: /dir5/x=/dir1/a, /dir6/y");
        // Renamed parts are not renamed again.
        assert_eq!(names.text("/dir2/fft.c node170 1/2"), "/dir2/fft.c node170 1/2");
        assert_eq!(names.text("the srcs in src"), "the srcs in src");
    }

    #[test]
    fn arguments_are_left_out_wherever_they_are() {
        let mut names = Anonymiser::default();
        let mut value = serde_json::json!({
            "process": { "command_line": ["/home/anne/app", "--key", "s3cret"], "pid": 7 },
            "record": { "command_line": ["./app", "s3cret"] },
            "symbols": { "strings": ["solve", "operator/", "/home/anne/a.c", "f<int>(a/b)"] },
        });
        change("", &mut value, &mut |key, text| names.of_key(key, text));
        let expected = serde_json::json!({
            "process": { "command_line": ["/dir1/app"], "pid": 7 },
            "record": { "command_line": ["./app"] },
            "symbols": { "strings": ["solve", "operator/", "/dir1/a.c", "f<int>(a/b)"] },
        });
        assert_eq!(value, expected);
    }

    /// Each new row with a text must be considered here.
    #[test]
    fn each_text_of_the_event_table_is_known() {
        let mut texts = Vec::new();
        for row in event::schema() {
            for argument in
                row.arguments.iter().filter(|argument| ["text", "bytes"].contains(&argument.type_name))
            {
                texts.push(format!("{}.{}", row.name, argument.name));
            }
        }
        texts.sort();
        let changed = [
            "control_tool.text",
            "device_load.filename",
            "error.message",
            "omptrace_module.path",
            "omptrace_object_defined.name",
            "omptrace_object_named.name",
        ];
        let left_out = ["omptrace_device_image.bytes"];
        let kept = [
            "device_initialize.documentation",
            "device_initialize.type",
            "omptrace_device_kernel.name",
            "omptrace_device_native_record.type",
            "omptrace_module.build_id",
            "omptrace_thread_info.name",
        ];
        let mut known = [&changed[..], &left_out, &kept].concat();
        known.sort_unstable();
        assert_eq!(texts, known);
    }
}
