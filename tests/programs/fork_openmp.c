/* Uses OpenMP, forks, and uses OpenMP in both processes.
 *
 *     fork_openmp [THREADS 2] [N 100]
 *
 * parallel_begin: 2N in the parent, N in the child. Each prints a `checksum` line, `child checksum
 * N` first. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long regions(int threads, int n) {
  long sum = 0;
  for (int i = 0; i < n; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    sum++;
  }
  return sum;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int n = argc > 2 ? atoi(argv[2]) : 100;
  long sum = regions(threads, n);
  pid_t child = fork();
  if (child < 0)
    return 2;
  if (child == 0) {
    printf("child checksum %ld\n", regions(threads, n));
    return 0;
  }
  /* Both at once: what the child does must not get into the parent's trace. */
  sum += regions(threads, n);
  int status;
  waitpid(child, &status, 0);
  printf("checksum %ld\n", sum);
  return status != 0 || sum != 2L * n;
}
