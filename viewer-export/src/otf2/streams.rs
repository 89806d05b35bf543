//! The operations of devices in OTF2: one accelerator per device with its streams, and a window through which data is
//! transferred.
//!
//! Transfers are written from the device's point of view, as Score-P does: the device gets (`RmaGet`) what the host
//! sends, and puts (`RmaPut`) what the host receives. The other side is the thread that requested the transfer. On the
//! timeline, an arrow after the transfer shows this thread, so the newest transfer of a stream is held back until the
//! arrow.

use std::collections::HashMap;
use std::io;

use otf2_archive::archive::Archive;
use otf2_archive::encoding::RmaWinRef;
use otf2_archive::events::EventFile;
use otf2_archive::records::{Enter, Leave, Record, RmaGet, RmaOpCompleteBlocking, RmaPut};

use crate::otf2::definitions::process_times::ProcessTimes;

/// The archive's only window.
pub(super) const WINDOW: RmaWinRef = RmaWinRef(0);

/// A device of a process.
pub(super) struct Accelerator {
    /// The index of its process.
    pub(super) process: usize,
    device_num: i32,
    pub(super) name: String,
}

/// A location that is a device queue.
pub(super) struct Stream {
    /// The index of its device.
    pub(super) accelerator: usize,
    pub(super) name: String,
    pub(super) file: EventFile,
    /// The newest transfer, if it has not been written yet.
    transfer: Option<Transfer>,
}

/// A transfer whose other side is not known yet.
struct Transfer {
    times: (u64, u64),
    bytes: u64,
    direction: Direction,
    attributes: Vec<u8>,
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToDevice,
    FromDevice,
}

/// A participant in transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Member {
    /// A thread, by index.
    Thread(u32),
    /// A stream, by index.
    Stream(u32),
}

/// The devices of an archive.
#[derive(Default)]
pub(super) struct Streams {
    /// The devices with streams.
    pub(super) accelerators: Vec<Accelerator>,
    pub(super) streams: Vec<Stream>,
    /// The members of the window, by rank.
    pub(super) members: Vec<Member>,
    ranks: HashMap<Member, u32>,
    transfers: u64,
    pub(super) times: ProcessTimes,
    /// The names of the devices of the current process.
    names: HashMap<i32, String>,
    /// The thread that stands for unknown requesters of transfers: the main thread of the current process.
    main: Option<u32>,
    /// The first stream of the current process.
    first_stream: usize,
}

impl Streams {
    /// The process has a device, which may get streams.
    pub(super) fn device(&mut self, device_num: i32, name: &str) {
        // A device that is initialized again has another track on the timeline.
        self.names.entry(device_num).or_insert_with(|| name.to_owned());
    }

    /// Adds a stream to a device of `process`, whose main thread is `main`, if known. Returns the stream's index.
    pub(super) fn add(
        &mut self,
        archive: &Archive,
        (process, main): (usize, Option<u32>),
        device_num: i32,
        name: &str,
    ) -> u32 {
        self.main = main;
        let is_it = |known: &Accelerator| known.process == process && known.device_num == device_num;
        let known = self.accelerators.iter().position(is_it);
        let accelerator = known.unwrap_or(self.accelerators.len());
        if known.is_none() {
            let name = self.names.get(&device_num).map_or(name, String::as_str);
            self.accelerators.push(Accelerator { process, device_num, name: name.to_owned() });
        }
        let place = self.streams.len() as u32;
        self.streams.push(Stream {
            accelerator,
            name: name.to_owned(),
            file: EventFile::create(archive.stream_events(place), archive.event_chunk_bytes()),
            transfer: None,
        });
        self.rank(Member::Stream(place));
        place
    }

    fn rank(&mut self, member: Member) -> u32 {
        let next = self.members.len() as u32;
        let rank = *self.ranks.entry(member).or_insert(next);
        if rank == next {
            self.members.push(member);
        }
        rank
    }

    fn extend(&mut self, times: (u64, u64)) {
        self.times.extend(times.0);
        self.times.extend(times.1);
    }

    /// Writes a region of the stream.
    pub(super) fn region(&mut self, stream: u32, times: (u64, u64), attributes: &[u8], region: u32) {
        self.write_transfer(stream, None);
        self.extend(times);
        let file = &mut self.streams[stream as usize].file;
        file.region(Enter::ID, times.0, attributes, region);
        file.region(Leave::ID, times.1, &[], region);
    }

    /// Adds a transfer of the stream.
    pub(super) fn transfer(
        &mut self,
        stream: u32,
        times: (u64, u64),
        attributes: &[u8],
        direction: Direction,
        bytes: u64,
    ) {
        self.write_transfer(stream, None);
        self.extend(times);
        self.streams[stream as usize].transfer =
            Some(Transfer { times, bytes, direction, attributes: attributes.to_vec() });
    }

    /// A thread requested the newest operation of the stream.
    pub(super) fn asked_by(&mut self, stream: u32, thread: u32) {
        self.write_transfer(stream, Some(thread));
    }

    fn write_transfer(&mut self, stream: u32, thread: Option<u32>) {
        let Some(transfer) = self.streams[stream as usize].transfer.take() else {
            return;
        };
        let asking = thread.or(self.main).map(Member::Thread);
        let remote = self.rank(asking.unwrap_or(Member::Stream(stream)));
        self.transfers += 1;
        let (window, bytes, matching_id) = (WINDOW, transfer.bytes, self.transfers);
        let ((begin, end), attributes) = (transfer.times, &transfer.attributes[..]);
        let file = &mut self.streams[stream as usize].file;
        match transfer.direction {
            Direction::ToDevice => {
                file.event(begin, attributes, &RmaGet { window, remote, bytes, matching_id })
            }
            Direction::FromDevice => {
                file.event(begin, attributes, &RmaPut { window, remote, bytes, matching_id })
            }
        };
        let completion = RmaOpCompleteBlocking { window, matching_id };
        file.event(end, &[], &completion);
    }

    /// Begins the next process.
    ///
    /// # Errors
    /// The first write error of the previous process.
    pub(super) fn next_process(&mut self) -> io::Result<()> {
        let mut finished = Ok(());
        for stream in self.first_stream..self.streams.len() {
            self.write_transfer(stream as u32, None);
            finished = finished.and(self.streams[stream].file.finish());
        }
        self.first_stream = self.streams.len();
        self.names.clear();
        finished
    }

    pub(super) fn failed(&self) -> bool {
        self.streams.iter().any(|stream| stream.file.failed())
    }
}
