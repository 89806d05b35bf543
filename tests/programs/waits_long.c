/* Its first thread works on and on, and the second one waits at a barrier for it: no event comes any more.
 *
 *     waits_long
 *
 * It says `ready` when the second thread is about to wait. */
#include <omp.h>
#include <stdio.h>

int main(void) {
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 1) {
      puts("ready");
      fflush(stdout);
    } else {
      for (volatile long round = 0;; round++) {
      }
    }
#pragma omp barrier
  }
}
