/* A shared library that uses OpenMP, and prints when it is unloaded: for reload_host.c.
 *
 * parallel_begin: 1 per call. */
#include <stdio.h>

long count_threads(int threads) {
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  return sum + OFFSET;
}

__attribute__((destructor)) static void unloaded(void) {
  printf("unloaded %d\n", OFFSET);
}
