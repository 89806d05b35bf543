/* Makes calls of the tracer fail; a library for LD_PRELOAD. OMPTRACE_TEST_FAIL says which:
 *
 *     CALL:ERRNO:N    the Nth call and all after it, of pwritev, fallocate or pthread_create
 *     btrfs           files seem to be on a file system that copies on write
 *     secure          the process looks like one of a setuid program
 *
 * The tracer makes its system calls without the C library: a filter of the kernel stops them (seccomp(2)), and the handler
 * of SIGSYS makes them again, with a word in the fifth register that lets them through, or returns an error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
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
  long first = ARGUMENT(context, 0), second = ARGUMENT(context, 1);
  /* Reserving beyond a file's end is for speed alone. */
  if (call == SYS_pwritev)
    error = fails("pwritev", &writes);
  else if (call == SYS_fallocate && second == 0)
    error = fails("fallocate", &reservations);
  long result = -error;
  if (!error) {
    result = syscall(call, first, second, ARGUMENT(context, 2), ARGUMENT(context, 3), LET_THROUGH);
    if (result < 0)
      result = -errno;
  }
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  if (call == SYS_fstatfs && what && strcmp(what, "btrfs") == 0)
    ((struct statfs *)second)->f_type = 0x9123683e;
  RESULT(context) = result;
  errno = saved;
}

__attribute__((constructor)) static void stop_calls(void) {
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  if (!what || !*what || !strncmp(what, "pthread", 7) || !strcmp(what, "secure"))
    return;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstatfs, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LET_THROUGH, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
  if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    abort();
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
