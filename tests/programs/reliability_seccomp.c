/* Runs a program that may not map files shared, as sandboxes do.
 *
 *     reliability_seccomp PROGRAM [ARGUMENT...] */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The low half of a system call's argument; both architectures here are little-endian. */
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))

static int forbid_shared_files(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(3)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(4)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && forbid_shared_files())
    execv(argv[1], argv + 1);
  return 2;
}
