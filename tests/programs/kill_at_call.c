/* Kills the process before one of the system calls by which it changes files; a library for LD_PRELOAD.
 * OMPTRACE_TEST_KILL_AT is the call's number, from 1, counted from when the process first opens a file whose name ends in
 * `.omptrace`.
 *
 * A filter of the kernel stops the calls (seccomp(2)), and the handler of SIGSYS makes them again, with a word in the fifth
 * register that lets them through. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined __x86_64__
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#define ARGUMENT(context, n) \
  ((context)->uc_mcontext.gregs[(const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10}[n]])
#else
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#define ARGUMENT(context, n) ((context)->uc_mcontext.regs[n])
#endif
#define LET_THROUGH 0x6c657420

/* All that can change what lies in a folder, and what a lock says. */
static const long calls[] = {
    SYS_openat, SYS_write,    SYS_pwrite64,  SYS_writev,   SYS_pwritev,   SYS_unlinkat, SYS_fsync,
    SYS_fcntl,  SYS_fchmod,   SYS_fchown,    SYS_renameat, SYS_fallocate, SYS_fdatasync, SYS_ftruncate,
    SYS_close,
#ifdef SYS_rename
    SYS_rename, SYS_unlink,   SYS_open,
#endif
};
#define CALLS (sizeof calls / sizeof *calls)

static int kill_at;

static int begins(long call, const char *path) {
  size_t length = call == SYS_openat && path ? strlen(path) : 0;
  return length > 9 && strcmp(path + length - 9, ".omptrace") == 0;
}

static void on_call(int signal, siginfo_t *info, void *place) {
  static atomic_int begun, count;
  ucontext_t *context = place;
  int saved = errno;
  long first = ARGUMENT(context, 0), second = ARGUMENT(context, 1);
  if (begins(info->si_syscall, (const char *)second))
    begun = 1;
  if (begun && ++count == kill_at)
    kill(getpid(), SIGKILL);
  long result = syscall(info->si_syscall, first, second, ARGUMENT(context, 2), ARGUMENT(context, 3),
                        LET_THROUGH);
  RESULT(context) = result < 0 ? -errno : result;
  errno = saved;
}

__attribute__((constructor)) static void stop_calls(void) {
  const char *at = getenv("OMPTRACE_TEST_KILL_AT");
  if (!at)
    return;
  kill_at = atoi(at);
  struct sock_filter filter[CALLS + 6];
  size_t length = 0;
  filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < CALLS; i++)
    filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], CALLS - i, 0);
  filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[length++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * 4);
  filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LET_THROUGH, 1, 0);
  filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {length, filter};
  struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
  if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    abort();
}
