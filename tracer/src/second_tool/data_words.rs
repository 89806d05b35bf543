//! Two data words for each object for which the runtime has one: a thread, a parallel region, a task.
//!
//! The runtime's word contains a *handle*: the number and the generation of a pair of words. A runtime may copy its
//! word, as LLVM's does for serialized regions; the copy contains the same handle. A handle of an object that has ended
//! refers to no pair, and never leads to freed memory.
//!
//! Words that must not be written have no handle: those of target regions, whose ids are in device records, and of a
//! `taskwait`, which must be empty for LLVM's runtime. For such objects, the second tool's word belongs to the address.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use ompt_sys::ompt_data_t;

use crate::os::threads::lock::Mutex;

type Data = *mut ompt_data_t;

/// The two words of an object. All zeros is an unused pair.
#[derive(Debug)]
#[repr(C)]
struct Pair {
    ours: UnsafeCell<u64>,
    theirs: UnsafeCell<u64>,
    generation: AtomicU32,
}

/// Distinguishes a handle from other values.
const TAG: u64 = 0xa7 << 56;
const GENERATION_BITS: u32 = 28;
const NUMBER_BITS: u32 = 28;
const SLAB_BITS: u32 = 12;
const PAIRS_IN_SLAB: usize = 1 << SLAB_BITS;
const MAX_SLABS: usize = 1 << (NUMBER_BITS - SLAB_BITS);
const GENERATIONS: u32 = (1 << GENERATION_BITS) - 1;

/// The pairs, by their numbers. They are never freed, but reused.
static SLABS: [AtomicPtr<Pair>; MAX_SLABS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_SLABS];
/// The number of the first unused pair.
static FRESH: AtomicUsize = AtomicUsize::new(0);

/// Numbers of pairs that can be reused. A thread that finds one list locked uses another, so an interrupted thread, or
/// one that a fork left behind, blocks no other thread.
static FREE: [Mutex<Vec<u32>>; 16] = [const { Mutex::new(Vec::new()) }; 16];

impl Pair {
    /// The pair with this number; `None` if its slab does not exist.
    fn of(number: u32) -> Option<&'static Pair> {
        let slab = SLABS.get(number as usize >> SLAB_BITS)?;
        // Acquire; pairs with Release in `make_slab`: the pairs are zeros.
        let first = slab.load(Ordering::Acquire);
        // SAFETY: null, or the first of that many pairs, which are never freed.
        (!first.is_null()).then(|| unsafe { &*first.add(number as usize & (PAIRS_IN_SLAB - 1)) })
    }
}

/// The pair to which a word's value refers.
fn pair(value: u64) -> Option<(u32, &'static Pair)> {
    if value & (0xff << 56) != TAG {
        return None;
    }
    let number = (value & ((1 << NUMBER_BITS) - 1)) as u32;
    let generation = (value >> NUMBER_BITS) as u32 & GENERATIONS;
    let pair = Pair::of(number)?;
    // Acquire; pairs with Release in `create`.
    (pair.generation.load(Ordering::Acquire) & GENERATIONS == generation).then_some((number, pair))
}

/// Both tools' words for the object with this runtime's word.
///
/// # Safety
/// `data` is null, or valid.
#[inline]
pub(crate) unsafe fn split(data: Data) -> (Data, Data) {
    if data.is_null() {
        return (data, data);
    }
    // SAFETY: by this function's contract; every bit pattern is a number.
    match pair(unsafe { (*data).value }) {
        Some((_, pair)) => (pair.ours.get().cast(), pair.theirs.get().cast()),
        None => (data, of_address(data)),
    }
}

/// An object begins: stores a handle in the runtime's word, and clears both tools' words.
///
/// # Safety
/// `data` is null, or valid for writing.
pub(crate) unsafe fn create(data: Data) {
    if data.is_null() {
        return;
    }
    let Some((number, pair)) = take() else {
        return;
    };
    // SAFETY: the pair is unused: no handle has referred to it since it was released.
    unsafe {
        *pair.ours.get() = 0;
        *pair.theirs.get() = 0;
    }
    // Relaxed: as above.
    let generation = pair.generation.load(Ordering::Relaxed).wrapping_add(1);
    // Release; pairs with Acquire in `pair`.
    pair.generation.store(generation, Ordering::Release);
    let generation = u64::from(generation & GENERATIONS) << NUMBER_BITS;
    // SAFETY: by this function's contract.
    unsafe { (*data).value = TAG | generation | u64::from(number) };
}

/// Like [`create`], if the word is 0: for the initial parallel region, whose begin is not reported.
///
/// # Safety
/// As for [`create`].
pub(crate) unsafe fn create_where_empty(data: Data) {
    // SAFETY: by this function's contract; every bit pattern is a number.
    unsafe {
        if !data.is_null() && (*data).value == 0 {
            create(data);
        }
    }
}

/// An object has ended: its handle is invalid from now on.
///
/// # Safety
/// `data` is null, or valid.
pub(crate) unsafe fn release(data: Data) {
    if data.is_null() {
        return;
    }
    // SAFETY: by this function's contract; every bit pattern is a number.
    let Some((number, pair)) = pair(unsafe { (*data).value }) else {
        return;
    };
    // Release; pairs with Acquire in `pair`.
    pair.generation.fetch_add(1, Ordering::Release);
    give_back(number);
}

