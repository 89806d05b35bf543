/* Tasks of which most are cancelled before they run, if OMP_CANCELLATION is true.
 *
 *     cancelled_tasks [ROUNDS 20]
 *
 * parallel_begin: ROUNDS; task_create: ROUNDS * 50, and one for each that runs. Prints how many ran. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20;
  int ran = 0;
  for (int round = 0; round < rounds; round++) {
#pragma omp parallel num_threads(2)
#pragma omp master
#pragma omp taskgroup
    for (int task = 0; task < 50; task++) {
#pragma omp task
      {
#pragma omp atomic
        ran++;
#pragma omp task
        {
#pragma omp atomic
          ran++;
        }
#pragma omp cancel taskgroup
      }
    }
  }
  printf("ran %d\n", ran);
  return 0;
}
