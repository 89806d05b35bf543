/* Uses OpenMP, runs another program by system(), uses OpenMP again.
 *
 * parallel_begin: 2, all in the one process that uses OpenMP. Prints `checksum` and twice the
 * threads. */
#include <stdio.h>
#include <stdlib.h>

static long region(int threads) {
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  return sum;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  long sum = region(threads);
  if (system("true") != 0)
    return 1;
  sum += region(threads);
  printf("checksum %ld\n", sum);
  return sum != 2L * threads;
}
