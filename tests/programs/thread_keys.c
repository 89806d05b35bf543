/* Three threads that have values of POSIX keys, use OpenMP, and use it again when the values are destroyed.
 * thread_keys KEYS DELETED: the program creates KEYS keys before it uses OpenMP, and deletes the first DELETED of them although
 * the threads still have values of these. Prints how many regions there were. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_key_t keys[1024];
static int number, deleted;
static long regions;
static pthread_barrier_t barrier;

static void region(void) {
#pragma omp parallel num_threads(2)
#pragma omp critical
  { }
  __atomic_fetch_add(&regions, 1, __ATOMIC_RELAXED);
}

static void destroy(void *value) {
  (void)value;
  region();
}

static void *thread(void *argument) {
  for (int i = 0; i < number; i++) pthread_setspecific(keys[i], (char *)argument + i);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 40; i++) region();
  return NULL;
}

int main(int argc, char **argv) {
  number = argc > 1 ? atoi(argv[1]) : 0;
  deleted = argc > 2 ? atoi(argv[2]) : 0;
  pthread_t threads[3];
  pthread_barrier_init(&barrier, NULL, 4);
  for (int i = 0; i < number; i++)
    /* The first key and the last one of those that stay. */
    pthread_key_create(&keys[i], i == deleted || i == number - 1 ? destroy : NULL);
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, thread, (void *)(0x1001 + 4096 * i));
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < deleted; i++) pthread_key_delete(keys[i]);
  region();
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  printf("regions %ld\n", regions);
  return 0;
}
