//! The tables of one process: receives its timeline, and writes the rows.

use std::io;
use std::path::PathBuf;

use omptrace_analysis::answers::{Accountant, Accounting, Answers, Cause, Place, Position, State};
use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{
    Annotation, Arguments, Category, Communicator, CommunicatorKind, DeviceWork, Enter, Interval, Item, Link,
    Location, LocationId, LocationKind, Message, MpiEvent, Ns, Point, Process, Region, RegionId, Root, Sink,
    Source, Summary, TaskId, TeamId, ThreadEvent, Wants,
};
use parquet::data_type::ByteArray;

use crate::annotations::AnyRow;
use crate::cells::Word;
use crate::samples::Functions;
use crate::schema::*;
use crate::share::Share;
use crate::table::Table;
use crate::tasks::Tasks;
use crate::teams::{Holds, Teams};

/// Number of items between two checks for completed states.
const ITEMS_PER_LOOK: u32 = 1 << 10;

/// Facts about the job to which a process belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// The largest possible error between the clocks of two processes.
    pub(crate) clock_error_ns: u64,
    /// Whether only tables of sums are written.
    pub(crate) sums_only: bool,
}

/// The directories of a process's tables: `table=slices/run=R/process=P`.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    pub(crate) root: PathBuf,
    pub(crate) run: String,
    /// The process's number in the job.
    pub(crate) process: usize,
    /// The rows that are written.
    pub(crate) share: Share,
}

impl Folders {
    /// The table with these rows.
    pub(crate) fn table<R: Row>(&self) -> Table<R> {
        let Folders { root, run, process, .. } = self;
        let table = R::SCHEMA.name;
        let folder = root.join(format!("table={table}/run={run}/process={process}"));
        Table::new(folder, self.share)
    }

    /// Whether this is the job's first process, whose tables have files even without rows, because readers need a file
    /// of each table to know its columns.
    pub(crate) fn is_first(&self) -> bool {
        self.process == 0 && self.share.number == 0
    }
}

/// An open region of a thread.
#[derive(Clone, Copy, Debug)]
struct Open {
    place: i32,
    begin: Ns,
    is_first: bool,
    team: Option<i64>,
    task: Option<i64>,
    /// The task of which this region is a slice.
    runs: Option<TaskId>,
}

/// A location, and its open regions.
#[derive(Debug, Default)]
struct Thread {
    open: Vec<Open>,
    teams: Vec<(TeamId, i64)>,
    /// The team or task of the region that starts next.
    forked: Option<TeamId>,
    switched: Option<TaskId>,
}

/// Creates a struct of tables that are opened, checked for failures and finished together.
macro_rules! tables {
    ($($name:ident: $row:ident),* $(,)?) => {
        /// Tables of events (as opposed to sums).
        struct Tables {
            $($name: Table<$row>,)*
        }

        impl Tables {
            fn new(folders: &Folders) -> Tables {
                Tables { $($name: folders.table(),)* }
            }

            fn failed(&self) -> bool {
                $(self.$name.failed())||*
            }

            fn finish(self, is_needed: bool) -> io::Result<()> {
                $(self.$name.finish(is_needed)?;)*
                Ok(())
            }
        }
    };
}

tables! {
    slices: SliceRow,
    instants: InstantRow,
    work: WorkRow,
    waits: WaitRow,
    flows: FlowRow,
    messages: MessageRow,
    collectives: CollectiveRow,
    communicators: CommunicatorRow,
    tasks: TaskRow,
    teams: TeamRow,
    locks: LockRow,
    device_ops: DeviceOpRow,
    counters: CounterRow,
    samples: SampleRow,
    annotations: AnnotationRow,
    annotation_values: AnnotationValueRow,
}

/// Writes the tables of one process.
pub(crate) struct Columns {
    job: Job,
    folders: Folders,
    tables: Tables,
    accountant: Accountant,
    /// Times by thread and place.
    sums: FastMap<(i32, Option<i32>), Accounting>,
    items: u32,
    start_realtime_ns: Option<u64>,
    process: Option<Process>,
    summary: Summary,
    locations: Vec<Location>,
    threads: Vec<Thread>,
    regions: Vec<Region>,
    counters: Vec<(ByteArray, &'static str)>,
    functions: Functions,
    tasks: Tasks,
    teams: Teams,
    holds: Holds,
}

impl Columns {
    pub(crate) fn new(job: Job, folders: Folders) -> Columns {
        Columns {
            job,
            tables: Tables::new(&folders),
            folders,
            accountant: Accountant::default(),
            sums: FastMap::default(),
            items: 0,
            start_realtime_ns: None,
            process: None,
            summary: Summary::default(),
            locations: Vec::new(),
            threads: Vec::new(),
            regions: Vec::new(),
            counters: Vec::new(),
            functions: Functions::default(),
            tasks: Tasks::default(),
            teams: Teams::default(),
            holds: Holds::default(),
        }
    }

