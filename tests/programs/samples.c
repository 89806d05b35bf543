/* Known functions take known shares of processor time, in regions at two levels.
 *
 *     samples [THREADS 2] [REGIONS 10] [MILLISECONDS 20]
 *
 * Each region has a thread work until it has had so much processor time in it: 70 % in `seventy`, 20 %
 * in `twenty`, 10 % in `ten`, each of which calls `burn`. Every second region is in a region of one
 * thread. Prints `NAME ADDRESS` of each function, `worked NANOSECONDS` of all threads in these functions,
 * `process NANOSECONDS` of the process, and `regions N`. */
#define _GNU_SOURCE
#include <alloca.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OWN __attribute__((noinline))

static long cpu(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static volatile double sink;

OWN void burn(long steps) {
  double x = 1;
  for (long i = 0; i < steps; i++)
    x = x * 1.0000001 + 1e-9;
  sink = x;
}

/* The empty statement keeps the call from being the function's last act, a jump. */
OWN void seventy(long steps) { burn(7 * steps); __asm__ volatile(""); }
OWN void twenty(long steps) { burn(2 * steps); __asm__ volatile(""); }

/* Realigns its stack by a size that the compiler does not know: GCC's unwind information for it dereferences memory. */
OWN void ten(long steps) {
  double aligned[8] __attribute__((aligned(64)));
  char *moved = alloca(steps % 64 + 1);
  __asm__ volatile("" ::"r"(aligned), "r"(moved) : "memory");
  burn(steps);
  __asm__ volatile("" ::"r"(aligned), "r"(moved) : "memory");
}

static long worked;

OWN void region(int threads, long ns) {
#pragma omp parallel num_threads(threads)
  {
    long begin = cpu(CLOCK_THREAD_CPUTIME_ID), end;
    do {
      seventy(10000);
      twenty(10000);
      ten(10000);
      end = cpu(CLOCK_THREAD_CPUTIME_ID);
    } while (end - begin < ns);
#pragma omp atomic
    worked += end - begin;
  }
}

OWN void around(int threads, long ns) {
#pragma omp parallel num_threads(1)
  region(threads, ns);
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int regions = argc > 2 ? atoi(argv[2]) : 10;
  long ns = (argc > 3 ? atol(argv[3]) : 20) * 1000000;
  omp_set_max_active_levels(2);
  for (int i = 0; i < regions; i++)
    if (i % 2)
      around(threads, ns);
    else
      region(threads, ns);
  printf("burn %p\nseventy %p\ntwenty %p\nten %p\nregion %p\naround %p\nmain %p\n", (void *)burn, (void *)seventy,
         (void *)twenty, (void *)ten, (void *)region, (void *)around, (void *)main);
  printf("worked %ld\nprocess %ld\nregions %d\n", worked, cpu(CLOCK_PROCESS_CPUTIME_ID), regions + regions / 2);
}
