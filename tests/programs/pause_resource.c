/* Gives OpenMP's resources back half way. After a hard pause the runtime finalizes the tool, and
 * never starts it again.
 *
 *     pause_resource [THREADS 2] [soft|hard]
 *
 * parallel_begin: 1 after a hard pause, 2 after a soft one. Prints `checksum 2T`. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of its own: clang asks the runtime for the thread's number on entry of a function with
 * a region, and that number is no longer valid after a hard pause. */
__attribute__((noinline)) static long region(int threads) {
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  return sum;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int soft = argc > 2 && strcmp(argv[2], "soft") == 0;
  long sum = region(threads);
  omp_pause_resource_all(soft ? omp_pause_soft : omp_pause_hard);
  sum += region(threads);
  printf("checksum %ld\n", sum);
  return sum != 2L * threads;
}
