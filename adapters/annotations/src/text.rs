//! Names, each with a number that events have in its place.
//!
//! A table that only grows: buckets of lists. A text is found without a lock, and inserted by one exchange of a list's head. Its
//! number is recorded with it before the first event that has the number, in each session:
//!
//! ```text
//! intern(b"axpy") -> Text { number: 7, told: 0, .. } -- told() --> omptrace_object_defined 7 "axpy"
//!                                                          |
//!                                                          v
//!                                                  omptrace_annotation_begin name=7
//! ```
//!
//! Two threads may both record the number. Readers take either.

use core::ffi::c_char;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout};

use interpose::memory::KernelMemory;
use omptrace_trace_format::field::ObjectKind;

use crate::domain;
use crate::recorder::{Active, recorder, settings};

/// Bytes of a text that are kept.
pub(crate) const LONGEST: usize = 512;
/// Lists of texts.
const BUCKETS: usize = 1 << 14;
/// Texts of a process, at most: the program makes new ones all the time. Those beyond have no number.
const MOST: u32 = 1 << 20;

/// A text, followed by its bytes. It stays.
#[derive(Debug)]
pub(crate) struct Text {
    next: *const Text,
    hash: u64,
    pub(crate) number: u32,
    kind: ObjectKind,
    /// The domain of a category.
    parent: u32,
    /// The session that has it.
    told: AtomicU32,
    /// The next tool's handle for the same.
    pub(crate) theirs: AtomicUsize,
    /// An object of the interface's for the same.
    pub(crate) object: AtomicUsize,
    /// Whether a domain is recorded.
    pub(crate) is_on: bool,
    length: usize,
}

// SAFETY: what is not atomic does not change once other threads know of the text.
unsafe impl Sync for Text {}

static TEXTS: [AtomicPtr<Text>; BUCKETS] = [const { AtomicPtr::new(null_mut()) }; BUCKETS];
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The session that has all categories.
static CATEGORIES_TOLD: AtomicU32 = AtomicU32::new(0);

impl Text {
    pub(crate) fn bytes(&self) -> &[u8] {
        let first = (&raw const *self).wrapping_add(1).cast::<u8>();
        // SAFETY: `make` has placed them there.
        unsafe { core::slice::from_raw_parts(first, self.length) }
    }

    /// Its number, which the session in progress knows.
    #[inline]
    pub(crate) fn told(&self, active: Active) -> u32 {
        // Acquire; pairs with Release in `tell`.
        if self.told.load(Ordering::Acquire) != active.session {
            self.tell(active);
        }
        self.number
    }

    #[cold]
    #[inline(never)]
    fn tell(&self, Active { recorder, session }: Active) {
        let is_shown = self.kind == ObjectKind::domain
            || self.kind == ObjectKind::category
            || settings().is_none_or(|settings| !settings.without_text);
        if recorder.define(self.kind, self.number, self.parent, is_shown.then_some(self.bytes())) {
            // Release; pairs with Acquire in `told`: who reads it has a later time.
            self.told.store(session, Ordering::Release);
        }
    }

    /// The text that a handle of the program's is.
    ///
    /// # Safety
    /// Null, or a text that [`intern`] gave.
    pub(crate) unsafe fn of_handle(handle: *const Text) -> Option<&'static Text> {
        // SAFETY: by the caller's promise; texts stay.
        unsafe { handle.as_ref() }
    }
}

/// The text with these bytes. `None` where there is no memory for it, or there are too many.
pub(crate) fn intern(kind: ObjectKind, bytes: &[u8]) -> Option<&'static Text> {
    find_or_make(kind, 0, 0, bytes)
}

/// A text that the next tool knows apart by its domain.
pub(crate) fn intern_in(kind: ObjectKind, domain: u32, bytes: &[u8]) -> Option<&'static Text> {
    find_or_make(kind, domain, 0, bytes)
}

/// A category of a domain gets its name.
pub(crate) fn name_category(domain: u32, category: u32, name: &[u8]) {
    if let Some(text) = find_or_make(ObjectKind::category, domain, category, name) {
        match newest() {
            Some(newest) => {
                text.told(newest);
            }
            None => CATEGORIES_TOLD.store(0, Ordering::Relaxed),
        }
    }
}

