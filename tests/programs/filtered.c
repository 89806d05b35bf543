/* Runs regions, then forbids itself all system calls but those that it and its OpenMP runtime make, and runs more.
 *
 *     filtered refuse|kill */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int allowed[] = {
    SYS_read,           SYS_write,        SYS_futex,         SYS_mmap,         SYS_munmap,        SYS_mprotect,
    SYS_brk,            SYS_exit,         SYS_exit_group,    SYS_clone,        SYS_clone3,        SYS_set_robust_list,
    SYS_rseq,           SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sched_yield,   SYS_madvise,
    SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_gettid, SYS_getpid,      SYS_prctl,         SYS_newfstatat,
    SYS_set_tid_address,
};
enum { COUNT = sizeof allowed / sizeof *allowed };

static int forbid(unsigned other) {
  struct sock_filter filter[COUNT + 3];
  int n = 0;
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < COUNT; i++)
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], COUNT - i, 0);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {n, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int regions(int count) {
  int threads = 0;
  for (int i = 0; i < count; i++) {
#pragma omp parallel num_threads(2) reduction(+ : threads)
    threads++;
  }
  return threads;
}

int main(int argc, char **argv) {
  int kills = argc > 1 && strcmp(argv[1], "kill") == 0;
  int threads = regions(1);
  if (!forbid(kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ENOSYS))
    return 9;
  threads += regions(20000);
  printf("threads %d\n", threads);
  fflush(stdout);
  return 4;
}
