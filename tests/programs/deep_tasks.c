/* Tasks within tasks, each of which runs within the call that makes it: DEPTH of them on a stack of 2 MiB.
 *
 *     deep_tasks [DEPTH 1000]
 *
 * Prints `undeferred DEPTH, deferred DEPTH, taskloop DEPTH`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int depth = 1000;

static int undeferred(int left) {
  int found = 0;
  if (left == 0)
    return 0;
#pragma omp task if (0) shared(found)
  found = undeferred(left - 1) + 1;
  return found;
}

/* A team of one thread runs it at once. */
static int deferred(int left) {
  int found = 0;
  if (left == 0)
    return 0;
#pragma omp task shared(found)
  found = deferred(left - 1) + 1;
#pragma omp taskwait
  return found;
}

static int taskloop(int left) {
  int found = 0;
  if (left == 0)
    return 0;
#pragma omp taskloop num_tasks(1) shared(found)
  for (int i = 0; i < 1; i++)
    found = taskloop(left - 1) + 1;
  return found;
}

static void *run(void *unused) {
  (void)unused;
#pragma omp parallel num_threads(1)
  printf("undeferred %d, deferred %d, taskloop %d\n", undeferred(depth), deferred(depth), taskloop(depth));
  return NULL;
}

int main(int argc, char **argv) {
  if (argc > 1)
    depth = atoi(argv[1]);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, 2 << 20) || pthread_create(&thread, &attributes, run, NULL))
    return 2;
  pthread_join(thread, NULL);
  return 0;
}
