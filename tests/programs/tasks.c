/* A binary tree of tasks.
 *
 *     tasks [THREADS 2] [DEPTH 10]
 *
 * task_create: 2^(DEPTH+1) - 2; as many tasks complete. parallel_begin: 1. sync_region begin of
 * kind taskwait: one per inner node, 2^DEPTH - 1. Prints `checksum` and the number of leaves,
 * 2^DEPTH. */
#include <stdio.h>
#include <stdlib.h>

static long leaves(int depth) {
  if (depth == 0)
    return 1;
  long left, right;
#pragma omp task shared(left)
  left = leaves(depth - 1);
#pragma omp task shared(right)
  right = leaves(depth - 1);
#pragma omp taskwait
  return left + right;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int depth = argc > 2 ? atoi(argv[2]) : 10;
  long count = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  count = leaves(depth);
  printf("checksum %ld\n", count);
  return count != 1L << depth;
}
