/* Processor time in functions that are inlined into others, in a region and in tasks.
 *
 *     samples_inlined [MILLISECONDS 200]
 *
 * Each of two threads works in `inner`, which is inlined into `outer`, which is inlined into the body of the region in
 * `encloses`. That is inlined into `around`. Then each executes a task that `creates` has created, called by `calls`. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#define OWN __attribute__((noinline)) static
#define INLINED static inline __attribute__((always_inline))

static volatile double sink;

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

INLINED void inner(long rounds) {
  double x = 1;
  for (long i = 0; i < rounds; i++)
    x = x * 1.0000001 + 1e-9;
  sink = x;
}

INLINED void outer(long ns) {
  for (long end = now() + ns; now() < end;)
    inner(200000);
}

INLINED void encloses(long ns) {
#pragma omp parallel num_threads(2)
  outer(ns);
}

OWN void around(long ns) {
  encloses(ns);
  __asm__ volatile("");
}

OWN void creates(long ns) {
#pragma omp task
  outer(ns);
  __asm__ volatile("");
}

OWN void calls(long ns) {
  creates(ns);
  __asm__ volatile("");
}

int main(int argc, char **argv) {
  long ns = (argc > 1 ? atol(argv[1]) : 200) * 1000000L;
  around(ns);
#pragma omp parallel num_threads(2)
  {
    calls(ns);
#pragma omp taskwait
  }
  return 0;
}
