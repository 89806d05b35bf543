/* T threads increment a number N times each, under a lock, a nest lock, and a critical; then hand
 * over hand.
 *
 *     locks [THREADS 2] [N 1000]
 *
 * mutex_acquired and mutex_released: 3TN for the three, and 2TN for hand over hand, in which the
 * lock set first is unset first: holds of two locks overlap without nesting. nest_lock: TN begin,
 * TN end. lock_init and lock_destroy: 4. Prints `checksum 4TN`. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int n = argc > 2 ? atoi(argv[2]) : 1000;
  long by_lock = 0, by_nest_lock = 0, by_critical = 0, by_two = 0;
  omp_lock_t lock, first, second;
  omp_nest_lock_t nest;
  omp_init_lock(&lock);
  omp_init_lock(&first);
  omp_init_lock(&second);
  omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(threads)
  for (int i = 0; i < n; i++) {
    omp_set_lock(&lock);
    by_lock++;
    omp_unset_lock(&lock);

    omp_set_nest_lock(&nest);
    omp_set_nest_lock(&nest);
    by_nest_lock++;
    omp_unset_nest_lock(&nest);
    omp_unset_nest_lock(&nest);

#pragma omp critical
    by_critical++;

    omp_set_lock(&first);
    omp_set_lock(&second);
    omp_unset_lock(&first);
    by_two++;
    omp_unset_lock(&second);
  }
  omp_destroy_nest_lock(&nest);
  omp_destroy_lock(&second);
  omp_destroy_lock(&first);
  omp_destroy_lock(&lock);
  long sum = by_lock + by_nest_lock + by_critical + by_two;
  printf("checksum %ld\n", sum);
  return sum != 4L * threads * n;
}
