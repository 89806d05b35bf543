/* Work that is so fine that to hand it out takes longer than to do it.
 *
 *     fine_work tasks|tree|taskloop|chunks|regions
 *
 * The line of a fault is marked by its name. */
#include <stdio.h>
#include <string.h>

enum { TASKS = 100000, ITERATIONS = 1000000, REGIONS = 20000 };

static double out[ITERATIONS];

static __attribute__((noinline)) double burn(int n) {
  double x = 1;
  for (int i = 0; i < n; i++)
    x = x * 1.0000001 + 1e-9;
  return x;
}

static long fib(int n) {
  long a, b;
  if (n < 2)
    return n;
#pragma omp task shared(a) /* tree */
  a = fib(n - 1);
#pragma omp task shared(b)
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  long sum = 0;
  if (strcmp(how, "tasks") == 0) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < TASKS; i++) {
#pragma omp task firstprivate(i) /* tasks */
      out[i] = burn(30);
    }
  } else if (strcmp(how, "tree") == 0) {
#pragma omp parallel
#pragma omp single
    sum = fib(22);
  } else if (strcmp(how, "taskloop") == 0) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(1) /* taskloop */
    for (int i = 0; i < TASKS; i++)
      out[i] = burn(30);
  } else if (strcmp(how, "chunks") == 0) {
#pragma omp parallel
#pragma omp for schedule(dynamic, 1) /* chunks */
    for (int i = 0; i < ITERATIONS; i++)
      out[i] = out[i] * 2 + i;
  } else if (strcmp(how, "regions") == 0) {
    for (int round = 0; round < REGIONS; round++) {
#pragma omp parallel for /* regions */
      for (int i = 0; i < 200; i++)
        out[i] = out[i] * 2 + i;
    }
  } else {
    fprintf(stderr, "usage: %s tasks|tree|taskloop|chunks|regions\n", argv[0]);
    return 2;
  }
  printf("%g %ld\n", out[7], sum);
  return 0;
}
