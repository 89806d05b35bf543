/* What a process spends where, as it measures it itself.
 *
 *     accounts serial|masked|dynamic|nested|locks
 *
 * Prints nanoseconds or counts, with blanks between:
 *   serial    those before its first parallel region, and after its last
 *   masked    those of its regions, of which one thread works half, and those that its threads waited at the barrier
 *   dynamic   the chunks of its dynamic loop, and their iterations
 *   nested    those of its outer region
 *   locks     acquisitions of the first lock that it makes, and attempts in vain to get it */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void work(long ns) {
  for (long end = now() + ns; now() < end;)
    ;
}

static void serial(void) {
  long begin = now();
  work(300000000);
  long first = now();
#pragma omp parallel num_threads(2)
  work(1000000);
  long last = now();
  work(100000000);
  printf("%ld %ld\n", first - begin, now() - last);
}

static void masked(void) {
  long regions = 0, waits = 0;
  for (int round = 0; round < 10; round++) {
    long begin = now();
#pragma omp parallel num_threads(2) reduction(+ : waits)
    {
#pragma omp master
      work(4000000);
      long before = now();
#pragma omp barrier
      waits += now() - before;
      work(2000000);
    }
    regions += now() - begin;
  }
  printf("%ld %ld\n", regions, waits);
}

static void dynamic(void) {
  long sum = 0;
#pragma omp parallel for schedule(dynamic, 5) num_threads(2) reduction(+ : sum)
  for (int i = 0; i < 10000; i++)
    sum += i;
#pragma omp parallel for schedule(static) num_threads(2) reduction(+ : sum)
  for (int i = 0; i < 10000; i++)
    sum += i;
  printf("%d %d\n", 2000, sum > 0 ? 10000 : 0);
}

static void nested(void) {
  omp_set_max_active_levels(2);
  long begin = now();
#pragma omp parallel num_threads(2)
  for (int round = 0; round < 20; round++) {
#pragma omp parallel num_threads(2)
    work(100000);
  }
  printf("%ld\n", now() - begin);
}

static void locks(void) {
  omp_lock_t first, second;
  omp_init_lock(&first);
  omp_init_lock(&second);
  long failures = 0;
#pragma omp parallel num_threads(2)
  for (int i = 0; i < 50; i++) {
    omp_set_lock(&second);
    omp_set_lock(&first);
    work(10000);
    omp_unset_lock(&first);
    omp_unset_lock(&second);
  }
  omp_set_lock(&first);
#pragma omp parallel num_threads(2) reduction(+ : failures)
  for (int i = 0; i < 7; i++)
    failures += !omp_test_lock(&first);
  omp_unset_lock(&first);
  omp_destroy_lock(&first);
  omp_destroy_lock(&second);
  printf("%d %ld\n", 101, failures);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "serial"))
    serial();
  else if (!strcmp(what, "masked"))
    masked();
  else if (!strcmp(what, "dynamic"))
    dynamic();
  else if (!strcmp(what, "nested"))
    nested();
  else if (!strcmp(what, "locks"))
    locks();
  else
    return 2;
  return 0;
}