/// The session in progress knows the names of categories from now on.
#[inline]
pub(crate) fn tell_categories(active: Active) {
    // Relaxed: who is late tells them again.
    if CATEGORIES_TOLD.load(Ordering::Relaxed) != active.session {
        CATEGORIES_TOLD.store(active.session, Ordering::Relaxed);
        all().filter(|text| text.kind == ObjectKind::category).for_each(|text| {
            text.told(active);
        });
    }
}

/// The tracer with its newest session, whether that records the calling thread or not.
fn newest() -> Option<Active> {
    let recorder = recorder()?;
    match recorder.session() {
        0 => None,
        session => Some(Active { recorder, session }),
    }
}

/// Tells all texts that the session knows once more: a flight recorder may have lost them.
pub fn tell_all() {
    if let Some(newest) = newest() {
        let is_told = |text: &&Text| text.told.load(Ordering::Relaxed) == newest.session;
        all().filter(is_told).for_each(|text| text.tell(newest));
    }
}

fn all() -> impl Iterator<Item = &'static Text> {
    TEXTS.iter().flat_map(|bucket| {
        // Acquire; pairs with Release in `find_or_make`.
        // SAFETY: null, or a text, which stays.
        let first = unsafe { bucket.load(Ordering::Acquire).as_ref() };
        // SAFETY: as above.
        std::iter::successors(first, |text| unsafe { text.next.as_ref() })
    })
}

#[inline]
fn find_or_make(kind: ObjectKind, parent: u32, number: u32, bytes: &[u8]) -> Option<&'static Text> {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let seed = u64::from(kind.0) ^ u64::from(parent) << 8 ^ u64::from(number) << 40;
    let hash = hash(seed, bytes);
    let bucket = &TEXTS[(hash >> 40) as usize % BUCKETS];
    // Acquire; pairs with Release below.
    let head = bucket.load(Ordering::Acquire);
    let is_it = |text: &Text| {
        let is_same = text.hash == hash && text.kind == kind && text.parent == parent;
        is_same && (number == 0 || text.number == number) && text.bytes() == bytes
    };
    // SAFETY: null, or a text that stays.
    match find(head, null_mut(), is_it) {
        Some(text) => Some(text),
        None => insert(bucket, head, &is_it, || make(kind, parent, number, hash, bytes)),
    }
}

#[inline]
fn find(from: *const Text, until: *const Text, is_it: impl Fn(&Text) -> bool) -> Option<&'static Text> {
    let mut at = from;
    while at != until {
        // SAFETY: a text, which stays; lists end with null, and `until` is null or in the list.
        let text = unsafe { at.as_ref()? };
        if is_it(text) {
            return Some(text);
        }
        at = text.next;
    }
    None
}

#[cold]
#[inline(never)]
fn insert(
    bucket: &AtomicPtr<Text>,
    searched: *mut Text,
    is_it: &dyn Fn(&Text) -> bool,
    make: impl FnOnce() -> *mut Text,
) -> Option<&'static Text> {
    let new = make();
    if new.is_null() {
        return None;
    }
    let mut searched = searched;
    loop {
        // SAFETY: nobody else knows of it yet.
        unsafe { (*new).next = searched };
        // Release; pairs with Acquire in `find_or_make`.
        match bucket.compare_exchange(searched, new, Ordering::Release, Ordering::Acquire) {
            // SAFETY: it stays.
            Ok(_) => return unsafe { new.as_ref() },
            Err(head) => {
                // Another thread was faster, perhaps with the same text. Ours is not used then.
                if let Some(text) = find(head, searched, is_it) {
                    return Some(text);
                }
                searched = head;
            }
        }
    }
}

