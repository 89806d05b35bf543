//! Archives that others wrote: sound ones pass, and whatever is wrong with the rest is found.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use omptrace_tests::env::{otf2_module, otf2_write, python, root};
use omptrace_tests::otf2::printed;
use otf2_archive::check_archive;
use tempfile::TempDir;

/// The lines of which `tests/tools/otf2_write.c` makes a sound archive.
const SOUND: &str = "\
string 0
clock 1 30
paradigm 3 1
node 0 -1
group 0 1 0 -1
group 1 2 0 0
location 0 1 0 0
location 1 1 0 0
location 2 2 1 0
region 0 3
region 1 3
region 2 3
attribute 0 4
attribute 1 14
parameter 0 0
parameter 1 2
member 0 4
class 0 0
members 0 4 3 0 1 2
members 1 5 3 0 1
members 2 5 3 0
members 3 5 3 0 1 2
comm 0 1
comm 1 2
comm 2 3
window 0 2
map 1 3 0 1 2
offset 1 0 0
offset 1 10 0
offset 1 20 2
marker 0
mark 5 0 1 1
at 0 1 program_begin
at 0 1 enter 0
at 0 2 fork
at 0 3 team_begin 0
at 0 3 enter 1
at 0 4 create 0 0 1
at 0 5 acquire 7 1
at 0 6 release 7 1
at 0 7 switch 0 0 1
with 0 4 42
with 1 14 2
at 0 7 enter 2
at 0 8 leave 2
at 0 8 complete 0 0 1
at 0 8 switch 0 0 0
at 0 9 leave 1
at 0 9 team_end 0
at 0 10 join
at 0 11 metric 0 4
at 0 11 string_parameter 0 0
at 0 11 number_parameter 1 9
at 0 12 send 0 1
at 0 30 leave 0
at 0 30 program_end
at 1 3 team_begin 0
at 1 3 enter 1
at 1 7 acquire 7 2
at 1 8 release 7 2
at 1 9 leave 1
at 1 9 team_end 0
at 1 12 receive 0 0
at 1 13 flush 14
at 2 5 enter 2
at 2 6 leave 2
at 2 7 get 0 0 5
at 2 8 done 0 5
";

/// The writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// The reference library.
    Library,
    /// PyPI's Python module.
    Module,
}
use Writer::{Library, Module};

const BOTH: &[Writer] = &[Library, Module];
/// The module writes no such thing.
const C: &[Writer] = &[Library];

struct Written {
    folder: TempDir,
}

impl Written {
    fn new(writer: Writer, script: &str) -> Written {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = match writer {
            Library => Command::new(otf2_write()),
            Module => {
                let mut command = Command::new(python());
                command.env("PYTHONPATH", otf2_module());
                command.arg(root().join("tests/tools/otf2_write.py"));
                command
            }
        };
        let mut process = command
            .arg(folder.path().join("archive"))
            .stdin(Stdio::piped())
            .spawn()
            .expect("the writer can be run");
        let mut stdin = process.stdin.take().expect("a pipe");
        let is_known = |line: &&str| {
            let name = line.split(' ').next().unwrap_or_default();
            writer == Library || !["map", "offset", "marker", "mark"].contains(&name)
        };
        for line in script.lines().filter(is_known) {
            writeln!(stdin, "{line}").expect("the writer reads");
        }
        drop(stdin);
        assert!(process.wait().expect("it ends").success(), "{writer:?}: {script}");
        Written { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("archive").join(name)
    }

    /// The names of what is found, in the order of the alphabet.
    fn faults(&self) -> Vec<&'static str> {
        let findings = check_archive(&self.path("traces.otf2"));
        let mut names: Vec<&str> = findings.iter().map(|finding| finding.name).collect();
        names.sort_unstable();
        names
    }
}

#[test]
fn sound_archives_of_others_are_sound() {
    for writer in [Library, Module] {
        let written = Written::new(writer, SOUND);
        printed(&written.path("traces.otf2"), &[]);
        assert_eq!(written.faults(), [""; 0], "{writer:?}");
    }
}

