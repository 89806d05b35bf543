/* Trees of tasks, each task waiting for its own two: the Fibonacci program of BOTS without its
 * cut-off. A tree has 3192 tasks. */
#include "program.h"

enum { TREE = 16 };

static long fibonacci(int n) {
  if (n < 2)
    return n;
  long first, second;
#pragma omp task shared(first)
  first = fibonacci(n - 1);
#pragma omp task shared(second)
  second = fibonacci(n - 2);
#pragma omp taskwait
  return first + second;
}

void work(long count) {
  long sum = 0;
#pragma omp parallel
#pragma omp single
  for (long i = 0; i < count; i++)
    sum += fibonacci(TREE);
  __asm__ volatile("" : : "r"(sum));
}