/// Takes an unused pair; `None` if all numbers are in use.
fn take() -> Option<(u32, &'static Pair)> {
    let used = lists().find_map(|list| list.try_lock()?.pop());
    let number = match used {
        Some(number) => number,
        None => {
            // Relaxed: only the number is shared.
            let number = FRESH.fetch_add(1, Ordering::Relaxed);
            if number >= MAX_SLABS << SLAB_BITS {
                return None;
            }
            make_slab(number >> SLAB_BITS);
            number as u32
        }
    };
    Some((number, Pair::of(number)?))
}

fn give_back(number: u32) {
    // If all lists are locked, the pair is never reused.
    if let Some(mut list) = lists().find_map(Mutex::try_lock) {
        list.push(number);
    }
}

/// The lists, starting with the one that this thread usually uses, chosen by the address of its stack.
fn lists() -> impl Iterator<Item = &'static Mutex<Vec<u32>>> {
    let here = 0_u8;
    let first = (&raw const here as usize >> 16).wrapping_mul(0x9e37_79b9) >> 8;
    (0..FREE.len()).map(move |step| &FREE[(first + step) % FREE.len()])
}

fn make_slab(slab: usize) {
    // Acquire; pairs with Release below.
    if !SLABS[slab].load(Ordering::Acquire).is_null() {
        return;
    }
    let empty =
        || Pair { ours: UnsafeCell::new(0), theirs: UnsafeCell::new(0), generation: AtomicU32::new(0) };
    let pairs: Box<[Pair]> = (0..PAIRS_IN_SLAB).map(|_| empty()).collect();
    let first = Box::into_raw(pairs).cast::<Pair>();
    // Release; pairs with Acquire in `Pair::of`.
    let is_first =
        SLABS[slab].compare_exchange(std::ptr::null_mut(), first, Ordering::Release, Ordering::Relaxed);
    if is_first.is_err() {
        // SAFETY: made above; another thread's slab is in use.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, PAIRS_IN_SLAB)) });
    }
}

/// A word of the second tool that belongs to an address.
#[derive(Debug)]
struct AtAddress {
    address: AtomicUsize,
    theirs: UnsafeCell<u64>,
}

// SAFETY: the word is used by the threads that the runtime permits to use its own word.
unsafe impl Sync for AtAddress {}

const ADDRESSES: usize = 4096;
const MAX_STEPS: usize = 64;

static AT_ADDRESS: [AtAddress; ADDRESSES] =
    [const { AtAddress { address: AtomicUsize::new(0), theirs: UnsafeCell::new(0) } }; ADDRESSES];

/// The second tool's word for the object at this address of the runtime. If there are too many, several objects share
/// one word.
pub(crate) fn of_address<T>(address: *mut T) -> Data {
    let address = address as usize;
    let first = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let mut place = &AT_ADDRESS[first % ADDRESSES];
    for step in 0..MAX_STEPS {
        place = &AT_ADDRESS[(first + step) % ADDRESSES];
        // Relaxed: the runtime orders uses of a word; the address never changes.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        match place.address.compare_exchange(0, address, success, failure) {
            Ok(_) => break,
            Err(taken) if taken == address => break,
            Err(_) => {}
        }
    }
    place.theirs.get().cast()
}

/// An object whose word belongs to its address begins.
pub(crate) fn begin_at<T>(address: *mut T) {
    if !address.is_null() {
        // SAFETY: a word of the table; no other thread uses an object that begins.
        unsafe { (*of_address(address)).value = 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word() -> ompt_data_t {
        ompt_data_t { value: 0 }
    }

    #[test]
    fn a_copied_word_leads_to_the_same_pair_and_an_ended_one_nowhere() {
        let (mut first, mut other) = (word(), word());
        // SAFETY: words of this test's.
        unsafe {
            create(&mut first);
            create(&mut other);
            let (ours, theirs) = split(&mut first);
            (*ours).value = 1;
            (*theirs).value = 2;
            let mut copy = first;
            assert_eq!(split(&mut copy), (ours, theirs));
            assert_ne!(split(&mut other).0, ours);
            assert_eq!((*split(&mut other).1).value, 0);
            release(&mut copy);
            let (after, at_address) = split(&mut first);
            assert_eq!(after, &raw mut first);
            assert_ne!(at_address, theirs);
            // Releasing twice has the effect of releasing once.
            release(&mut first);
            release(&mut other);
        }
    }

    #[test]
    fn words_that_are_not_written_belong_to_their_addresses() {
        let (mut one, mut two) = (word(), word());
        // SAFETY: words of this test's.
        unsafe {
            let (ours, theirs) = split(&mut one);
            assert_eq!(ours, &raw mut one);
            (*theirs).value = 7;
            assert_eq!(split(&mut one).1, theirs);
            assert_ne!(split(&mut two).1, theirs);
            assert_eq!(one.value, 0);
            begin_at(&raw mut one);
            assert_eq!((*theirs).value, 0);
            let null = std::ptr::null_mut();
            assert_eq!(split(null), (null, null));
        }
    }

    #[test]
    fn threads_have_pairs_of_their_own() {
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let mut words = [word(); 8];
                        // SAFETY: words of this thread's.
                        unsafe {
                            for (index, word) in words.iter_mut().enumerate() {
                                create(word);
                                (*split(word).1).value = thread << 32 | round << 8 | index as u64;
                            }
                            for (index, word) in words.iter_mut().enumerate() {
                                let value = (*split(word).1).value;
                                assert_eq!(value, thread << 32 | round << 8 | index as u64);
                                release(word);
                            }
                        }
                    }
                });
            }
        });
    }
}
