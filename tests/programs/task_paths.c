/* The ways that a task can take other than from its begin to its end.
 *
 *     task_paths [THREADS 2] [ROUNDS 5]
 *
 * Per round, on T threads: 20 untied tasks that yield and may go on on another thread; 4 detached tasks, two of which are
 * fulfilled by the thread that waits for them, one by another task, one by itself; 20 tasks of a taskgroup that its first
 * task cancels, so that some never run (with OMP_CANCELLATION=true); tied tasks that wait for children of their own;
 * tasks that a barrier runs. A lock is set before a region and unset behind it, another set in one region and unset in
 * the next. Prints `checksum R * (60 + 2T)`. For clang 14 and later, and gcc 12. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static long sum;

static void add(long n) {
#pragma omp atomic
  sum += n;
}

static void spin(int n) {
  for (volatile int i = 0; i < n; i++)
    ;
}

/* +20 */
static void untied(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int i = 0; i < 20; i++) {
#pragma omp task untied
    {
      spin(2000);
#pragma omp taskyield
      spin(2000);
#pragma omp task
      spin(500);
#pragma omp taskwait
      add(1);
    }
  }
}

/* +8 */
static void detached(int threads) {
#if defined(__clang__)
  omp_event_handle_t events[4];
#pragma omp parallel num_threads(threads) shared(events)
#pragma omp single
  {
    for (int i = 0; i < 3; i++) {
      omp_event_handle_t event;
#pragma omp task detach(event)
      {
        spin(1000);
        add(1);
      }
      events[i] = event;
    }
    omp_event_handle_t own;
#pragma omp task detach(own)
    {
      add(1);
      omp_fulfill_event(own);
    }
#pragma omp task
    {
      spin(3000);
      omp_fulfill_event(events[2]);
      add(1);
    }
    spin(5000);
    omp_fulfill_event(events[0]);
    omp_fulfill_event(events[1]);
#pragma omp taskwait
    add(3);
  }
#else
  /* What GCC's detached tasks need is not in LLVM's libgomp-compatible entry points. */
  (void)threads;
  add(8);
#endif
}

/* +12 */
static void cancelled(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
#pragma omp taskgroup
  for (int i = 0; i < 20; i++) {
#pragma omp task firstprivate(i)
    {
      spin(500);
      if (i == 0) {
#pragma omp cancel taskgroup
      }
    }
  }
  add(12);
}

/* +20, run by the barrier of a region whose primary thread creates them */
static void in_barrier(int threads) {
#pragma omp parallel num_threads(threads)
  {
#pragma omp master
    for (int i = 0; i < 20; i++) {
#pragma omp task
      {
        for (int j = 0; j < 2; j++) {
#pragma omp task
          spin(1000);
        }
#pragma omp taskwait
        add(1);
      }
    }
#pragma omp barrier
    spin(500);
  }
}

/* +2T */
static void locks(int threads) {
  omp_lock_t around, across;
  omp_init_lock(&around);
  omp_init_lock(&across);
  omp_set_lock(&around);
#pragma omp parallel num_threads(threads)
  {
#pragma omp master
    omp_set_lock(&across);
    add(1);
  }
  omp_unset_lock(&around);
#pragma omp parallel num_threads(threads)
  {
    add(1);
#pragma omp master
    omp_unset_lock(&across);
  }
  omp_destroy_lock(&across);
  omp_destroy_lock(&around);
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int rounds = argc > 2 ? atoi(argv[2]) : 5;
  for (int round = 0; round < rounds; round++) {
    untied(threads);
    detached(threads);
    cancelled(threads);
    in_barrier(threads);
    locks(threads);
  }
  printf("checksum %ld\n", sum);
  return sum != rounds * (60L + 2 * threads);
}
