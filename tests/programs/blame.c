/* Threads wait for others that are in known functions.
 *
 *     blame [THREADS 2] [ROUNDS 10] [MILLISECONDS 20]
 *
 * In each round, the first thread is in `prepares` outside of regions, and in `is_late` before a barrier. Then each thread
 * is in `holds`, in a critical region. All take these milliseconds of processor time. Prints how long others waited for
 * the first two by the program's own clock, as `NAME NANOSECONDS`. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static volatile double sink;

/* Each is a function of its own that calls the clock only, and that seldom. */
#define WORKS(name)                                                                                                    \
  __attribute__((noinline)) static void name(long ns) {                                                               \
    long end = now(CLOCK_THREAD_CPUTIME_ID) + ns;                                                                     \
    double x = 1;                                                                                                     \
    do {                                                                                                              \
      for (long i = 0; i < 200000; i++)                                                                               \
        x = x * 1.0000001 + 1e-9;                                                                                     \
      sink = x;                                                                                                       \
    } while (now(CLOCK_THREAD_CPUTIME_ID) < end);                                                                     \
  }

WORKS(prepares)
WORKS(is_late)
WORKS(holds)

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int rounds = argc > 2 ? atoi(argv[2]) : 10;
  long ns = (argc > 3 ? atol(argv[3]) : 20) * 1000000;
  long serial = 0, late = 0;
  for (int round = 0; round < rounds; round++) {
    long begin = now(CLOCK_MONOTONIC);
    prepares(ns);
    serial += now(CLOCK_MONOTONIC) - begin;
#pragma omp parallel num_threads(threads)
    {
      if (omp_get_thread_num() == 0) {
        long begin = now(CLOCK_MONOTONIC);
        is_late(ns);
        late += now(CLOCK_MONOTONIC) - begin;
      }
#pragma omp barrier
#pragma omp critical
      holds(ns);
    }
  }
  printf("prepares %ld\nis_late %ld\n", serial * (threads - 1), late * (threads - 1));
}
