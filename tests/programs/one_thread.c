/* What runtimes report otherwise than usual where a team has one thread. Each mode prints how many tasks ran, and the nanoseconds
 * that they took, as the program sees them. Now and then LLVM loses the last task that waits for a detached one.
 *
 *     one_thread single    3 tasks call a routine with a parallel region that has a single construct, then once outside
 *     one_thread detach    3 detached tasks, each fulfilled by another thread, and 3 that wait for one of them
 *     one_thread deep N    N undeferred tasks, each inside of the one before */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <omp.h>

static atomic_llong tasks, in_tasks;

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void routine(void) {
#pragma omp parallel
  {
#pragma omp single
    usleep(3000);
    usleep(1000);
  }
}

static void in_single(void) {
#pragma omp parallel num_threads(1)
#pragma omp single
  for (int i = 0; i < 3; i++) {
#pragma omp task
    {
      long long begin = now();
      routine();
      usleep(2000);
      in_tasks += now() - begin;
      tasks++;
    }
  }
  routine();
}

#ifndef OPENMP_45
static pthread_t fulfillers[3];

static void *fulfill(void *event) {
  usleep(20000);
  omp_fulfill_event((omp_event_handle_t)event);
  return NULL;
}

static void detached(void) {
  int x = 0;
#pragma omp parallel num_threads(1)
  for (int i = 0; i < 3; i++) {
    omp_event_handle_t event;
#pragma omp task detach(event) depend(inout : x)
    {
      long long begin = now();
      pthread_create(&fulfillers[i], NULL, fulfill, (void *)event);
      usleep(2000);
      in_tasks += now() - begin;
      tasks++;
    }
#pragma omp task depend(inout : x)
    {
      long long begin = now();
      usleep(2000);
      in_tasks += now() - begin;
      tasks++;
    }
  }
  for (int i = 0; i < 3; i++)
    pthread_join(fulfillers[i], NULL);
}
#else
static void detached(void) {}
#endif

static void deep(int levels) {
  if (levels == 0)
    return;
#pragma omp task if (0)
  deep(levels - 1);
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "single"))
    in_single();
  else if (argc == 2 && !strcmp(argv[1], "detach"))
    detached();
  else if (argc == 3 && !strcmp(argv[1], "deep")) {
#pragma omp parallel num_threads(1)
    deep(atoi(argv[2]));
  } else
    return 2;
  printf("%lld %lld\n", tasks, in_tasks);
}
