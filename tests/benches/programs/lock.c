/* One lock that all threads want all the time, shared out among them: EPCC's LOCK/UNLOCK. */
#include "program.h"

#include <omp.h>

void work(long count) {
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel
  for (long i = omp_get_thread_num(); i < count; i += omp_get_num_threads()) {
    delay();
    omp_set_lock(&lock);
    delay();
    omp_unset_lock(&lock);
  }
  omp_destroy_lock(&lock);
}
