/* Two threads set and unset a lock of their own, as fast as they can: three events each time.
 *
 *     own_locks SECONDS
 *
 * Prints how many million events per second that are. Build it by clang -O2 -fopenmp. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 1, end = omp_get_wtime() + seconds;
  long events = 0;
#pragma omp parallel num_threads(2) reduction(+ : events)
  {
    omp_lock_t lock;
    omp_init_lock(&lock);
    while (omp_get_wtime() < end)
      for (int i = 0; i < 1000; i++) {
        omp_set_lock(&lock);
        omp_unset_lock(&lock);
        events += 3;
      }
    omp_destroy_lock(&lock);
  }
  printf("%.1f\n", events / seconds / 1e6);
  return 0;
}
