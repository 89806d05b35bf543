//! OTF2, the format of Vampir, Scalasca and other HPC tools: a directory of files, written by [`otf2_archive`].
//! docs/otf2.md describes how items are mapped to records.
//!
//! ```text
//! threads       the state of a thread: open regions, teams, the running task
//! teams, tasks  the identities of teams and tasks in OTF2
//! regions       the names of constructs in OTF2
//! streams       operations of devices: regions and transfers
//! items         the records of each timeline item
//! thread_events the records of each thread event
//! mpi           MPI messages, collective operations and communicators
//! processes     the start and end of a process in the archive
//! strings, attributes
//!               texts, and attributes of events
//! options       the options and files of archives
//! properties    facts about the traces, as numbers
//! definitions   everything to which the events refer, written after all events
//! ```
//!
//! Events are written to the files immediately. Definitions stay in memory until the end, because a location's
//! definition contains its number of events. Their size depends on the number of distinct locations, regions, teams and
//! texts, not on the number of events.

mod communicators;
mod definitions;
mod items;
mod mpi;
mod note;
pub(crate) mod options;
mod processes;
mod regions;
mod streams;
mod tasks;
mod teams;
mod thread_events;
mod threads;
use std::io;
use std::path::Path;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{Item, LocationId, Point, Process, Sink, Summary, Wants};
use otf2_archive::archive::Archive;

use crate::otf2::definitions::attributes::Attributes;
use crate::otf2::definitions::process_times::ProcessTimes;
use crate::otf2::definitions::strings::Strings;
use communicators::Communicators;
use note::Note;
use options::Otf2Options;
use regions::Regions;
use streams::Streams;
use tasks::Tasks;
use teams::Teams;
use threads::Thread;

/// What a location of the timeline is in the archive.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The thread with this number.
    Thread(u32),
    /// The stream of a device with this index.
    Stream(u32),
    /// Left out.
    Nowhere,
}

/// Writes an archive.
pub(crate) struct Otf2 {
    host_only: bool,
    archive: Archive,
    strings: Strings,
    attributes: Attributes,
    regions: Regions,
    processes: Vec<Process>,
    times: Vec<ProcessTimes>,
    threads: Vec<Thread>,
    /// By location of the timeline.
    locations: Vec<Place>,
    /// The first thread of the current process.
    first_thread: usize,
    streams: Streams,
    teams: Teams,
    communicators: Communicators,
    tasks: Tasks,
    /// The number of each lock in the process.
    locks: FastMap<u64, u32>,
    next_lock: u32,
    notes: Vec<Note>,
    summaries: Vec<Summary>,
    start_realtime_ns: Option<u64>,
    error: Option<io::Error>,
}
impl Otf2 {
    /// Writes the events of about `locations` locations to the existing, empty directory `folder`.
    ///
    /// # Errors
    /// The directory is not writable.
    pub(crate) fn new(folder: &Path, options: Otf2Options, locations: usize) -> io::Result<Otf2> {
        Ok(Otf2 {
            host_only: options.host_only,
            archive: Archive::create(folder, locations)?,
            strings: Strings::new(),
            attributes: Attributes::new(),
            regions: Regions::new(options.enums),
            processes: Vec::new(),
            times: Vec::new(),
            threads: Vec::new(),
            locations: Vec::new(),
            first_thread: 0,
            streams: Streams::default(),
            teams: Teams::default(),
            communicators: Communicators::default(),
            tasks: Tasks::default(),
            locks: FastMap::default(),
            next_lock: 0,
            notes: Vec::new(),
            summaries: Vec::new(),
            start_realtime_ns: None,
            error: None,
        })
    }

    /// The thread of a location.
    #[inline]
    fn thread(&self, location: LocationId) -> Option<u32> {
        match self.locations[location.0 as usize] {
            Place::Thread(thread) => Some(thread),
            Place::Stream(_) | Place::Nowhere => None,
        }
    }

    /// The stream of a location.
    fn stream(&self, location: LocationId) -> Option<u32> {
        match self.locations[location.0 as usize] {
            Place::Stream(stream) => Some(stream),
            Place::Thread(_) | Place::Nowhere => None,
        }
    }

    /// The thread and the time of an event.
    #[inline]
    fn at(&mut self, at: Point) -> Option<(usize, u64)> {
        let thread = self.thread(at.location)? as usize;
        let time = at.time.unsigned_abs();
        if !self.threads[thread].is_seen {
            self.begin_thread(thread, time);
        }
        self.threads[thread].end_pause(time);
        Some((thread, time))
    }

    fn keep(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Fills in team numbers in events that were written before the numbers were known.
    #[inline]
    fn patch_teams(&mut self) {
        if self.teams.has_replacements() {
            self.patch_events();
        }
    }

    #[inline(never)]
    fn patch_events(&mut self) {
        for replacement in self.teams.replacements() {
            let thread = &mut self.threads[replacement.location as usize];
            // At this offset are the bytes after the record's number and length, and after the length of the first
            // field.
            let bytes = &replacement.bytes[..replacement.len];
            thread.file.patch(replacement.site, 3, bytes);
        }
    }
}

impl Sink for Otf2 {
    fn wants(&self) -> Wants {
        Wants::DEPENDENCES.and(Wants::THREAD_EVENTS).and(Wants::MPI)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => self.leave(leave),
            Item::ThreadEvent(at, event) => self.thread_event(*at, event),
            _ => self.other(item),
        }
    }

    fn failed(&self) -> bool {
        self.error.is_some()
            || self.streams.failed()
            || self.threads.iter().any(|thread| thread.file.failed())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.end_process();
        match self.error.take() {
            Some(error) => Err(error),
            None => self.write_definitions(),
        }
    }
}
