/* Parallel regions of one thread; then what only a process of one thread may do; then one of two threads.
 *
 *     reliability_one_thread REGIONS */
#define _GNU_SOURCE
#include <dirent.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int threads(void) {
  DIR *folder = opendir("/proc/self/task");
  int entries = 0;
  while (readdir(folder))
    entries++;
  closedir(folder);
  return entries - 2;
}

int main(int argc, char **argv) {
  int regions = argc > 1 ? atoi(argv[1]) : 1, done = 0;
  for (int i = 0; i < regions; i++) {
#pragma omp parallel num_threads(1) reduction(+ : done)
    done++;
  }
  int before = threads();
  int has_own = unshare(CLONE_NEWUSER) == 0;
  printf("threads %d, a user namespace of its own: %d\n", before, has_own);
#pragma omp parallel num_threads(2) reduction(+ : done)
  done++;
  return done != regions + 2;
}
