/* A taskloop of so many tasks that LLVM's runtime divides it by tasks of its own.
 *
 * parallel_begin: 1. Prints `checksum` and the number of iterations, 1000. */
#include <omp.h>
#include <stdio.h>

int main(void) {
  int done = 0;
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 0) {
#pragma omp taskloop num_tasks(100) shared(done)
      for (int i = 0; i < 1000; i++) {
#pragma omp atomic
        done++;
      }
#pragma omp taskloop num_tasks(200) shared(done) nogroup untied
      for (int i = 0; i < 1000; i++) {
#pragma omp atomic
        done--;
      }
#pragma omp taskwait
#pragma omp taskloop num_tasks(100) shared(done)
      for (int i = 0; i < 1000; i++) {
#pragma omp atomic
        done++;
      }
    }
  }
  printf("checksum %d\n", done);
  return 0;
}