/// Lines of the script, their replacements, and what is found then in archives of which writers.
const FAULTS: &[(&str, &str, &[&str], &[Writer])] = &[
    // Counts and definitions.
    ("location 1 1 0 0", "location 1 1 0 1", &["event_count"], C),
    ("region 2 3", "region 2 3\nregion 2 3", &["defined_twice"], C),
    ("map 1 3 0 1 2", "map 1 3 0 1 2\nmap 1 3 0 1 2", &["defined_twice"], C),
    ("clock 1 30\n", "", &["clock_properties"], C),
    ("clock 1 30", "clock 1 30\nclock 1 30", &["clock_properties"], C),
    ("paradigm 3 1\n", "", &["paradigm"], BOTH),
    ("comm 1 2", "comm 1 9", &["undefined_reference"], C),
    ("string 0\n", "", &["undefined_reference"], C),
    ("mark 5 0 1 1", "mark 5 0 1 9", &["undefined_reference"], C),
    ("mark 5 0 1 1", "mark 5 3 1 1", &["undefined_reference"], C),
    ("node 0 -1\ngroup 0 1 0 -1", "group 0 1 0 -1\nnode 0 -1", &["forward_reference"], C),
    ("members 1 5 3 0 1", "members 1 5 3 0 1 8", &["group"], C),
    ("members 0 4 3 0 1 2", "members 0 4 3 0 1 9", &["group"], C),
    ("location 2 2 1 0", "location 2 1 1 0", &["location_group"], BOTH),
    ("location 2 2 1 0", "location 2 2 0 0", &["location_group"], BOTH),
    ("group 1 2 0 0", "group 1 2 0 -1", &["location_group"], BOTH),
    ("offset 1 10 0", "offset 1 30 0", &["clock_offset"], C),
    // Times.
    ("clock 1 30", "clock 1 20", &["outside_clock"], C),
    ("clock 1 30", "clock 2 29", &["outside_clock"], C),
    ("offset 1 20 2", "offset 1 20 1000", &["outside_clock", "program"], C),
    // What events refer to.
    ("at 2 5 enter 2\nat 2 6 leave 2", "at 2 5 enter 9\nat 2 6 leave 9", &["undefined_reference"], C),
    ("map 1 3 0 1 2", "map 1 3 0 9 2", &["undefined_reference"], C),
    ("metric 0 4", "metric 3 4", &["undefined_reference"], C),
    ("string_parameter 0 0", "string_parameter 7 0", &["undefined_reference"], C),
    ("string_parameter 0 0", "string_parameter 0 7", &["undefined_reference"], C),
    ("send 0 1", "send 8 1", &["undefined_reference"], C),
    ("with 1 14 2", "with 1 14 9", &["undefined_reference"], C),
    ("with 0 4 42", "with 0 3 42", &["attributes"], C),
    ("metric 0 4", "metric 0 8", &["metric"], C),
    ("string_parameter 0 0", "string_parameter 1 0", &["parameter"], C),
    ("number_parameter 1 9", "number_parameter 0 9", &["parameter"], C),
    ("send 0 1", "send 0 2", &["rank"], BOTH),
    ("receive 0 0", "receive 1 1", &["rank"], BOTH),
    ("get 0 0 5", "get 0 3 5", &["rank"], BOTH),
    // Regions.
    ("at 2 6 leave 2", "at 2 6 leave 1", &["nesting", "not_left"], BOTH),
    ("at 2 6 leave 2\n", "", &["not_left"], BOTH),
    ("at 2 5 enter 2\n", "", &["nesting"], BOTH),
    // Teams.
    ("at 0 2 fork\n", "", &["fork_join"], BOTH),
    ("at 0 10 join\n", "", &["fork_join"], BOTH),
    ("at 1 9 team_end 0\n", "", &["team"], BOTH),
    ("at 1 9 team_end 0", "at 1 9 team_end 1", &["team"], BOTH),
    ("at 1 3 team_begin 0", "at 1 3 team_begin 1", &["not_a_member", "team"], BOTH),
    // Tasks.
    ("at 0 4 create 0 0 1\n", "", &["task_unknown"], BOTH),
    ("at 0 4 create 0 0 1", "at 0 4 create 0 0 1\nat 0 4 create 0 0 1", &["task_twice"], BOTH),
    ("at 0 8 complete 0 0 1\n", "", &["task_not_complete"], BOTH),
    ("at 0 8 leave 2\n", "", &["task_not_left"], BOTH),
    ("at 0 8 complete 0 0 1", "at 0 8 complete 0 0 2", &["task_not_complete", "task_unknown"], BOTH),
    ("at 0 8 switch 0 0 0", "at 0 8 switch 0 1 0", &["not_a_member"], BOTH),
    ("switch 0 0 1", "switch 0 5 1", &["not_a_member", "task_not_complete", "task_unknown"], BOTH),
    // Locks.
    ("at 0 6 release 7 1\n", "", &["lock"], BOTH),
    ("at 0 5 acquire 7 1\n", "", &["lock", "lock_order"], BOTH),
    ("7 acquire 7 2\nat 1 8 release 7 2", "7 acquire 7 3\nat 1 8 release 7 3", &["lock_order"], BOTH),
    ("7 acquire 7 2\nat 1 8 release 7 2", "7 acquire 7 1\nat 1 8 release 7 1", &["lock_order"], BOTH),
    // Programs.
    ("at 0 1 program_begin\n", "", &["program"], BOTH),
    ("at 0 30 program_end\n", "", &["program"], BOTH),
    ("at 0 1 program_begin\nat 0 1 enter 0", "at 0 1 enter 0\nat 0 2 program_begin", &["program"], BOTH),
    ("flush 14", "flush 40", &["program"], BOTH),
    // Transfers.
    ("at 2 8 done 0 5\n", "", &["rma"], BOTH),
    ("at 2 7 get 0 0 5\n", "", &["rma"], BOTH),
    ("at 2 7 get 0 0 5", "at 2 7 get 0 0 5\nat 2 7 get 0 0 5", &["rma"], BOTH),
];

