/* Uses OpenMP, then replaces itself by itself: another run under the same process id.
 *
 *     exec_self [THREADS 2] [GENERATIONS 2]
 *
 * One trace per generation, each with parallel_begin: 1; all but the last without an orderly end.
 * Each generation prints `checksum T`. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int generations = argc > 2 ? atoi(argv[2]) : 2;
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  printf("checksum %ld\n", sum);
  fflush(stdout);
  if (generations > 1) {
    char number_of_threads[16], remaining[16];
    snprintf(number_of_threads, sizeof number_of_threads, "%d", threads);
    snprintf(remaining, sizeof remaining, "%d", generations - 1);
    execl("/proc/self/exe", argv[0], number_of_threads, remaining, (char *)NULL);
    return 2;
  }
}
