/* Makes calls of the tracer fail; a library for LD_PRELOAD. OMPTRACE_TEST_FAIL says which:
 *
 *     CALL:ERRNO:N    the Nth call and all after it, of pwritev, fallocate or pthread_create
 *     btrfs           files seem to be on a file system that copies on write
 *     secure          the process looks like one of a setuid program
 *
 * The tracer makes its system calls without the C library, so the kernel stops them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/statfs.h>

#include "stopped_calls.h"

/* The error of this call, 0 where it shall go on. */
static int fails(const char *name, atomic_int *calls) {
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  char call[32];
  int error, n;
  if (!what || sscanf(what, "%31[^:]:%d:%d", call, &error, &n) != 3 || strcmp(call, name) != 0)
    return 0;
  return ++*calls >= n ? error : 0;
}

static void on_call(int signal, siginfo_t *info, void *place) {
  static atomic_int writes, reservations;
  ucontext_t *context = place;
  int saved = errno, error = 0;
  long call = info->si_syscall;
  long second = ARGUMENT(context, 1);
  /* Reserving beyond a file's end is for speed alone. */
  if (call == SYS_pwritev)
    error = fails("pwritev", &writes);
  else if (call == SYS_fallocate && second == 0)
    error = fails("fallocate", &reservations);
  long result = error ? -error : make_call(call, context);
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  if (call == SYS_fstatfs && what && strcmp(what, "btrfs") == 0)
    ((struct statfs *)second)->f_type = 0x9123683e;
  RESULT(context) = result;
  errno = saved;
}

__attribute__((constructor)) static void begin(void) {
  static const long calls[] = {SYS_pwritev, SYS_fallocate, SYS_fstatfs};
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  if (!what || !*what || !strncmp(what, "pthread", 7) || !strcmp(what, "secure"))
    return;
  stop_calls(calls, sizeof calls / sizeof *calls, on_call);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
  static atomic_int calls;
  int error = fails("pthread_create", &calls);
  return error ? error : REAL(pthread_create)(thread, attributes, run, argument);
}

unsigned long getauxval(unsigned long type) {
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  if (type == AT_SECURE && what && strcmp(what, "secure") == 0)
    return 1;
  return REAL(getauxval)(type);
}
