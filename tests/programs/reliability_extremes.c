/* What few programs do, and none should notice a tool at.
 *
 *     reliability_extremes memory     uses all its memory up, then 200,000 locks
 *     reliability_extremes container  forks a child that is the first process of a container, as it is
 *                                     itself (run it by `unshare --pid --fork`); the child exits
 *     reliability_extremes paused     pauses recording; forks a child that uses OpenMP
 *
 * parallel_begin: 1 in `memory`, 2 in `container`, 1 in `paused`, none in its child. Prints `done`. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void region(void) {
#pragma omp parallel num_threads(1)
#pragma omp single
  ;
}

static int memory(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  region();
  /* All of the stack that is needed later is there. */
  volatile char stack[1 << 18];
  memset((char *)stack, 1, sizeof stack);
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1)
    return 2;
  fclose(file);
  struct rlimit all = {(rlim_t)pages * 4096, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &all);
  for (size_t size = 1 << 20; size >= 8; size /= 2) {
    void *volatile taken;
    do
      taken = malloc(size);
    while (taken);
  }
  for (int i = 0; i < 200000; i++) {
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
  }
  return 0;
}

static int wait_for(pid_t child) {
  int status;
  return waitpid(child, &status, 0) != child || status != 0;
}

static int container(void) {
  region();
  if (getpid() != 1 || unshare(CLONE_NEWPID))
    return 2;
  pid_t child = fork();
  if (child == 0)
    exit(getpid() != 1);
  int failed = wait_for(child);
  region();
  return failed;
}

static int paused(void) {
  region();
  omp_control_tool(omp_control_tool_pause, 0, NULL);
  pid_t child = fork();
  if (child == 0) {
    region();
    exit(0);
  }
  return wait_for(child);
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  int failed = !strcmp(how, "memory")      ? memory()
               : !strcmp(how, "container") ? container()
               : !strcmp(how, "paused")    ? paused()
                                           : 2;
  static const char done[] = "done\n";
  if (write(1, done, sizeof done - 1) < 0)
    return 2;
  _exit(failed);
}
