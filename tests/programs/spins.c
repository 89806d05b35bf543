/* A thread waits for another one in a loop of its own, which no event shows.
 *
 *     spins flush|lock|barrier [ROUNDS 10] [MILLISECONDS 20]
 *
 * In each round, the first thread is in `works` for these milliseconds of processor time. The other waits for it in `waits`: on
 * a flag that it flushes, or for a lock that it tests. Or it waits at a barrier. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OWN __attribute__((noinline)) static

static int flag;
static omp_lock_t lock;
static volatile double sink;

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

OWN void works(long ns) {
  long end = now() + ns;
  double x = 1;
  do {
    for (long i = 0; i < 200000; i++)
      x = x * 1.0000001 + 1e-9;
    sink = x;
  } while (now() < end);
}

OWN void waits(const char *how, int round) {
  if (strcmp(how, "flush") == 0) {
    for (;;) {
#pragma omp flush
      if (*(volatile int *)&flag > round)
        break;
    }
  } else if (strcmp(how, "lock") == 0) {
    while (!omp_test_lock(&lock))
      ;
    omp_unset_lock(&lock);
  }
  __asm__ volatile("");
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "flush";
  int rounds = argc > 2 ? atoi(argv[2]) : 10;
  long ns = (argc > 3 ? atol(argv[3]) : 20) * 1000000;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
  for (int round = 0; round < rounds; round++) {
    int first = omp_get_thread_num() == 0;
    if (first)
      omp_set_lock(&lock);
#pragma omp barrier
    if (first) {
      works(ns);
      *(volatile int *)&flag = round + 1;
#pragma omp flush
      omp_unset_lock(&lock);
    } else {
      waits(how, round);
    }
#pragma omp barrier
  }
  omp_destroy_lock(&lock);
  return 0;
}
