/* What GCC compiles to calls of libgomp: to be run on LLVM's runtime under a tool, and on libgomp.
 *
 *     gcc_loops [THREADS 2] [N 10]
 *
 * On LLVM's runtime, GCC's code makes: parallel_begin N; task_create TN; mutex_acquired TN
 * (critical); work events for the dynamic loop, TN begin and TN end. The static loop is inlined: no
 * event. Prints `checksum 10TN`. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int n = argc > 2 ? atoi(argv[2]) : 10;
  long sum = 0;
  long by_tasks = 0; /* apart from sum: a critical region does not exclude a task's atomic */
  for (int round = 0; round < n; round++) {
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static) reduction(+ : sum)
      for (int i = 0; i < 4 * threads; i++)
        sum += 1;
#pragma omp for schedule(dynamic) reduction(+ : sum)
      for (int i = 0; i < 4 * threads; i++)
        sum += 1;
#pragma omp critical
      sum += 1;
#pragma omp task shared(by_tasks)
#pragma omp atomic
      by_tasks += 1;
    }
  }
  sum += by_tasks;
  printf("checksum %ld\n", sum);
  return sum != 10L * threads * n;
}