/// A new text; null where there is no memory.
fn make(kind: ObjectKind, parent: u32, number: u32, hash: u64, bytes: &[u8]) -> *mut Text {
    let number = match number {
        // Relaxed: only the number counts.
        0 => match NUMBER.fetch_add(1, Ordering::Relaxed).wrapping_add(1) {
            number @ 1..=MOST => number,
            _ => {
                NUMBER.store(MOST, Ordering::Relaxed);
                return null_mut();
            }
        },
        number => number,
    };
    // A zero behind the bytes makes a C string of them.
    let Ok(layout) = Layout::from_size_align(size_of::<Text>() + bytes.len() + 1, align_of::<Text>()) else {
        return null_mut();
    };
    // SAFETY: the size is not 0.
    let text = unsafe { KernelMemory.alloc(layout) }.cast::<Text>();
    if text.is_null() {
        return text;
    }
    // SAFETY: new memory of that size.
    unsafe {
        text.write(Text {
            next: null_mut(),
            hash,
            number,
            kind,
            parent,
            told: AtomicU32::new(0),
            theirs: AtomicUsize::new(0),
            object: AtomicUsize::new(0),
            is_on: kind != ObjectKind::domain || domain::is_on(bytes),
            length: bytes.len(),
        });
        let first = text.add(1).cast::<u8>();
        first.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        first.add(bytes.len()).write(0);
    }
    text
}

/// A hash of eight bytes at a time.
#[inline]
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = mix(seed, bytes.len() as u64);
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    let last = match bytes.last_chunk() {
        // Some of them once more.
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte)),
    };
    let hash = mix(hash, last);
    hash ^ hash >> 29
}

/// The bytes of a C string, up to [`LONGEST`]; none where it is null.
///
/// # Safety
/// Null, or a C string that stays meanwhile.
#[inline]
pub(crate) unsafe fn c_bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: by the caller's promise; nothing behind its end is read.
    unsafe { core::slice::from_raw_parts(text.cast(), libc::strnlen(text, LONGEST)) }
}

/// Texts by the addresses of C strings that had them. A program may use an address for other texts, so each is compared.
static OF_ADDRESS: [AtomicPtr<Text>; ADDRESSES] = [const { AtomicPtr::new(null_mut()) }; ADDRESSES];
const ADDRESSES: usize = 1 << 10;

/// The text of a C string; `None` where it is null or empty.
///
/// # Safety
/// As of [`c_bytes`].
#[inline]
pub(crate) unsafe fn of_c(kind: ObjectKind, string: *const c_char) -> Option<&'static Text> {
    let address = string.addr();
    // Strings of a program lie side by side, of any length.
    let place = &OF_ADDRESS[(address ^ address >> 10 ^ (kind.0 as usize) << 7) % ADDRESSES];
    // Acquire; pairs with Release in `of_c_by_hash`.
    // SAFETY: null, or a text, which stays.
    if let Some(text) = unsafe { place.load(Ordering::Acquire).as_ref() }
        && text.kind == kind
        && !string.is_null()
        // SAFETY: by the caller's promise; the bytes of a text end with zero.
        && unsafe { libc::strncmp(string, text.bytes().as_ptr().cast(), LONGEST) } == 0
    {
        return Some(text);
    }
    // SAFETY: by the caller's promise.
    unsafe { of_c_by_hash(kind, string, place) }
}

/// The same, and keeps it in `place`.
///
/// # Safety
/// As of [`c_bytes`].
#[inline(never)]
unsafe fn of_c_by_hash(
    kind: ObjectKind,
    string: *const c_char,
    place: &AtomicPtr<Text>,
) -> Option<&'static Text> {
    // SAFETY: by the caller's promise.
    let text = match unsafe { c_bytes(string) } {
        [] => None,
        bytes => intern(kind, bytes),
    }?;
    // Release; pairs with Acquire in `of_c`.
    place.store(core::ptr::from_ref(text).cast_mut(), Ordering::Release);
    Some(text)
}

/// Calls `f` with the text of a string of `wchar_t`, in UTF-8.
///
/// # Safety
/// Null, or such a string.
pub(crate) unsafe fn with_wide<T>(wide: *const u32, f: impl FnOnce(&[u8]) -> T) -> T {
    let mut bytes = [0_u8; LONGEST];
    let mut length = 0;
    let mut at = wide;
    while !at.is_null() {
        // SAFETY: by the caller's promise: the end was not met.
        let number = unsafe { at.read_unaligned() };
        let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        if number == 0 || length + character.len_utf8() > LONGEST {
            break;
        }
        length += character.encode_utf8(&mut bytes[length..]).len();
        at = at.wrapping_add(1);
    }
    f(&bytes[..length])
}
