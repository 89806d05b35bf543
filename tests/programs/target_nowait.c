/* Target regions that LLVM's hidden helper threads run, beside a team of T threads.
 *
 *     target_nowait [THREADS 2]
 *
 * Built by clang-22 -fopenmp-targets=x86_64-pc-linux-gnu. Prints `checksum 4 * T`. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int sum = 0;
  int parts[4] = {0};
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int i = 0; i < 4; i++) {
#pragma omp target nowait map(tofrom : parts[i])
    parts[i] += threads;
  }
  for (int i = 0; i < 4; i++)
    sum += parts[i];
  printf("checksum %d\n", sum);
  return sum != 4 * threads;
}
