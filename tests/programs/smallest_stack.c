/* Uses OpenMP first on a thread with a stack of PTHREAD_STACK_MIN and as many bytes more as the argument says. */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *work(void *unused) {
  intptr_t sum = 0;
#pragma omp parallel num_threads(1) reduction(+ : sum)
  sum++;
#pragma omp critical
  sum++;
  return (void *)sum;
}

int main(int count, char **arguments) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  size_t bytes = PTHREAD_STACK_MIN + atoi(arguments[1]);
  pthread_t thread;
  void *sum;
  if (pthread_attr_setstacksize(&attributes, bytes) != 0 || pthread_create(&thread, &attributes, work, NULL) != 0)
    return 8;
  pthread_join(thread, &sum);
  printf("%d\n", (int)(intptr_t)sum);
  return 3;
}
