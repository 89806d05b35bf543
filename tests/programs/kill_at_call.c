/* Kills the process before one of the system calls by which it changes files; a library for LD_PRELOAD.
 * OMPTRACE_TEST_KILL_AT is the call's number, from 1, counted from when the process first opens a file whose name ends in
 * `.omptrace`. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <string.h>

#include "stopped_calls.h"

/* All that can change what lies in a folder, and what a lock says. */
static const long calls[] = {
    SYS_openat, SYS_write,    SYS_pwrite64,  SYS_writev,   SYS_pwritev,   SYS_unlinkat, SYS_fsync,
    SYS_fcntl,  SYS_fchmod,   SYS_fchown,    SYS_renameat, SYS_fallocate, SYS_fdatasync, SYS_ftruncate,
    SYS_close,
#ifdef SYS_rename
    SYS_rename, SYS_unlink,   SYS_open,
#endif
};

static int kill_at;

static int begins(long call, const char *path) {
  size_t length = call == SYS_openat && path ? strlen(path) : 0;
  return length > 9 && strcmp(path + length - 9, ".omptrace") == 0;
}

static void on_call(int signal, siginfo_t *info, void *place) {
  static atomic_int begun, count;
  ucontext_t *context = place;
  int saved = errno;
  if (begins(info->si_syscall, (const char *)ARGUMENT(context, 1)))
    begun = 1;
  if (begun && ++count == kill_at)
    kill(getpid(), SIGKILL);
  RESULT(context) = make_call(info->si_syscall, context);
  errno = saved;
}

__attribute__((constructor)) static void begin(void) {
  const char *at = getenv("OMPTRACE_TEST_KILL_AT");
  if (!at)
    return;
  kill_at = atoi(at);
  stop_calls(calls, sizeof calls / sizeof *calls, on_call);
}
