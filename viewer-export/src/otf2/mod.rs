//! OTF2, the format that Vampir, Scalasca and other tools of high-performance computing read: a directory of files, written
//! by [`otf2_archive`]. docs/otf2.md says what becomes of what.
//!
//! ```text
//! threads       what a thread does: open regions, teams, the task that it runs
//! teams, tasks  how OTF2 names teams and tasks
//! regions       how OTF2 names constructs
//! streams       what devices do: regions and transfers
//! items         what each item of the timeline writes
//! thread_events what each event of a thread writes
//! mpi           messages, collective operations and communicators of MPI
//! processes     how a process begins and ends in the archive
//! strings, attributes
//!               texts, and details of events
//! options       the options of archives, and the files of one
//! properties    what the archive was made of, in numbers
//! definitions   all that the events refer to, written when they are complete
//! ```
//!
//! Events go to the files as they come. Definitions stay in memory until the end, for a location's states how many events
//! it has. They grow with what is distinct - locations, regions, teams, texts - and not with the number of events.

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

/// The place of a location of the timeline in the archive.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A thread, whose number it is.
    Thread(u32),
    /// A stream of a device, by its place.
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
    /// The first thread of the process that is written now.
    first_thread: usize,
    streams: Streams,
    teams: Teams,
    communicators: Communicators,
    tasks: Tasks,
    /// The number of each lock of the process.
    locks: FastMap<u64, u32>,
    next_lock: u32,
    notes: Vec<Note>,
    summaries: Vec<Summary>,
    start_realtime_ns: Option<u64>,
    error: Option<io::Error>,
}
impl Otf2 {
    /// Writes into `folder`, which is there and empty, the events of about `locations` locations.
    ///
    /// # Errors
    /// The directory cannot be written to.
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

    /// The thread that a location is.
    #[inline]
    fn thread(&self, location: LocationId) -> Option<u32> {
        match self.locations[location.0 as usize] {
            Place::Thread(thread) => Some(thread),
            Place::Stream(_) | Place::Nowhere => None,
        }
    }

    /// The stream that a location is.
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

    /// Gives teams their numbers in events where they were not known.
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
            // After the record's number and length, and the number of bytes of its first field.
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
