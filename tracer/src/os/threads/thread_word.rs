//! One word per thread, zero when the thread starts. Reading it takes two instructions and no static thread-local
//! storage.
//!
//! A library loaded at run time gets static storage from the 1,664 bytes that glibc reserves for all such libraries
//! together. One variable of the initial-exec model puts *all* thread-local storage of the library there, including
//! that of Rust's standard library. Libraries that the program loads later may then fail to load. The alternative,
//! `__tls_get_addr`, costs 22 instructions per event, takes a lock and calls the program's `malloc`.
//!
//! So the word belongs to a POSIX key (`pthread_key_create`). glibc keeps the words of the first 32 keys within the
//! thread descriptor, each preceded by a sequence number that identifies the use of the key to which the word belongs:
//!
//! ```text
//! pthread_self() -> struct pthread { ... specific_1stblock: [{ seq, data }; 32] ... }
//!                                                                   ^ read relative to the thread pointer
//! ```
//!
//! The offset differs between versions and CPU architectures, so [`prepare`] determines it: it stores a value with
//! `pthread_setspecific` and searches the descriptor for that value. The offset is the same for all threads. The key is
//! chosen by two rules:
//!
//! * It was never used before. A thread that had a value for an earlier use of the key may still have that value.
//! * It is the last suitable one. Copies of the C library (`dlmopen`) number their keys independently, from zero,
//!   although they share the descriptor.
//!
//! If the program has taken all of these keys, any key is used. Its word is read only by [`get`], with a function call;
//! [`get_fast`] then always returns zero.
//!
//! When a thread ends, the destructors of its keys are called in up to four rounds, each of which clears the word. The
//! runtime's destructor may report events, so the destructor of this key stores the word again. glibc clears it for
//! good after the last round.

pub(crate) use place::{get, get_fast, is_usable, prepare, set};

