//! The functions: a further one is a row here.
//!
//! Functions that can be tried first are, so that a free mutex costs no look at the clock. The C library's own waits, as those of `printf`
//! for a stream, do not come here.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::transmute;

use omptrace_trace_format::field::WaitKind;

use crate::next::Next;
use crate::tracer::{self, Call, errno, set_errno, wait};

type Object = *mut c_void;
type Memory = *mut c_void;
type Result = c_int;
type Bytes = isize;
type Length = usize;

/// The type of a function that tries.
type Tries = unsafe extern "C-unwind" fn(Object) -> c_int;

waits! {
    fn pthread_mutex_lock(mutex: Object) -> Result: mutex of mutex, locks by pthread_mutex_trylock;
    fn pthread_mutex_timedlock(mutex: Object, until: Memory) -> Result: mutex of mutex, locks by pthread_mutex_trylock;
    fn pthread_mutex_clocklock(mutex: Object, clock: c_int, until: Memory) -> Result: mutex of mutex, locks by pthread_mutex_trylock;
    fn pthread_rwlock_rdlock(lock: Object) -> Result: rwlock of lock, locks by pthread_rwlock_tryrdlock;
    fn pthread_rwlock_timedrdlock(lock: Object, until: Memory) -> Result: rwlock of lock, locks by pthread_rwlock_tryrdlock;
    fn pthread_rwlock_clockrdlock(lock: Object, clock: c_int, until: Memory) -> Result: rwlock of lock, locks by pthread_rwlock_tryrdlock;
    fn pthread_rwlock_wrlock(lock: Object) -> Result: rwlock of lock, locks by pthread_rwlock_trywrlock;
    fn pthread_rwlock_timedwrlock(lock: Object, until: Memory) -> Result: rwlock of lock, locks by pthread_rwlock_trywrlock;
    fn pthread_rwlock_clockwrlock(lock: Object, clock: c_int, until: Memory) -> Result: rwlock of lock, locks by pthread_rwlock_trywrlock;
    // Default versions: those of before glibc 2.3.2 had another condition variable, which no program of this machine's has.
    fn pthread_cond_wait(condition: Object, mutex: Object) -> Result: condition of condition;
    fn pthread_cond_timedwait(condition: Object, mutex: Object, until: Memory) -> Result: condition of condition;
    fn pthread_cond_clockwait(condition: Object, mutex: Object, clock: c_int, until: Memory) -> Result: condition of condition;
    fn sem_wait(semaphore: Object) -> Result: semaphore of semaphore, takes by sem_trywait;
    fn sem_timedwait(semaphore: Object, until: Memory) -> Result: semaphore of semaphore, takes by sem_trywait;
    fn sem_clockwait(semaphore: Object, clock: c_int, until: Memory) -> Result: semaphore of semaphore, takes by sem_trywait;
    fn pthread_join(thread: usize, result: Memory) -> Result: join of thread;
    fn pthread_timedjoin_np(thread: usize, result: Memory, until: Memory) -> Result: join of thread;
    fn pthread_clockjoin_np(thread: usize, result: Memory, clock: c_int, until: Memory) -> Result: join of thread;
    fn pthread_barrier_wait(barrier: Object) -> Result: barrier of barrier;

    fn sleep(seconds: c_uint) -> c_uint: sleep of 0;
    fn usleep(microseconds: c_uint) -> Result: sleep of 0;
    fn nanosleep(time: Memory, left: Memory) -> Result: sleep of 0;
    fn clock_nanosleep(clock: c_int, flags: c_int, time: Memory, left: Memory) -> Result: sleep of 0;

    fn read(fd: c_int, to: Memory, bytes: Length) -> Bytes: read of fd;
    fn __read_chk(fd: c_int, to: Memory, bytes: Length, room: Length) -> Bytes: read of fd;
    fn readv(fd: c_int, to: Memory, count: c_int) -> Bytes: read of fd;
    fn pread(fd: c_int, to: Memory, bytes: Length, place: i64) -> Bytes: read of fd;
    fn pread64(fd: c_int, to: Memory, bytes: Length, place: i64) -> Bytes: read of fd;
    fn write(fd: c_int, from: Memory, bytes: Length) -> Bytes: write of fd;
    fn writev(fd: c_int, from: Memory, count: c_int) -> Bytes: write of fd;
    fn pwrite(fd: c_int, from: Memory, bytes: Length, place: i64) -> Bytes: write of fd;
    fn pwrite64(fd: c_int, from: Memory, bytes: Length, place: i64) -> Bytes: write of fd;
    fn poll(fds: Memory, count: usize, timeout: c_int) -> Result: poll of 0;
    fn __poll_chk(fds: Memory, count: usize, timeout: c_int, room: Length) -> Result: poll of 0;
    fn ppoll(fds: Memory, count: usize, timeout: Memory, signals: Memory) -> Result: poll of 0;
    fn select(count: c_int, read: Memory, write: Memory, except: Memory, timeout: Memory) -> Result: poll of 0;
    fn pselect(count: c_int, read: Memory, write: Memory, except: Memory, timeout: Memory, signals: Memory) -> Result: poll of 0;
    fn epoll_wait(fd: c_int, events: Memory, most: c_int, timeout: c_int) -> Result: poll of fd;
    fn epoll_pwait(fd: c_int, events: Memory, most: c_int, timeout: c_int, signals: Memory) -> Result: poll of fd;
    fn recv(fd: c_int, to: Memory, bytes: Length, flags: c_int) -> Bytes: receive of fd;
    fn __recv_chk(fd: c_int, to: Memory, bytes: Length, room: Length, flags: c_int) -> Bytes: receive of fd;
    fn recvfrom(fd: c_int, to: Memory, bytes: Length, flags: c_int, address: Memory, length: Memory) -> Bytes: receive of fd;
    fn recvmsg(fd: c_int, message: Memory, flags: c_int) -> Bytes: receive of fd;
    fn send(fd: c_int, from: Memory, bytes: Length, flags: c_int) -> Bytes: send of fd;
    fn sendto(fd: c_int, from: Memory, bytes: Length, flags: c_int, address: Memory, length: c_uint) -> Bytes: send of fd;
    fn sendmsg(fd: c_int, message: Memory, flags: c_int) -> Bytes: send of fd;
    fn accept(fd: c_int, address: Memory, length: Memory) -> Result: accept of fd;
    fn accept4(fd: c_int, address: Memory, length: Memory, flags: c_int) -> Result: accept of fd;
    fn connect(fd: c_int, address: Memory, length: c_uint) -> Result: connect of fd;
}