    fn thread(&mut self, location: LocationId) -> &mut Thread {
        &mut self.threads[location.0 as usize]
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        let place = number(enter.region.0);
        let thread = &mut self.threads[enter.at.location.0 as usize];
        if let Some(team) = thread.forked.take() {
            self.teams.entered(team, place);
        }
        let runs = thread.switched.take();
        let region = &self.regions[enter.region.0 as usize];
        let task = match (runs, region.category) {
            (Some(task), _) => {
                let at = enter.at;
                self.tasks.switch(task, number(at.location.0), at.time)
            }
            (None, Category::ImplicitTask) => None,
            (None, _) => thread.open.last().and_then(|open| open.task),
        };
        thread.open.push(Open {
            place,
            begin: enter.at.time,
            is_first: enter.part == omptrace_timeline::model::Part::First,
            team: thread.teams.last().map(|(_, team)| *team),
            task,
            runs,
        });
    }

    fn leave(&mut self, at: Point) {
        let thread = &mut self.threads[at.location.0 as usize];
        let Some(open) = thread.open.pop() else {
            return;
        };
        if let Some(task) = open.runs {
            self.tasks.ran(task, at.time - open.begin);
        }
        self.tables.slices.push(SliceRow {
            thread: number(at.location.0),
            place: open.place,
            begin_ns: open.begin,
            end_ns: at.time,
            depth: thread.open.len() as i32,
            team: open.team,
            task: open.task,
            is_first: open.is_first,
        });
    }

    fn thread_event(&mut self, at: Point, event: &ThreadEvent) {
        let (location, now) = (number(at.location.0), at.time);
        match *event {
            ThreadEvent::Fork { team, requested } => {
                let thread = self.thread(at.location);
                thread.forked = Some(team);
                let parent = thread.teams.last().map(|(_, team)| *team);
                self.teams.fork(team, location, now, requested, parent);
            }
            ThreadEvent::Join { team } => {
                if let Some(row) = self.teams.join(team, now) {
                    self.tables.teams.push(row);
                }
            }
            ThreadEvent::TeamBegin { team, size, .. } => {
                let number = self.teams.begin(team, now, size);
                self.thread(at.location).teams.push((team, number));
            }
            ThreadEvent::TeamEnd { team } => {
                let teams = &mut self.thread(at.location).teams;
                if let Some(index) = teams.iter().rposition(|(known, _)| *known == team) {
                    teams.remove(index);
                }
            }
            ThreadEvent::TaskCreate { task, region, parent, is_undeferred, is_final, .. } => {
                let place = number(region.0);
                let flags = (is_undeferred, is_final);
                self.tasks.create(task, parent, (location, now), place, flags);
            }
            ThreadEvent::TaskSwitch { task, .. } => {
                self.thread(at.location).switched = Some(task);
            }
            ThreadEvent::TaskComplete { task } => {
                if let Some(row) = self.tasks.complete(task, now) {
                    self.tables.tasks.push(row);
                }
            }
            ThreadEvent::AcquireLock { lock, kind, order } => {
                let open = self.thread(at.location).open.last();
                let place = open.map(|open| open.place);
                let kind = kind.name().unwrap_or("mutex");
                self.holds.acquire((lock, order), kind, location, place, now);
            }
            ThreadEvent::ReleaseLock { lock, order } => {
                if let Some(row) = self.holds.release(lock, order, now) {
                    self.tables.locks.push(row);
                }
            }
            _ => {}
        }
    }

