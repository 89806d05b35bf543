/* Threads of the program's own that use OpenMP: each is a further initial thread.
 *
 *     foreign_pthreads [PTHREADS 2] [THREADS 2] [N 10]
 *
 * parallel_begin: N * (PTHREADS + 1). thread_begin of type initial: PTHREADS + 2 (main's, one each,
 * and one of a thread that only sets a lock). mutex_acquired: 1. Prints `checksum` and N *
 * (PTHREADS + 1) * THREADS. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int threads, n;
static long sum;

static void *regions(void *unused) {
  for (int i = 0; i < n; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp atomic
    sum++;
  }
  return unused;
}

static void *only_a_lock(void *unused) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  omp_set_lock(&lock);
  omp_unset_lock(&lock);
  omp_destroy_lock(&lock);
  return unused;
}

int main(int argc, char **argv) {
  int pthreads = argc > 1 ? atoi(argv[1]) : 2;
  threads = argc > 2 ? atoi(argv[2]) : 2;
  n = argc > 3 ? atoi(argv[3]) : 10;
  pthread_t *ids = calloc(pthreads + 1, sizeof *ids);
  if (!ids)
    return 2;
  omp_set_dynamic(0);
  for (int i = 0; i < pthreads; i++)
    pthread_create(&ids[i], NULL, regions, NULL);
  pthread_create(&ids[pthreads], NULL, only_a_lock, NULL);
  regions(NULL);
  for (int i = 0; i <= pthreads; i++)
    pthread_join(ids[i], NULL);
  free(ids);
  printf("checksum %ld\n", sum);
  return sum != (long)n * (pthreads + 1) * threads;
}
