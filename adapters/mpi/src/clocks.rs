//! Comparisons of the clocks of a job's hosts: rank 0 asks the first rank of each other host for its time.
//!
//! ```text
//! rank 0               own: in the middle
//!      ----ask---->         |        ----answer---->
//! first rank of a host    peer                          error: half the round trip at most
//! ```
//!
//! Clocks are compared at the end of `MPI_Init` and at the begin of `MPI_Finalize`, by messages on a communicator that
//! the program does not know. All ranks of the job take part in creating that communicator, so a rank without this
//! library would keep the others waiting for ever. No rank can find out by itself whether all others have the library:
//! hence clocks are compared only if the user requests it (`OMPTRACE_MPI_CLOCKS`). Ranks that are not recorded take
//! part, too.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::call::Context;
use crate::family::UNDEFINED;
use crate::next::{Pmpi, to};
use crate::object::rank_and_size;

static COMM_SPLIT: Pmpi = Pmpi::of(c"PMPI_Comm_split");
static COMM_SET_ERRHANDLER: Pmpi = Pmpi::of(c"PMPI_Comm_set_errhandler");
static COMM_FREE: Pmpi = Pmpi::of(c"PMPI_Comm_free");
static SEND: Pmpi = Pmpi::of(c"PMPI_Send");
static RECV: Pmpi = Pmpi::of(c"PMPI_Recv");

/// The communicator of rank 0 and the first ranks of the other hosts, by rank; 0 if there is none or this process is
/// not a member.
static COMMUNICATOR: AtomicU64 = AtomicU64::new(0);
/// Whether the program has called `MPI_Abort`. Functions that run at its exit may call `MPI_Finalize`.
static IS_ABORTED: AtomicBool = AtomicBool::new(false);

/// The rank that asks, in this communicator.
const FIRST: u64 = 0;
/// The messages of that rank: a query, or the end of the queries.
const ASK: u64 = 1;
const ENOUGH: u64 = 0;

/// Called at the end of the initialization of MPI with a world, by all ranks of the world.
///
/// # Safety
/// MPI is initialized with this context's world, and all of its ranks call this function.
#[inline(never)]
pub(crate) unsafe fn begin(context: &Context) {
    if !(context.tracer.compares_clocks)() {
        return;
    }
    let world = context.family.world;
    // SAFETY: by the caller's promise, here and below.
    unsafe {
        let Some((rank, _)) = rank_and_size(world).filter(|(_, size)| *size > 1) else { return };
        let color = i32::try_from((context.tracer.host)()).unwrap_or(0);
        let Some(mut of_host) = split(world, color, rank) else { return };
        let is_first = rank_and_size(of_host).is_some_and(|(rank, _)| rank == 0);
        COMM_FREE.succeeds([to(&mut of_host), 0, 0, 0, 0]);
        let Some(mut firsts) = split(world, if is_first { 0 } else { UNDEFINED }, rank) else { return };
        if !is_first {
            return;
        }
        if rank_and_size(firsts).is_none_or(|(_, size)| size < 2) {
            COMM_FREE.succeeds([to(&mut firsts), 0, 0, 0, 0]);
            return;
        }
        if let Some(handler) = context.family.errors_return() {
            COMM_SET_ERRHANDLER.succeeds([firsts, handler, 0, 0, 0]);
        }
        // Relaxed: the program initializes MPI before it finalizes it.
        COMMUNICATOR.store(firsts, Ordering::Relaxed);
        compare(context, firsts);
    }
}

/// Creates a communicator of the ranks of the world that pass the same color.
///
/// # Safety
/// All ranks of the world call it.
unsafe fn split(world: u64, color: i32, rank: i32) -> Option<u64> {
    let mut made = 0_u64;
    let [color, rank] = [color, rank].map(|number| u64::from(number.cast_unsigned()));
    // SAFETY: by the caller's promise.
    unsafe { COMM_SPLIT.succeeds([world, color, rank, to(&mut made), 0]) }.then_some(made)
}

/// Called before the program finalizes MPI.
///
/// # Safety
/// MPI is initialized, and all members of the communicator call this function.
#[inline(never)]
pub(crate) unsafe fn end(context: &Context) {
    // Relaxed: as above.
    let mut communicator = COMMUNICATOR.swap(0, Ordering::Relaxed);
    if communicator != 0 && !IS_ABORTED.load(Ordering::Relaxed) {
        // SAFETY: by the caller's promise; all members do the same.
        unsafe {
            compare(context, communicator);
            COMM_FREE.succeeds([to(&mut communicator), 0, 0, 0, 0]);
        }
    }
}

/// The program aborts the job, so other ranks may not exist any more.
pub(crate) fn abort() {
    // Relaxed: used by this thread, which may call `MPI_Finalize` later.
    IS_ABORTED.store(true, Ordering::Relaxed);
}

