/* Uses OpenMP on a thread of the program, and says how much of the thread's stack was used.
 *
 *     reliability_stack [ROUNDS 30000]
 *
 * mutex_acquire: ROUNDS. Prints `used N`, in bytes. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK = 256 << 10, UNTOUCHED = 0xa5 };

static int rounds = 30000;

static void *run(void *unused) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  for (int i = 0; i < rounds; i++) {
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
  }
  omp_control_tool(64, 0, "a phase");
  omp_destroy_lock(&lock);
  return unused;
}

int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  unsigned char *stack =
      mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED)
    return 2;
  memset(stack, UNTOUCHED, STACK);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  if (pthread_attr_setstack(&attributes, stack, STACK) != 0 ||
      pthread_create(&thread, &attributes, run, NULL) != 0 || pthread_join(thread, NULL) != 0)
    return 2;
  size_t free = 0;
  while (free < STACK && stack[free] == UNTOUCHED)
    free++;
  printf("used %zu\n", STACK - free);
  return 0;
}