    fn link(&mut self, link: &Link) {
        self.tables.flows.push(FlowRow {
            kind: Word(link.kind.name()),
            from_thread: number(link.from.location.0),
            from_ns: link.from.time,
            to_thread: number(link.to.location.0),
            to_ns: link.to.time,
        });
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let location = &self.locations[interval.track.0 as usize];
        let LocationKind::DeviceQueue { device_num, .. } = location.kind else {
            return;
        };
        let (kind, bytes, source) = match &interval.work {
            Some(DeviceWork::Kernel(source)) => ("kernel", None, Some(*source)),
            Some(DeviceWork::TransferTo { bytes, source }) => ("transfer_to", Some(*bytes), Some(*source)),
            Some(DeviceWork::TransferFrom { bytes, source }) => {
                ("transfer_from", Some(*bytes), Some(*source))
            }
            Some(DeviceWork::DataOp(_)) => ("data_op", None, None),
            Some(DeviceWork::Native) | None => ("native", None, None),
        };
        let line: Option<&(String, u32)> = source.and_then(|source: &Source| source.line.as_ref());
        self.tables.device_ops.push(DeviceOpRow {
            queue: number(interval.track.0),
            device_num,
            kind: Word(kind),
            name: ByteArray::from(interval.name),
            begin_ns: interval.begin,
            end_ns: interval.end,
            bytes: bytes.map(u64::cast_signed),
            file: line.map(|(file, _)| ByteArray::from(file.as_str())),
            line: line.map(|(_, line)| number(*line)),
        });
    }

    /// Writes the completed states.
    fn take_states(&mut self) {
        for state in self.accountant.states() {
            self.state(&state);
        }
    }

    fn state(&mut self, state: &State) {
        let thread = number(state.thread.0);
        let place = state.place.map(|RegionId(place)| number(place));
        let ns = state.end.abs_diff(state.begin);
        let sums = self.sums.entry((thread, place)).or_default();
        sums.add(state.cause, ns);
        if self.job.sums_only {
            return;
        }
        if state.cause == Cause::Useful {
            return self.tables.work.push(WorkRow {
                thread,
                place,
                begin_ns: state.begin,
                end_ns: state.end,
            });
        }
        let holder = state.due.and_then(|due| due.holder);
        self.tables.waits.push(WaitRow {
            thread,
            place,
            begin_ns: state.begin,
            end_ns: state.end,
            cause: Word(state.cause.name()),
            wait_id: state.due.and_then(|due| due.wait_id).map(u64::cast_signed),
            blamed_thread: holder.map(|(thread, _)| number(thread.0)),
            blamed_place: holder.map(|(_, place)| number(place.0)),
        });
    }

    /// A thread communicates with another process.
    fn mpi(&mut self, at: Point, event: &MpiEvent) {
        match event {
            MpiEvent::Send(message, _) => self.message("send", at, message),
            MpiEvent::Receive(message, _) => self.message("receive", at, message),
            MpiEvent::CollectiveEnd(part) | MpiEvent::CollectiveComplete(part, _) => {
                self.tables.collectives.push(CollectiveRow {
                    collective: signed(part.number.get()),
                    function: Word(part.function_name()),
                    communicator: number(part.communicator.0),
                    root: match part.root {
                        Root::Rank(rank) => Some(number(rank)),
                        _ => None,
                    },
                    thread: number(at.location.0),
                    begin_ns: part.posted,
                    end_ns: at.time,
                    sent_bytes: signed(part.sent),
                    received_bytes: signed(part.received),
                });
            }
            _ => {}
        }
    }

    fn message(&mut self, kind: &'static str, at: Point, message: &Message) {
        self.tables.messages.push(MessageRow {
            kind: Word(kind),
            message: message.other.map(|other| signed(other.message.get())),
            thread: number(at.location.0),
            time_ns: at.time,
            communicator: number(message.communicator.0),
            peer: number(message.peer),
            peer_rank: message.peer_in_world.map(number),
            tag: message.tag,
            bytes: signed(message.bytes),
            other_ns: message.other.map(|other| other.time),
        });
    }

    fn annotation(&mut self, annotation: &Annotation) {
        match AnyRow::of(annotation) {
            AnyRow::Annotation(row) => self.tables.annotations.push(row),
            AnyRow::Value(row) => self.tables.annotation_values.push(row),
        }
    }

    fn communicator(&mut self, communicator: &Communicator) {
        let ranks = |ranks: &[u32]| {
            let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
            ByteArray::from(ranks.join(",").as_str())
        };
        let remote = Some(&communicator.remote[..]).filter(|remote| !remote.is_empty());
        self.tables.communicators.push(CommunicatorRow {
            communicator: number(communicator.id.0),
            name: ByteArray::from(communicator.name.as_str()),
            kind: Word(match communicator.kind {
                CommunicatorKind::World => "world",
                CommunicatorKind::Own => "self",
                CommunicatorKind::Made => "made",
                CommunicatorKind::Between => "inter",
            }),
            parent: communicator.parent.map(|parent| number(parent.0)),
            size: communicator.members.len() as i32,
            members: ranks(&communicator.members),
            remote: remote.map(ranks),
        });
    }

