/* Constructs in known numbers, tasks that measure themselves.
 *
 *     structure [THREADS 2] [ROUNDS 5] [TASKS 20]
 *
 * Per round: a parallel region of T threads with a static loop, a dynamic loop of 10 chunks and a single construct; one
 * of T threads in which each member begins a nested one of one thread; one of T threads that meet in a critical region;
 * one whose primary thread creates N tasks of 200 microseconds, which all members execute in its barrier; and one whose
 * primary thread creates four tasks with four dependences: one writes, two read, one writes again. Prints the
 * nanoseconds that the N tasks of all rounds took by their own clocks. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void spin(long ns) {
  for (long begin = now(); now() - begin < ns;)
    ;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int rounds = argc > 2 ? atoi(argv[2]) : 5;
  int tasks = argc > 3 ? atoi(argv[3]) : 20;
  long took = 0;
  int shared = 0;
  omp_set_max_active_levels(2);
  for (int round = 0; round < rounds; round++) {
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
      for (int i = 0; i < 100; i++)
        spin(100);
#pragma omp for schedule(dynamic, 10)
      for (int i = 0; i < 100; i++)
        spin(100);
#pragma omp single
      spin(1000);
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp parallel num_threads(1)
      spin(1000);
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp critical
      {
        spin(100000);
        shared++;
      }
    }
#pragma omp parallel num_threads(threads)
#pragma omp master
    for (int i = 0; i < tasks; i++) {
#pragma omp task shared(took)
      {
        long begin = now();
        spin(200000);
        long end = now();
#pragma omp atomic
        took += end - begin;
      }
    }
#pragma omp parallel num_threads(threads)
#pragma omp master
    {
#pragma omp task depend(out : shared)
      spin(1000);
#pragma omp task depend(in : shared)
      spin(1000);
#pragma omp task depend(in : shared)
      spin(1000);
#pragma omp task depend(inout : shared)
      spin(1000);
    }
  }
  printf("%ld\n", took);
  return shared != rounds * threads;
}
