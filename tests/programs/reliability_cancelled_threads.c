/* Cancels threads that do nothing but parallel regions. They say between two regions where that may be; nothing that OpenMP does
 * in a region of one thread is a cancellation point.
 *
 *     reliability_cancelled_threads [THREADS 12]
 *
 * parallel_begin, parallel_end: as many as the printed `regions N`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long regions;

static void some_regions(void) {
  for (int i = 0; i < 5000; i++) {
#pragma omp parallel num_threads(1)
    regions++;
  }
}

static void *run(void *unused) {
  for (;;) {
    some_regions();
    pthread_testcancel();
  }
  return unused;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 12;
  /* The runtime begins without the risk of being cancelled. */
  some_regions();
  for (int i = 0; i < threads; i += 2) {
    pthread_t both[2];
    for (int k = 0; k < 2; k++)
      pthread_create(&both[k], NULL, run, NULL);
    usleep(rand() % 2000);
    for (int k = 0; k < 2; k++)
      pthread_cancel(both[k]);
    for (int k = 0; k < 2; k++) {
      void *result;
      pthread_join(both[k], &result);
      if (result != PTHREAD_CANCELED)
        return 1;
    }
  }
  printf("regions %ld\n", regions);
  return 0;
}