    /// Processes an item, except for its effect on states.
    fn happened(&mut self, item: &Item<'_>) {
        match item {
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => self.leave(leave.at),
            Item::Instant(instant) => self.tables.instants.push(InstantRow {
                thread: number(instant.at.location.0),
                place: number(instant.region.0),
                time_ns: instant.at.time,
            }),
            Item::ThreadEvent(at, event) => self.thread_event(*at, event),
            Item::Interval(interval) => self.interval(interval),
            Item::Link(link) => self.link(link),
            Item::Mpi(at, event) => self.mpi(*at, event),
            Item::Communicator(communicator) => self.communicator(communicator),
            Item::Annotation(annotation) => self.annotation(annotation),
            Item::Function(function) => self.functions.define(function),
            Item::Sample(sample) => self.tables.samples.push(self.functions.row(sample)),
            Item::Count(count) => {
                let (counter, unit) = &self.counters[count.counter.0 as usize];
                self.tables.counters.push(CounterRow {
                    counter: counter.clone(),
                    unit: Word(unit),
                    time_ns: count.time,
                    value: count.value.rounded(),
                    value_double: count.value.real(),
                });
            }
            _ => {}
        }
    }

    fn write_definitions(&self) -> io::Result<()> {
        let is_needed = self.folders.is_first();
        let mut table = self.folders.table();
        for location in &self.locations {
            table.push(thread_row(location));
        }
        table.finish(is_needed)?;
        let mut table = self.folders.table();
        let places = self.regions.iter().map(Place::of);
        let places: Vec<(String, Place)> = places.map(with_construct).collect();
        for (region, (construct, place)) in self.regions.iter().zip(&places) {
            table.push(PlaceRow {
                place: number(region.id.0),
                name: &region.name,
                construct,
                file: place.file.as_deref(),
                line: place.line.map(number),
                function: place.function.as_deref(),
                category: Word(region.category.name()),
                position: place.position.map(Position::name),
            });
        }
        table.finish(is_needed)
    }

    fn write_process(&self, life: (Ns, Ns), answers: &Answers) -> io::Result<()> {
        let mut table = self.folders.table();
        let words = self.process.as_ref().map(|process| &process.command_line[..]);
        let command_line = words.unwrap_or_default().join(" ");
        if let Some(process) = &self.process {
            let summary = &self.summary;
            table.push(ProcessRow {
                name: &process.name,
                host: known(&process.host),
                os_pid: process.os_pid.into(),
                rank: process.rank.map(number),
                command_line: known(&command_line),
                exit_status: process.exit_status,
                processors: process.processors.map(number),
                job_start_realtime_ns: self.start_realtime_ns.map(u64::cast_signed),
                clock_error_ns: signed(self.job.clock_error_ns),
                begin_ns: life.0,
                end_ns: life.1,
                threads: number(answers.threads),
                critical_path_ns: signed(answers.critical_path.useful_ns),
                events: signed(summary.events),
                lost_events: signed(summary.lost),
                damages: signed(summary.damages),
                runtime: known(&summary.runtime),
                tracer: known(&summary.tracer),
                schema_version: number(SCHEMA_VERSION),
            });
        }
        table.finish(self.folders.is_first())
    }

    fn write_sums(&self, answers: &Answers) -> io::Result<()> {
        let is_needed = self.folders.is_first();
        let mut table = self.folders.table();
        let mut sums: Vec<_> = self.sums.iter().collect();
        sums.sort_unstable_by_key(|(key, _)| **key);
        let mut seen = Accounting::default();
        for ((thread, place), accounting) in sums {
            seen.merge(accounting);
            for (cause, ns) in accounting.iter().filter(|(_, ns)| *ns > 0) {
                table.push(AccountingRow {
                    thread: Some(*thread),
                    place: *place,
                    cause: Word(cause.name()),
                    ns: signed(ns),
                });
            }
        }
        for (cause, ns) in answers.accounting.iter() {
            let ns = signed(ns) - signed(seen[cause]);
            if ns != 0 {
                table.push(AccountingRow { thread: None, place: None, cause: Word(cause.name()), ns });
            }
        }
        table.finish(is_needed)?;

        let blame_constructs = constructs(answers.blame.iter().map(|row| &row.place));
        let mut table = self.folders.table();
        for (blame, construct) in answers.blame.iter().zip(&blame_constructs) {
            table.push(BlameRow {
                cause: Word(blame.cause.name()),
                construct,
                file: blame.place.file.as_deref(),
                line: blame.place.line.map(number),
                function: blame.place.function.as_deref(),
                ns: signed(blame.ns),
                position: blame.place.position.map(Position::name),
            });
        }
        table.finish(is_needed)?;

        let region_constructs = constructs(answers.regions.iter().map(|row| &row.place));
        let mut table = self.folders.table();
        for (region, construct) in answers.regions.iter().zip(&region_constructs) {
            let all = region.accounting.iter();
            // A region without any time keeps its row with the number of visits.
            for (cause, ns) in all.filter(|(cause, ns)| *ns > 0 || *cause == Cause::Useful) {
                table.push(RegionRow {
                    construct,
                    file: region.place.file.as_deref(),
                    line: region.place.line.map(number),
                    function: region.place.function.as_deref(),
                    visits: signed(region.visits),
                    duration_ns: signed(region.duration_ns),
                    cause: Word(cause.name()),
                    ns: signed(ns),
                    position: region.place.position.map(Position::name),
                });
            }
        }
        table.finish(is_needed)?;

        let rows = answers.critical_path.rows.iter();
        let row_constructs = constructs(rows.map(|row| &row.place));
        let mut table = self.folders.table();
        for (row, construct) in answers.critical_path.rows.iter().zip(&row_constructs) {
            table.push(PathRow {
                construct,
                file: row.place.file.as_deref(),
                line: row.place.line.map(number),
                function: row.place.function.as_deref(),
                ns: signed(row.ns),
                position: row.place.position.map(Position::name),
            });
        }
        table.finish(is_needed)
    }

