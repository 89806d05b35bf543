/* Barriers: EPCC's BARRIER. */
#include "program.h"

void work(long count) {
#pragma omp parallel
  for (long i = 0; i < count; i++) {
    delay();
#pragma omp barrier
  }
}