/// The answer of a function that no library defines: this version of the C library has none, so that programs made for it call none.
#[cold]
fn missing() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

/// The function that tries, where there is one, and a tracer that wants to know of waits.
#[inline(always)]
fn trying(address: usize) -> Option<Tries> {
    // SAFETY: 0, or the C library's function, which has this type.
    unsafe { transmute::<usize, Option<Tries>>(address) }.filter(|_| tracer::is_there())
}

/// Tries to take the lock; `None` where another thread has it. All else is the answer of the call that would wait, too.
#[inline(always)]
fn locks(tries: usize, lock: Object) -> Option<Result> {
    // SAFETY: the program's own lock.
    let result = unsafe { trying(tries)?(lock) };
    (result != libc::EBUSY).then_some(result)
}

unsafe extern "C-unwind" {
    /// POSIX; the libc crate lacks it.
    fn pthread_testcancel();
}

/// Tries to take the semaphore; `None` where it is 0. A thread that shall end does so first, as in the call that would wait.
#[inline(always)]
fn takes(tries: usize, semaphore: Object) -> Option<Result> {
    let tries = trying(tries)?;
    let errno = errno();
    // SAFETY: no arguments; the program's own semaphore.
    let result = unsafe {
        pthread_testcancel();
        tries(semaphore)
    };
    if result == 0 {
        return Some(0);
    }
    set_errno(errno);
    None
}