    /// Writes rows for everything that did not end in the trace.
    fn end_all(&mut self) {
        for row in self.tasks.rest() {
            self.tables.tasks.push(row);
        }
        for row in self.teams.rest() {
            self.tables.teams.push(row);
        }
        for row in self.holds.rest() {
            self.tables.locks.push(row);
        }
    }
}

impl Sink for Columns {
    fn wants(&self) -> Wants {
        match self.job.sums_only {
            true => self.accountant.wants(),
            false => Wants::ALL,
        }
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Start { realtime_ns } => self.start_realtime_ns = Some(*realtime_ns),
            Item::Process(process) => self.process = Some((*process).clone()),
            Item::Location(location) => {
                self.locations.push((*location).clone());
                self.threads.push(Thread::default());
            }
            Item::Region(region) => self.regions.push((*region).clone()),
            Item::Counter(counter) => {
                let name = ByteArray::from(counter.name.as_str());
                self.counters.push((name, counter.unit));
            }
            Item::Summary(_, summary) => self.summary = (*summary).clone(),
            _ if self.job.sums_only => {}
            _ => self.happened(item),
        }
        self.accountant.item(item);
        self.items += 1;
        if self.items == ITEMS_PER_LOOK {
            self.items = 0;
            self.take_states();
        }
    }

    fn failed(&self) -> bool {
        self.tables.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.take_states();
        self.end_all();
        self.write_definitions()?;
        let accountant = std::mem::take(&mut self.accountant);
        let account = accountant.finish().unwrap_or_default();
        self.write_process((account.begin, account.end), &account.answers)?;
        self.write_sums(&account.answers)?;
        self.tables.finish(self.folders.is_first())
    }
}

fn thread_row(location: &Location) -> ThreadRow<'_> {
    let row = ThreadRow {
        thread: number(location.id.0),
        kind: Word("track"),
        name: &location.name,
        role: None,
        os_tid: None,
        device_num: None,
        wait_id: None,
    };
    match location.kind {
        LocationKind::Thread { os_tid, role, .. } => ThreadRow {
            kind: Word("thread"),
            role: Some(Word(role.name())),
            os_tid: (os_tid > 0).then_some(os_tid.into()),
            ..row
        },
        LocationKind::Device { device_num } => {
            ThreadRow { kind: Word("device"), device_num: Some(device_num), ..row }
        }
        LocationKind::DeviceQueue { device_num, .. } => {
            ThreadRow { kind: Word("device_queue"), device_num: Some(device_num), ..row }
        }
        LocationKind::Lock { wait_id } => {
            ThreadRow { kind: Word("lock"), wait_id: Some(wait_id.cast_signed()), ..row }
        }
        LocationKind::Track => row,
    }
}

/// Converts a number that counts up from 0. Such numbers stay below 2^31, because the tables' integers are signed with
/// 32 bits.
fn number(number: u32) -> i32 {
    number.cast_signed()
}

/// A place, and its construct as the programmer wrote it.
fn with_construct(place: Place) -> (String, Place) {
    (place.construct_with_sentinel(), place)
}

/// The constructs of places, as the programmer wrote them.
fn constructs<'p>(places: impl Iterator<Item = &'p Place>) -> Vec<String> {
    places.map(Place::construct_with_sentinel).collect()
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