/// Compares the clocks of all members with the clock of the first one.
///
/// # Safety
/// All members of the communicator call it.
unsafe fn compare(context: &Context, communicator: u64) {
    /// Time limit for all comparisons together, as far as the network permits. `MOST_FOR_ONE_NS` limits each of them.
    const MOST_NS: u64 = 1_000_000_000;
    const MOST_FOR_ONE_NS: u64 = 10_000_000;

    // SAFETY: by the caller's promise.
    let Some((rank, size)) = (unsafe { rank_and_size(communicator) }) else { return };
    let channel = |peer: u64| Channel { context, communicator, peer };
    if rank != 0 {
        // A failure is an error of the job, which the program will notice itself.
        // SAFETY: the first rank asks.
        let _ = unsafe { channel(FIRST).answer() };
        return;
    }
    let others = size.max(1) as u64 - 1;
    let limit = (MOST_NS / others.max(1)).min(MOST_FOR_ONE_NS);
    for peer in 1..=others {
        // SAFETY: the other ranks answer.
        if let Some(best) = unsafe { channel(peer).ask(limit) } {
            (context.tracer.measured)(best.rank, best.own_ns, best.peer_ns, best.round_trip_ns);
        }
    }
}

/// A connection between two members of the communicator.
#[derive(Debug)]
struct Channel<'c> {
    context: &'c Context,
    communicator: u64,
    peer: u64,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug)]
struct Measured {
    rank: u32,
    own_ns: u64,
    peer_ns: u64,
    round_trip_ns: u64,
}

impl Channel<'_> {
    const TAG: u64 = 0;

    fn now(&self) -> u64 {
        (self.context.tracer.raw_clock)()
    }

    /// # Safety
    /// The peer receives this number of words.
    unsafe fn send<const N: usize>(&self, words: [u64; N]) -> Option<()> {
        let address = words.as_ptr() as usize as u64;
        let (byte, bytes) = (self.context.family.byte(), size_of_val(&words) as u64);
        // SAFETY: by the caller's promise.
        let is_sent =
            unsafe { SEND.succeeds_with([address, bytes, byte, self.peer, Self::TAG, self.communicator, 0]) };
        is_sent.then_some(())
    }

    /// # Safety
    /// The peer sends this number of words.
    unsafe fn receive<const N: usize>(&self) -> Option<[u64; N]> {
        let mut words = [0_u64; N];
        let (byte, bytes) = (self.context.family.byte(), size_of_val(&words) as u64);
        let (address, status) = (words.as_mut_ptr() as usize as u64, self.context.family.status_ignore);
        // SAFETY: by the caller's promise; there is room for the words.
        let is_received = unsafe {
            RECV.succeeds_with([address, bytes, byte, self.peer, Self::TAG, self.communicator, status])
        };
        is_received.then_some(words)
    }

    /// Answers until the peer ends its queries.
    ///
    /// # Safety
    /// The peer calls [`Channel::ask`].
    unsafe fn answer(&self) -> Option<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            let world = rank_and_size(self.context.family.world)?.0;
            while self.receive::<1>()? != [ENOUGH] {
                self.send([self.now(), world.cast_unsigned().into()])?;
            }
        }
        Some(())
    }

    /// Asks until the three shortest round trips differ by at most 10 %, or `limit_ns` has passed; returns the answer
    /// with the shortest round trip.
    ///
    /// # Safety
    /// The peer calls [`Channel::answer`].
    unsafe fn ask(&self, limit_ns: u64) -> Option<Measured> {
        const LEAST: u32 = 10;
        const MOST: u32 = 1000;
        const TRIPS: usize = 3;

        let begin = self.now();
        let mut best: Option<Measured> = None;
        let mut shortest = [u64::MAX; TRIPS];
        for round in 1..=MOST {
            let before = self.now();
            // SAFETY: by the caller's promise.
            let [peer_ns, rank] = unsafe {
                self.send([ASK])?;
                self.receive()?
            };
            let after = self.now();
            let round_trip_ns = after.saturating_sub(before);
            let own_ns = before + round_trip_ns / 2;
            if best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
                best = Some(Measured { rank: rank as u32, own_ns, peer_ns, round_trip_ns });
            }
            if round_trip_ns < shortest[TRIPS - 1] {
                shortest[TRIPS - 1] = round_trip_ns;
                shortest.sort_unstable();
            }
            let are_alike = shortest[TRIPS - 1] - shortest[0] <= shortest[0] / 10;
            if round >= LEAST && are_alike || after.saturating_sub(begin) > limit_ns {
                break;
            }
        }
        // SAFETY: by the caller's promise.
        unsafe { self.send([ENOUGH]) }?;
        best
    }
}
