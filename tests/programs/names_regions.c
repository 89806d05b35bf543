/* Regions whose names are known: in a function, in one that is inlined, and a task.
 *
 *     names_regions [THREADS 2]
 *
 * parallel_begin: 2, task_create: 1. Prints `checksum T + 1`. tests/tests/names.rs finds the lines by their comments. */
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) int inlined(int threads) {
  int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum) /* inlined region */
  sum++;
  return sum;
}

__attribute__((noinline)) static int with_task(int threads) {
  int done = 0;
#pragma omp parallel num_threads(threads) /* region with task */
#pragma omp masked
  {
#pragma omp task shared(done) /* task */
    done = 1;
  }
  return done;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  printf("checksum %d\n", inlined(threads) + with_task(threads));
  return 0;
}