#[test]
fn faults_that_others_write_are_found() {
    let mut wrong = Vec::new();
    for (from, to, expected, writers) in FAULTS {
        let script = SOUND.replacen(from, to, 1);
        assert_ne!(script, SOUND, "{from:?} is there");
        for writer in *writers {
            let faults = Written::new(*writer, &script).faults();
            if faults != *expected {
                wrong.push(format!("{writer:?}: {from:?} -> {to:?}: {faults:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn patch(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    fs::write(path, bytes).expect("written");
}

/// Gives the event at time 5 an earlier one: the library refuses to write that.
fn goes_back(bytes: &mut [u8]) {
    const TIMESTAMP: u8 = 5;
    let time = [TIMESTAMP, 5, 0, 0, 0, 0, 0, 0, 0];
    let place = bytes.windows(time.len()).position(|window| window == time);
    bytes[place.expect("an event at 5") + 1] = 3;
}

#[test]
fn damage_to_files_of_others_is_found() {
    // The anchor's counts of locations and definitions, its size of chunks; a chunk's numbers and its end.
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change, &[&str]); 8] = [
        ("traces.otf2", |bytes| bytes[30] += 1, &["location_count"]),
        ("traces.otf2", |bytes| bytes[38] += 1, &["definition_count"]),
        ("traces.otf2", |bytes| bytes[14] = 0, &["anchor"]),
        ("traces/0.evt", |bytes| bytes[10] += 1, &["chunk_numbers"]),
        ("traces/2.evt", |bytes| bytes.truncate(bytes.len() - 2), &["damaged"]),
        ("traces/0.evt", |bytes| goes_back(bytes), &["time_went_back"]),
        ("traces.def", |bytes| bytes.truncate(bytes.len() - 2), &["damaged"]),
        ("traces.marker", |bytes| bytes.truncate(bytes.len() - 2), &["damaged"]),
    ];
    for (file, change, expected) in changes {
        let written = Written::new(Library, SOUND);
        patch(&written.path(file), change);
        assert_eq!(written.faults(), expected, "{file}");
    }
    for (file, expected) in
        [("traces.otf2", "anchor"), ("traces/2.def", "missing_definitions"), ("traces/2.evt", "missing_file")]
    {
        let written = Written::new(Library, SOUND);
        fs::remove_file(written.path(file)).expect("a file");
        assert_eq!(written.faults(), [expected], "{file}");
    }
}

/// Archives are read to an end whatever is in their files, and nearly always something is wrong with them.
#[test]
fn no_byte_of_an_archive_makes_the_check_fail() {
    let written = Written::new(Library, SOUND);
    let (mut changes, mut found) = (0, 0);
    for file in ["traces.otf2", "traces.def", "traces/0.evt", "traces/1.def", "traces.marker"] {
        let path = written.path(file);
        let sound = fs::read(&path).expect("a file");
        for place in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[place] ^= 0xff;
            fs::write(&path, &bytes).expect("written");
            changes += 1;
            found += u32::from(!written.faults().is_empty());
        }
        fs::write(&path, sound).expect("written");
    }
    assert_eq!(written.faults(), [""; 0]);
    assert!(changes > 500 && found > changes / 2, "{found} of {changes}");
}
