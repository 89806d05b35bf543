/* Leaves by exit() from within a parallel region: no runtime calls the tool's finalize then.
 *
 *     exit_in_parallel [THREADS 2] [STATUS 7]
 *
 * parallel_begin: 2, parallel_end: 1. Prints `checksum T` and ends with STATUS. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int status = argc > 2 ? atoi(argv[2]) : 7;
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  printf("checksum %ld\n", sum);
#pragma omp parallel num_threads(threads)
#pragma omp master
  exit(status);
}
