//! Tests which faults are found in given events. Events are written as words: time, name, numbers.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::check_archive;
use crate::archive::{Anchor, Archive};
use crate::encoding::*;
use crate::events::EventFile;
use crate::records::*;

const SOUND: [&str; 2] = [
    "1 program_begin; 1 enter 0; 2 fork; 3 team_begin 0; 3 enter 1; 4 create 0 0 1; 5 acquire 7 1; 6 release 7 1; \
     7 switch 0 0 1; 7 enter 2; 8 leave 2; 8 complete 0 0 1; 8 switch 0 0 0; 9 leave 1; 9 team_end 0; 10 join; \
     11 leave 0; 11 program_end",
    "3 team_begin 0; 3 enter 1; 6 put 4; 7 acquire 7 2; 8 release 7 2; 8 done 4; 9 leave 1; 9 team_end 0",
];

/// An archive of two locations, a team of both (0), a team of the first alone (1), and regions 0 to 2.
struct Sample {
    folder: TempDir,
}

impl Sample {
    fn new(events: [&str; 2]) -> Sample {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = Archive::create(folder.path(), 2).expect("a folder");
        let mut definitions = archive.global_definitions();
        let texts = ["", "OpenMP"];
        for (id, text) in (0..).zip(texts) {
            let text = text.to_owned();
            definitions.put(&String_ { id, text });
        }
        definitions.put(&ClockProperties {
            timer_resolution: 1_000_000_000,
            global_offset: 1,
            trace_length: 10,
            realtime_timestamp: Added(u64::MAX),
        });
        let (paradigm, name) = (paradigm::OPENMP, StringRef(1));
        definitions.put(&Paradigm { paradigm, name, class: 1 });
        definitions.put(&SystemTreeNode { id: 0, name, class: name, parent: SystemTreeNodeRef::UNDEFINED });
        definitions.put(&LocationGroup {
            id: 0,
            name,
            group_type: 1,
            system_tree_parent: SystemTreeNodeRef(0),
            creating_location_group: Added(LocationGroupRef::UNDEFINED),
        });
        for (location, events) in (0..).zip(events) {
            archive.local_definitions(location).finish().expect("written");
            definitions.put(&Location {
                id: location.into(),
                name,
                location_type: 1,
                number_of_events: write(&archive, location, events),
                location_group: LocationGroupRef(0),
            });
        }
        for id in 0..3 {
            definitions.put(&Region {
                id,
                name,
                description: name,
                legacy_type: 0,
                source_file: name,
                begin_line: 0,
                end_line: 0,
                canonical_name: name,
                role: role::CODE,
                paradigm,
                flags: 0,
            });
        }
        let members = [(4, vec![0, 1]), (5, vec![0, 1]), (5, vec![0])];
        for (id, (group_type, members)) in (0..).zip(members) {
            definitions.put(&Group { id, name, legacy_type: 0, members, group_type, paradigm, flags: 0 });
        }
        for id in 0..2 {
            definitions.put(&Comm {
                id,
                name,
                group: GroupRef(id + 1),
                parent: CommRef::UNDEFINED,
                flags: Added(0),
            });
        }
        definitions.put(&RmaWin { id: 0, name, comm: CommRef(0), flags: Added(0) });
        let anchor = Anchor {
            locations: 2,
            definitions: definitions.finish().expect("written"),
            properties: &[],
            trace_id: 1,
        };
        archive.finish(&anchor).expect("written");
        Sample { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names of the faults found.
    fn faults(&self) -> Vec<&'static str> {
        let findings = check_archive(&self.path("traces.otf2"));
        findings.iter().map(|finding| finding.name).collect()
    }
}

/// Writes the events of a location; returns their number.
fn write(archive: &Archive, location: u32, events: &str) -> u64 {
    let mut file = EventFile::create(archive.events(location), archive.event_chunk_bytes());
    for event in events.split(';') {
        let words: Vec<&str> = event.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u32>().expect("a number");
        let (time, paradigm) = (number(0).into(), paradigm::OPENMP);
        let team = |index| CommRef(number(index));
        match words[1] {
            "enter" => file.region(Enter::ID, time, &[], number(2)),
            "leave" => file.region(Leave::ID, time, &[], number(2)),
            name => drop(match name {
                "program_begin" => {
                    let (name, arguments) = (StringRef(0), Vec::new());
                    file.event(time, &[], &ProgramBegin { name, arguments })
                }
                "program_end" => file.event(time, &[], &ProgramEnd { exit_status: 0 }),
                "fork" => {
                    let requested_threads = 2;
                    let fork = ThreadFork { paradigm, requested_threads };
                    file.event(time, &[], &fork)
                }
                "join" => file.event(time, &[], &ThreadJoin { paradigm }),
                "team_begin" => file.event(time, &[], &ThreadTeamBegin { team: team(2) }),
                "team_end" => file.event(time, &[], &ThreadTeamEnd { team: team(2) }),
                "create" => {
                    let (team, creating_thread, generation) = (team(2), number(3), number(4));
                    let create = ThreadTaskCreate { team, creating_thread, generation };
                    file.event(time, &[], &create)
                }
                "switch" => {
                    let (team, creating_thread, generation) = (team(2), number(3), number(4));
                    let switch = ThreadTaskSwitch { team, creating_thread, generation };
                    file.event(time, &[], &switch)
                }
                "complete" => {
                    let (team, creating_thread, generation) = (team(2), number(3), number(4));
                    let complete = ThreadTaskComplete { team, creating_thread, generation };
                    file.event(time, &[], &complete)
                }
                "acquire" => {
                    let (lock, acquisition_order) = (number(2), number(3));
                    let acquire = ThreadAcquireLock { paradigm, lock, acquisition_order };
                    file.event(time, &[], &acquire)
                }
                "release" => {
                    let (lock, acquisition_order) = (number(2), number(3));
                    let release = ThreadReleaseLock { paradigm, lock, acquisition_order };
                    file.event(time, &[], &release)
                }
                "put" => {
                    let (window, remote, bytes) = (RmaWinRef(0), 0, 8);
                    let matching_id = number(2).into();
                    let put = RmaPut { window, remote, bytes, matching_id };
                    file.event(time, &[], &put)
                }
                "done" => {
                    let (window, matching_id) = (RmaWinRef(0), number(2).into());
                    let done = RmaOpCompleteBlocking { window, matching_id };
                    file.event(time, &[], &done)
                }
                _ => panic!("{name} is no event"),
            }),
        }
    }
    file.finish().expect("written");
    file.events()
}

#[test]
fn a_sound_archive_has_no_faults() {
    assert_eq!(Sample::new(SOUND).faults(), [""; 0]);
}

/// Events of the sound archive, their replacement, and the faults that this causes.
const EVENT_FAULTS: &[(&str, &str, &[&str])] = &[
    ("11 program_end", "12 program_end", &["outside_clock"]),
    ("7 enter 2", "6 enter 2", &["time_went_back"]),
    ("1 enter 0", "0 enter 0", &["time_went_back"]),
    ("7 enter 2", "7 enter 3", &["undefined_reference", "nesting", "task_not_left"]),
    ("8 leave 2", "8 leave 1", &["nesting", "task_not_left"]),
    ("8 leave 2; ", "", &["task_not_left"]),
    ("11 leave 0; ", "", &["not_left"]),
    ("2 fork; ", "", &["fork_join"]),
    ("10 join; ", "", &["fork_join"]),
    ("3 team_begin 0; 3 enter 1; 6", "3 team_begin 1; 3 enter 1; 6", &["not_a_member", "team"]),
    ("9 team_end 0; 10", "9 team_end 1; 10", &["team"]),
    ("4 create 0 0 1; ", "", &["task_unknown"]),
    ("4 create 0 0 1", "4 create 0 0 1; 4 create 0 0 1", &["task_twice"]),
    ("8 complete 0 0 1; ", "", &["task_not_complete"]),
    ("8 switch 0 0 0", "8 switch 0 1 0", &["not_a_member"]),
    ("8 switch 0 0 0; ", "", &["nesting", "not_left", "task_not_complete", "task_unknown", "team"]),
    ("6 release 7 1; ", "", &["lock"]),
    ("6 release 7 1", "6 release 7 3", &["lock"]),
    ("7 acquire 7 2; 8 release 7 2", "7 acquire 7 3; 8 release 7 3", &["lock_order"]),
    ("7 acquire 7 2; 8 release 7 2", "7 acquire 7 1; 8 release 7 1", &["lock_order"]),
    ("1 program_begin; ", "", &["program"]),
    (
        "10 join; 11 leave 0; 11 program_end",
        "9 join; 9 leave 0; 9 program_end; 10 enter 0; 10 leave 0",
        &["program"],
    ),
    ("8 done 4; ", "", &["rma"]),
    ("6 put 4; ", "", &["rma"]),
];

#[test]
fn faults_of_events_are_found() {
    for (from, to, expected) in EVENT_FAULTS {
        let events = SOUND.map(|events| events.replace(from, to));
        assert_ne!(events, SOUND, "{from} is there");
        let mut faults = Sample::new([&events[0], &events[1]]).faults();
        faults.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(faults, expected, "{from} -> {to}");
    }
}

/// If there are several faults of a kind, the first one is the same in each run, and its place is described.
#[test]
fn the_first_fault_of_a_kind_is_named_in_words() {
    let created = "4 create 0 0 9; 4 create 0 0 2; 4 create 0 0 5; 4 create 0 1 3; 4 create 0 0 1";
    let events = SOUND.map(|events| events.replace("4 create 0 0 1", created));
    let unknown = "7 enter 2; 7 switch 0 1 8; 7 switch 0 0 7; 7 switch 0 0 1";
    let events = events.map(|events| events.replace("7 enter 2", unknown));
    for _ in 0..20 {
        let sample = Sample::new([&events[0], &events[1]]);
        let findings = check_archive(&sample.path("traces.otf2"));
        let text = |name: &str| {
            let found = findings.iter().find(|finding| finding.name == name);
            found.unwrap_or_else(|| panic!("{name} in {findings:?}")).text.clone()
        };
        let not_complete = text("task_not_complete");
        assert!(
            not_complete.ends_with("(6; first: task 2 that thread 0 of team 0 created)"),
            "{not_complete}"
        );
        let unknown = text("task_unknown");
        assert!(unknown.ends_with("(2; first: task 7 that thread 0 of team 0 created)"), "{unknown}");
    }
}

fn patch(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    fs::write(path, bytes).expect("written");
}

#[test]
fn faults_of_files_are_found() {
    let check = |file: &str, change: fn(&mut Vec<u8>), expected: &[&str]| {
        let sample = Sample::new(SOUND);
        patch(&sample.path(file), change);
        assert_eq!(sample.faults(), expected, "{file}");
    };
    // The counts of locations and definitions, and the chunk size.
    check("traces.otf2", |bytes| bytes[30] += 1, &["location_count"]);
    check("traces.otf2", |bytes| bytes[38] += 1, &["definition_count"]);
    check("traces.otf2", |bytes| bytes[14] = 0, &["anchor"]);
    check("traces.otf2", |bytes| bytes.truncate(40), &["anchor"]);
    check("traces/0.evt", |bytes| bytes[10] += 1, &["chunk_numbers"]);
    check("traces/1.evt", |bytes| bytes[1] = 7, &["damaged", "event_count"]);
    check("traces/1.evt", |bytes| bytes.truncate(bytes.len() - 2), &["damaged"]);
    check("traces.def", |bytes| bytes.truncate(bytes.len() - 2), &["damaged"]);
}

#[test]
fn missing_files_are_found() {
    let check = |file: &str, expected: &[&str]| {
        let sample = Sample::new(SOUND);
        fs::remove_file(sample.path(file)).expect("a file");
        assert_eq!(sample.faults(), expected, "{file}");
    };
    check("traces.otf2", &["anchor"]);
    check("traces/1.def", &["missing_definitions"]);
    check("traces/1.evt", &["missing_file"]);
}

/// Changes each byte of each file in several ways, and truncates each file at each byte.
#[test]
fn no_byte_of_any_file_makes_it_panic() {
    /// Covers the records, but not the padding of a chunk.
    const BYTES: usize = 300;

    let sample = Sample::new(SOUND);
    for file in ["traces.otf2", "traces.def", "traces/0.def", "traces/0.evt", "traces/1.evt"] {
        let path = sample.path(file);
        let sound = fs::read(&path).expect("a file");
        for at in 0..sound.len().min(BYTES) {
            for byte in [0, 1, 0x80, 0xff, sound[at] ^ 1] {
                let mut bytes = sound.clone();
                bytes[at] = byte;
                fs::write(&path, bytes).expect("written");
                sample.faults();
            }
            fs::write(&path, &sound[..at]).expect("written");
            sample.faults();
        }
        fs::write(&path, sound).expect("written");
    }
    assert_eq!(sample.faults(), [""; 0]);
}
