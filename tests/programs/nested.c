/* Parallel regions within parallel regions.
 *
 *     nested [THREADS 2] [DEPTH 3] [ROUNDS 3]
 *
 * parallel_begin: ROUNDS * (1 + T + T^2 + ... + T^(DEPTH-1)). Prints `checksum ROUNDS * T^DEPTH`. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int threads;
static long sum;

static void descend(int depth) {
  if (depth == 0) {
#pragma omp atomic
    sum++;
    return;
  }
#pragma omp parallel num_threads(threads)
  descend(depth - 1);
}

int main(int argc, char **argv) {
  threads = argc > 1 ? atoi(argv[1]) : 2;
  int depth = argc > 2 ? atoi(argv[2]) : 3;
  int rounds = argc > 3 ? atoi(argv[3]) : 3;
  omp_set_dynamic(0);
  omp_set_max_active_levels(depth);
  for (int round = 0; round < rounds; round++)
    descend(depth);
  printf("checksum %ld\n", sum);
}
