/* Uses OpenMP on a thread of its own that has the smallest stack, of which the program itself has used BYTES.
 *
 *     little_stack BYTES
 *
 * The runtime is there before. Prints 3. */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static intptr_t region(void) {
  intptr_t sum = 0;
#pragma omp parallel num_threads(1) reduction(+ : sum)
  sum++;
#pragma omp critical
  sum++;
#pragma omp task shared(sum)
  sum++;
#pragma omp taskwait
  return sum;
}

static void *work(void *bytes) {
  char used[(intptr_t)bytes];
  memset(used, 1, sizeof used);
  intptr_t sum = region();
  return (void *)(sum + used[sum] - 1);
}

int main(int count, char **arguments) {
  intptr_t bytes = count > 1 ? atoi(arguments[1]) : 1;
  if (region() != 3)
    return 7;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  void *sum;
  if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0 ||
      pthread_create(&thread, &attributes, work, (void *)bytes) != 0)
    return 8;
  pthread_join(thread, &sum);
  printf("%d\n", (int)(intptr_t)sum);
  return 0;
}
