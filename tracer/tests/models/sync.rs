//! The tracer's `sync` with loom's types, which can weaken one ordering: see [`crate::check`].

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::panic::Location;

use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::Ordering;
use loom::sync::{Mutex, atomic};

thread_local! {
    /// The source locations that requested more than [`Ordering::Relaxed`], as `file:line:column`. Loom runs all
    /// threads of a model on one thread.
    static SITES: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    /// The location that gets a weaker ordering.
    static WEAKENED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The locations seen on this thread.
pub(crate) fn sites() -> BTreeSet<String> {
    SITES.with_borrow(Clone::clone)
}

/// From now on, `site` gets a weaker ordering on this thread.
pub(crate) fn weaken(site: String) {
    WEAKENED.set(Some(site));
}

/// The ordering for a request of `asked`: the same or, if the caller's location is weakened, the next weaker one.
#[track_caller]
fn granted(asked: Ordering) -> Ordering {
    if asked == Ordering::Relaxed {
        return asked;
    }
    let caller = Location::caller().to_string();
    let is_weakened = WEAKENED.with_borrow(|site| site.as_ref() == Some(&caller));
    SITES.with_borrow_mut(|sites| sites.insert(caller));
    match asked {
        _ if !is_weakened => asked,
        Ordering::SeqCst => Ordering::AcqRel,
        _ => Ordering::Relaxed,
    }
}

/// The standard library's `fence`.
#[track_caller]
pub(crate) fn fence(asked: Ordering) {
    match granted(asked) {
        Ordering::Relaxed => {}
        granted => atomic::fence(granted),
    }
}

/// `AtomicBool: bool` wraps loom's type of that name with [`granted`].
macro_rules! atomics {
    ($($name:ident $(<$t:ident>)?: $value:ty),+ $(,)?) => {$(
        #[derive(Debug)]
        pub(crate) struct $name $(<$t>)? (atomic::$name $(<$t>)?);

        #[allow(dead_code, reason = "not every type needs every operation")]
        impl $(<$t>)? $name $(<$t>)? {
            #[track_caller]
            pub(crate) fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            #[track_caller]
            pub(crate) fn load(&self, asked: Ordering) -> $value {
                self.0.load(granted(asked))
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, asked: Ordering) {
                self.0.store(value, granted(asked));
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $value, asked: Ordering) -> $value {
                self.0.swap(value, granted(asked))
            }

            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                asked: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, granted(asked), failure)
            }

            #[track_caller]
            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                asked: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange_weak(current, new, granted(asked), failure)
            }
        }
    )+};
}

atomics! {
    AtomicBool: bool,
    AtomicI32: i32,
    AtomicU8: u8,
    AtomicU64: u64,
    AtomicUsize: usize,
    AtomicPtr<T>: *mut T,
}

/// `AtomicUsize: usize` adds the arithmetic operations.
macro_rules! counters {
    ($($name:ident: $value:ty),+ $(,)?) => {$(
        #[allow(dead_code, reason = "not every type needs every operation")]
        impl $name {
            #[track_caller]
            pub(crate) fn fetch_add(&self, value: $value, asked: Ordering) -> $value {
                self.0.fetch_add(value, granted(asked))
            }

            #[track_caller]
            pub(crate) fn fetch_sub(&self, value: $value, asked: Ordering) -> $value {
                self.0.fetch_sub(value, granted(asked))
            }
        }
    )+};
}

counters! {
    AtomicU64: u64,
    AtomicUsize: usize,
}

/// Replaces crossbeam's queue, which loom cannot check. A popped item was pushed before; `is_empty` guarantees no more
/// than its caller's own fences. Users must be ordered after its creation.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    made: UnsafeCell<bool>,
    items: Mutex<VecDeque<T>>,
    pushed: atomic::AtomicUsize,
    popped: atomic::AtomicUsize,
}

// SAFETY: loom detects unordered accesses to `made`.
unsafe impl<T: Send> Sync for Queue<T> {}

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Queue<T> {
        let made = UnsafeCell::new(false);
        // SAFETY: not shared yet.
        made.with_mut(|made| unsafe { *made = true });
        Queue {
            made,
            items: Mutex::new(VecDeque::with_capacity(capacity)),
            pushed: atomic::AtomicUsize::new(0),
            popped: atomic::AtomicUsize::new(0),
        }
    }

    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.assert_made();
        self.items.lock().expect("no model panics here").push_back(item);
        self.pushed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.assert_made();
        let item = self.items.lock().expect("no model panics here").pop_front();
        if item.is_some() {
            self.popped.fetch_add(1, Ordering::Relaxed);
        }
        item
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.assert_made();
        self.pushed.load(Ordering::Relaxed) <= self.popped.load(Ordering::Relaxed)
    }

    fn assert_made(&self) {
        // SAFETY: loom detects a use that is not ordered after `new`.
        assert!(self.made.with(|made| unsafe { *made }));
    }
}
