/* Loops with a barrier at their end, of one iteration per thread: EPCC's FOR. */
#include "program.h"

#include <omp.h>

void work(long count) {
#pragma omp parallel
  {
    int threads = omp_get_num_threads();
    for (long i = 0; i < count; i++) {
#pragma omp for
      for (int j = 0; j < threads; j++)
        delay();
    }
  }
}
