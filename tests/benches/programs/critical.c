/* One critical region that all threads want all the time, shared out among them: EPCC's CRITICAL. */
#include "program.h"

#include <omp.h>

void work(long count) {
#pragma omp parallel
  for (long i = omp_get_thread_num(); i < count; i += omp_get_num_threads()) {
    delay();
#pragma omp critical
    delay();
  }
}
