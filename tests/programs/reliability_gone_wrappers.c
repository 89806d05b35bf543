/* Functions in the place of the C library's, which are gone when their library's destructor has run: who calls one then from
 * the tracer, or from a thread of its own, ends the process. A library for LD_PRELOAD.
 *
 * As libfaketime's do, each looks the C library's function up and calls it. The destructor gives the tracer's threads time
 * to call something. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int gone;

/* What the library is that the caller is in. Of the program and the runtime, nothing is asked: they may call what they will. */
static int is_tracer(void *caller) {
  Dl_info found;
  return dladdr(caller, &found) && found.dli_fname && strstr(found.dli_fname, "omptrace.so");
}

static void check(void *caller, const char *name) {
  static const char words[] = ": called by the tracer when its library was gone\n";
  if (!gone || !is_tracer(caller))
    return;
  __asm__ volatile("" ::: "memory");
  /* Not by a function that may be one of these. */
  extern ssize_t __write(int, const void *, size_t);
  __write(2, name, strlen(name));
  __write(2, words, sizeof words - 1);
  abort();
}

typedef long function_t(long, long, long, long, long, long, long);

#define WRAPPED(name)                                                                     \
  long wrapped_##name(long a, long b, long c, long d, long e, long f, long g) __asm__(#name); \
  long wrapped_##name(long a, long b, long c, long d, long e, long f, long g) {               \
    static function_t *real;                                                               \
    check(__builtin_return_address(0), #name);                                             \
    if (!real)                                                                             \
      real = (function_t *)dlsym(RTLD_NEXT, #name);                                        \
    return real(a, b, c, d, e, f, g);                                                      \
  }

WRAPPED(read)
WRAPPED(write)
WRAPPED(pread)
WRAPPED(pwrite)
WRAPPED(readv)
WRAPPED(writev)
WRAPPED(pwritev)
WRAPPED(open)
WRAPPED(openat)
WRAPPED(close)
WRAPPED(unlink)
WRAPPED(unlinkat)
WRAPPED(fstat)
WRAPPED(fstatat)
WRAPPED(stat)
WRAPPED(lstat)
WRAPPED(statx)
WRAPPED(fcntl)
WRAPPED(ftruncate)
WRAPPED(fallocate)
WRAPPED(posix_fallocate)
WRAPPED(mmap)
WRAPPED(munmap)
WRAPPED(mprotect)
WRAPPED(madvise)
WRAPPED(nanosleep)
WRAPPED(clock_nanosleep)
WRAPPED(sched_yield)
WRAPPED(clock_gettime)
WRAPPED(gettimeofday)
WRAPPED(time)
WRAPPED(getpid)
WRAPPED(gettid)
WRAPPED(syscall)
WRAPPED(sem_post)
WRAPPED(sem_wait)
WRAPPED(sem_timedwait)
WRAPPED(pthread_cond_wait)
WRAPPED(pthread_cond_timedwait)
WRAPPED(pthread_mutex_lock)
WRAPPED(sched_setscheduler)
WRAPPED(sched_setaffinity)
WRAPPED(prctl)
WRAPPED(getrlimit)
WRAPPED(sysconf)
WRAPPED(sigaction)
WRAPPED(pthread_sigmask)
WRAPPED(sigprocmask)
WRAPPED(sigpending)
WRAPPED(sigtimedwait)
WRAPPED(poll)
WRAPPED(select)

__attribute__((destructor)) static void go(void) {
  gone = 1;
  struct {
    long seconds, nanoseconds;
  } time = {0, 120000000};
  ((function_t *)dlsym(RTLD_NEXT, "nanosleep"))((long)&time, 0, 0, 0, 0, 0, 0);
}
