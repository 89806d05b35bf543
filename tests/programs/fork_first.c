/* Forks before either process has used OpenMP; then both do.
 *
 *     fork_first [THREADS 2] [set]
 *
 * `set`: before the fork, it sets the number of threads, which is a use of OpenMP without a region.
 *
 * Two processes, each with parallel_begin: 1. Prints `child checksum T`, then `checksum T`. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A function of its own: clang asks the runtime for the thread's number on entry of a function with
 * a region. */
__attribute__((noinline)) static long region(int threads) {
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  return sum;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  if (argc > 2)
    omp_set_num_threads(threads);
  pid_t child = fork();
  if (child < 0)
    return 2;
  if (child > 0)
    waitpid(child, NULL, 0);
  long sum = region(threads);
  printf("%schecksum %ld\n", child == 0 ? "child " : "", sum);
  return sum != threads;
}