#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod place {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

    use libc::pthread_key_t;

    /// Number of keys whose words are in the thread descriptor (`PTHREAD_KEY_2NDLEVEL_SIZE`).
    const KEYS_INSIDE: usize = 32;
    /// Number of bytes of the descriptor to search. The descriptor has at least 1,700 bytes, and the words end at byte
    /// 1,296 at most (x86_64 and aarch64, glibc 2.17 and later).
    const SEARCHED: usize = 1_312;
    /// Offset of a word that glibc reserves for later versions (`__padding`), and that is zero in each descriptor.
    const RESERVED: usize = 23 * size_of::<usize>();
    /// The value that [`prepare`] searches for.
    const MARK: usize = 0x6f6d_7074_7261_6365;

    /// Offset of the word that [`get_fast`] reads, from the thread pointer.
    static OFFSET: AtomicIsize = AtomicIsize::new(0);
    /// The key, and how its word is read; zero if there is none.
    static KEY: AtomicU64 = AtomicU64::new(0);
    const IS_INSIDE: u64 = 1 << 32;
    const IS_OUTSIDE: u64 = 1 << 33;

    /// Finds the word. Called by the library's constructor.
    pub(crate) fn prepare() {
        let keys: [Option<pthread_key_t>; KEYS_INSIDE + 1] = {
            let mut is_inside = true;
            std::array::from_fn(|_| {
                let key = is_inside.then(new_key).flatten()?;
                is_inside = (key as usize) < KEYS_INSIDE;
                Some(key)
            })
        };
        let of_key = |key: &pthread_key_t| Some((*key, IS_INSIDE, place_of(*key)?));
        let last = || Some((keys.iter().flatten().last().copied()?, IS_OUTSIDE, reserved()?));
        let chosen = keys.iter().flatten().rev().find_map(of_key).or_else(last);
        for key in keys.into_iter().flatten() {
            if chosen.is_none_or(|(chosen, ..)| chosen != key) {
                // SAFETY: a key of ours, with no value in any thread.
                unsafe { libc::pthread_key_delete(key) };
            }
        }
        if let Some((key, kind, place)) = chosen {
            // Relaxed: the constructor finishes before another thread calls the library.
            OFFSET.store(place.wrapping_sub(thread_pointer()) as isize, Ordering::Relaxed);
            KEY.store(kind | u64::from(key), Ordering::Relaxed);
        }
    }

    /// Whether there is a key. If the program has taken all keys, nothing can be traced.
    pub(crate) fn is_usable() -> bool {
        // Relaxed: stored by the constructor.
        KEY.load(Ordering::Relaxed) != 0
    }

    /// The calling thread's word; always zero if its key is outside of the descriptor. Only after [`is_usable`]
    /// returned true.
    #[inline(always)]
    pub(crate) fn get_fast() -> usize {
        // Relaxed: stored by the constructor.
        at(OFFSET.load(Ordering::Relaxed))
    }

    /// The calling thread's word; zero before [`prepare`].
    #[inline]
    pub(crate) fn get() -> usize {
        // Relaxed: as above.
        let key = KEY.load(Ordering::Relaxed);
        match key & (IS_INSIDE | IS_OUTSIDE) {
            0 => 0,
            IS_INSIDE => get_fast(),
            // SAFETY: a key of ours, which is never deleted.
            _ => unsafe { libc::pthread_getspecific(key as pthread_key_t) as usize },
        }
    }

    /// Stores the calling thread's word.
    pub(crate) fn set(word: usize) {
        // Relaxed: as above.
        let key = KEY.load(Ordering::Relaxed);
        if key & IS_INSIDE != 0 && (get_fast() != 0 || word == 0) {
            let place = thread_pointer().wrapping_add_signed(OFFSET.load(Ordering::Relaxed));
            // SAFETY: the thread's own word of our key.
            unsafe { (place as *mut usize).write_volatile(word) };
        } else if key != 0 {
            // The first value of a thread is stored with the function, so that glibc knows that the thread has values
            // to clear.
            // SAFETY: as in `get`.
            unsafe { libc::pthread_setspecific(key as pthread_key_t, word as *const c_void) };
        }
    }

    /// `pthread_setspecific(KEY, word)`. In the last round, it may run after ThreadSanitizer's destructor. Then no
    /// instrumented code may run, so this is written in assembly, which is never instrumented.
    #[unsafe(naked)]
    unsafe extern "C" fn store_again(_word: *mut c_void) {
        #[cfg(target_arch = "x86_64")]
        core::arch::naked_asm!(
            "mov rsi, rdi",
            "mov edi, dword ptr [rip + {key}]",
            "jmp qword ptr [rip + {set}@GOTPCREL]",
            key = sym KEY,
            set = sym libc::pthread_setspecific,
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::naked_asm!(
            "mov x1, x0",
            "adrp x16, {key}",
            "ldr w0, [x16, :lo12:{key}]",
            "b {set}",
            key = sym KEY,
            set = sym libc::pthread_setspecific,
        );
    }

    fn new_key() -> Option<pthread_key_t> {
        let mut key = 0;
        // SAFETY: `key` is valid for writing; the library, and so the destructor, stays mapped.
        let result = unsafe { libc::pthread_key_create(&raw mut key, Some(store_again)) };
        (result == 0).then_some(key)
    }

    /// Address of the calling thread's word of the key, if it is within the descriptor, and this is the key's first
    /// use.
    fn place_of(key: pthread_key_t) -> Option<usize> {
        // SAFETY: the key is ours.
        if unsafe { libc::pthread_setspecific(key, MARK as *const c_void) } != 0 {
            return None;
        }
        let descriptor = descriptor();
        let place = (1..SEARCHED / size_of::<usize>())
            .map(|word| descriptor + word * size_of::<usize>())
            // SAFETY: the descriptor has these bytes, by `SEARCHED`. Another thread may write some of them.
            .find(|place| unsafe { (*place as *const usize).read_volatile() } == MARK);
        // SAFETY: the key is ours; the previous word is in the descriptor, too.
        unsafe {
            libc::pthread_setspecific(key, std::ptr::null());
            // Sequence numbers count creations and deletions of a key.
            place.filter(|place| {
                let word = *place as *const usize;
                word.read_volatile() == 0 && word.sub(1).read_volatile() == 1
            })
        }
    }

    /// Address of a word of the calling thread's descriptor that is always zero.
    fn reserved() -> Option<usize> {
        let place = descriptor() + RESERVED;
        // SAFETY: of the descriptor.
        (unsafe { (place as *const usize).read_volatile() } == 0).then_some(place)
    }

    fn descriptor() -> usize {
        // SAFETY: only reads.
        unsafe { libc::pthread_self() as usize }
    }

    #[cfg(target_arch = "x86_64")]
    fn thread_pointer() -> usize {
        at(0)
    }

    /// The word at this offset from the thread pointer; at offset 0 is the thread pointer itself (psABI of x86_64).
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn at(offset: isize) -> usize {
        let word;
        // SAFETY: `prepare` determined that each thread has a word there.
        unsafe {
            core::arch::asm!("mov {word}, qword ptr fs:[{offset}]", word = out(reg) word, offset = in(reg) offset,
                options(readonly, nostack, preserves_flags, pure));
        }
        word
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn thread_pointer() -> usize {
        let pointer;
        // SAFETY: reads a register.
        unsafe {
            core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer,
                options(nomem, nostack, preserves_flags, pure));
        }
        pointer
    }

    /// The word at this offset from the thread pointer.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn at(offset: isize) -> usize {
        let place = thread_pointer().wrapping_add_signed(offset) as *const usize;
        // SAFETY: `prepare` determined that each thread has a word there.
        unsafe { place.read_volatile() }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn each_thread_has_a_word_of_its_own_that_is_zero_at_first() {
            // The library's constructor has prepared the word.
            assert_ne!(KEY.load(Ordering::Relaxed) & IS_INSIDE, 0);
            for number in 1..=8 {
                // One after the other, so that the C library gives them the same stack.
                let thread = std::thread::spawn(move || {
                    assert_eq!((get(), get_fast()), (0, 0));
                    for word in [number, number + 1, 0, number] {
                        set(word);
                        assert_eq!((get(), get_fast()), (word, word));
                    }
                });
                thread.join().unwrap();
            }
            assert_eq!(get(), 0);
        }

        #[test]
        fn the_reserved_word_is_zero() {
            assert!(reserved().is_some());
        }
    }
}

#[cfg(not(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod place {
    use std::cell::Cell;

    thread_local! { static WORD: Cell<usize> = const { Cell::new(0) } }

    pub(crate) fn prepare() {}

    pub(crate) fn is_usable() -> bool {
        true
    }

    pub(crate) fn get_fast() -> usize {
        WORD.get()
    }

    pub(crate) fn get() -> usize {
        WORD.get()
    }

    pub(crate) fn set(word: usize) {
        WORD.set(word);
    }
}
