/* Uses OpenMP, forks a child that leaves at once by _exit, and uses OpenMP again.
 *
 *     fork_exit [THREADS 2] [CHILDREN 3]
 *
 * parallel_begin: 1 + CHILDREN, all in the parent. Prints `checksum` and threads * (1 + CHILDREN). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long region(int threads) {
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  return sum;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int children = argc > 2 ? atoi(argv[2]) : 3;
  long sum = region(threads);
  for (int i = 0; i < children; i++) {
    pid_t child = fork();
    if (child < 0)
      return 2;
    if (child == 0)
      _exit(0);
    sum += region(threads);
    waitpid(child, NULL, 0);
  }
  printf("checksum %ld\n", sum);
  return sum != (1L + children) * threads;
}
