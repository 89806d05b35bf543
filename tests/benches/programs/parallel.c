/* Parallel regions, one after another: EPCC's PARALLEL. */
#include "program.h"

void work(long count) {
  for (long i = 0; i < count; i++) {
#pragma omp parallel
    delay();
  }
}
