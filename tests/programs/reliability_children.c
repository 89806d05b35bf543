/* Makes children while other threads are in parallel regions.
 *
 *     reliability_children HOW [ROOTS 2] [CHILDREN 50] [REGIONS 20]
 *
 * HOW the children come, and what they do:
 *
 *     fork          fork; _exit
 *     fork_openmp   fork; REGIONS regions of 2 threads, _exit
 *     fork_exit     fork; REGIONS regions of 2 threads, exit
 *     vfork         vfork; exec of /bin/true
 *     spawn         posix_spawn of /bin/true
 *     clone         the system call, of which no library knows; _exit
 *     clone_openmp  the system call; REGIONS times a lock set and unset, _exit
 *     clone_loader  the same, while another thread holds the loader's lock
 *
 * ROOTS threads of the program each start regions of 2 threads until all children are gone, or there
 * were very many; each region ends in a critical section. Prints `regions N`: in the parent's trace
 * parallel_begin and parallel_end are N, mutex_released is 2N. Each child that uses OpenMP has a trace
 * of its own. */
#define _GNU_SOURCE
#include <link.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The test looks at each event of theirs. */
enum { MOST_REGIONS = 100000 };

static atomic_int done;
static atomic_long regions;

static void region(void) {
  static long sum;
#pragma omp parallel num_threads(2)
#pragma omp critical
  sum++;
}

/* A critical section of its own: the parent's may have been locked when the child was made. */
static void region_of_child(void) {
  static long sum;
#pragma omp parallel num_threads(2)
#pragma omp critical(child)
  sum++;
}

static void *root(void *unused) {
  /* At least one each, however early the children are gone. */
  do {
    region();
    regions++;
  } while (!done && regions < MOST_REGIONS);
  return unused;
}

static atomic_int in_loader, leave_loader;

static int stay(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)info, (void)size, (void)unused;
  in_loader = 1;
  while (!leave_loader)
    usleep(1000);
  return 1;
}

static void *hold_loader(void *unused) {
  dl_iterate_phdr(stay, NULL);
  return unused;
}

static pid_t child(const char *how, int n) {
  char *const arguments[] = {"true", NULL};
  pid_t pid;
  if (strcmp(how, "spawn") == 0)
    return posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ) == 0 ? pid : -1;
  if (strcmp(how, "vfork") == 0) {
    pid = vfork();
    if (pid == 0) {
      execv("/bin/true", arguments);
      _exit(3);
    }
    return pid;
  }
  pid = strncmp(how, "clone", 5) == 0 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
  if (pid != 0)
    return pid;
  /* A child that hangs is killed. */
  alarm(60);
  if (strcmp(how, "clone_openmp") == 0 || strcmp(how, "clone_loader") == 0) {
    /* No region: the runtime does not know that its threads are gone. */
    omp_lock_t lock;
    omp_init_lock(&lock);
    for (int i = 0; i < n; i++) {
      omp_set_lock(&lock);
      omp_unset_lock(&lock);
    }
  }
  if (strcmp(how, "fork_openmp") == 0 || strcmp(how, "fork_exit") == 0)
    for (int i = 0; i < n; i++)
      region_of_child();
  if (strcmp(how, "fork_exit") == 0)
    exit(0);
  _exit(0);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  int roots = argc > 2 ? atoi(argv[2]) : 2;
  int children = argc > 3 ? atoi(argv[3]) : 50;
  int n = argc > 4 ? atoi(argv[4]) : 20;
  pthread_t threads[16];
  if (roots > 16)
    return 2;
  /* The runtime starts before the children come. */
  region();
  regions++;
  for (int i = 0; i < roots; i++)
    pthread_create(&threads[i], NULL, root, NULL);
  int failed = 0;
  for (int i = 0; i < children; i++) {
    int status = -1, holds_loader = strcmp(argv[1], "clone_loader") == 0;
    pthread_t holder;
    in_loader = leave_loader = 0;
    if (holds_loader) {
      pthread_create(&holder, NULL, hold_loader, NULL);
      while (!in_loader)
        usleep(1000);
    }
    pid_t pid = child(argv[1], n);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
      failed++;
    leave_loader = 1;
    if (holds_loader)
      pthread_join(holder, NULL);
  }
  done = 1;
  for (int i = 0; i < roots; i++)
    pthread_join(threads[i], NULL);
  printf("regions %ld\n", regions);
  if (failed)
    fprintf(stderr, "%d children failed\n", failed);
  return failed != 0;
}
