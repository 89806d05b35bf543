/* Constructs whose code address is one of the OpenMP runtime: a taskloop, and a barrier that is the last call of the
 * function that the compiler made of its region.
 *
 * parallel_begin: 1, task_create: 2. Prints `checksum 3`. tests/tests/names.rs finds the line by its comment. */
#include <stdio.h>

int main(void) {
  int sum = 0;
#pragma omp parallel num_threads(2) /* around */
  {
#pragma omp masked
#pragma omp taskloop num_tasks(2) shared(sum)
    for (int i = 1; i < 3; i++)
#pragma omp atomic
      sum += i;
#pragma omp barrier
  }
  printf("checksum %d\n", sum);
  return 0;
}
