/* A thread uses OpenMP before any other, and ends; then main does, or does not.
 *
 *     first_thread [ROUNDS 1]
 *
 * parallel_begin: 1 + ROUNDS, mutex_acquired: twice that. Prints `checksum 2+2*ROUNDS`. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long sum;

static void *region(void *unused) {
#pragma omp parallel num_threads(2)
#pragma omp critical
  sum++;
  return unused;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  pthread_t first;
  if (pthread_create(&first, NULL, region, NULL) || pthread_join(first, NULL))
    return 2;
  for (int i = 0; i < rounds; i++)
    region(NULL);
  printf("checksum %ld\n", sum);
  return sum != 2 + 2 * rounds;
}
