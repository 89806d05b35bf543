/* Constructs of all kinds, one group per run: the program prints how often it met each. */
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic long regions, loops, sections, singles, masked, criticals, ordered, taskgroups, taskloops, taskwaits,
    tasks_run;
static _Atomic long sum;
static int counter;
#pragma omp threadprivate(counter)
enum { THREADS = 3, N = 24 };

static void loops_of_all_kinds(void) {
  int last = 0;
  regions++;
#pragma omp parallel num_threads(THREADS)
  {
    loops++;
#pragma omp for schedule(static)
    for (int i = 0; i < N; i++) sum += i;
    loops++;
#pragma omp for schedule(static, 1) nowait
    for (int i = 0; i < N; i++) sum += i;
    loops++;
#pragma omp for schedule(dynamic, 2) lastprivate(last)
    for (int i = 0; i < N; i++) last = i;
    loops++;
#pragma omp for schedule(guided)
    for (int i = 0; i < N; i++) sum += i;
    loops++;
#pragma omp for collapse(2) schedule(dynamic)
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 5; j++) sum += j;
    loops++;
#pragma omp for ordered schedule(dynamic)
    for (int i = 0; i < N; i++) {
      ordered++;
#pragma omp ordered
      sum += i;
    }
    loops++;
#pragma omp for schedule(runtime) nowait
    for (int i = 0; i < N; i++) sum += i;
  }
}

static void worksharing(void) {
  regions++;
#pragma omp parallel num_threads(THREADS)
  {
    sections++;
#pragma omp sections
    {
#pragma omp section
      sum++;
#pragma omp section
      sum++;
    }
    sections++;
#pragma omp sections nowait
    {
#pragma omp section
      sum++;
    }
    singles++;
#pragma omp single
    sum++;
    singles++;
#pragma omp single nowait
    sum++;
#pragma omp master
    {
      masked++;
      sum++;
    }
    criticals++;
#pragma omp critical(a)
    sum++;
    counter++;
#pragma omp barrier
  }
  regions++;
#pragma omp parallel num_threads(THREADS) copyin(counter)
  sum += counter;
}

static void nested(void) {
  omp_set_max_active_levels(3);
  regions++;
#pragma omp parallel num_threads(2)
  {
    regions++;
#pragma omp parallel num_threads(2)
    {
      regions++;
#pragma omp parallel num_threads(2)
      {
        loops++;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 4; i++) sum += i;
      }
    }
  }
}

#ifndef OPENMP_45
static void tasks(void) {
  regions++;
#pragma omp parallel num_threads(THREADS)
  {
    singles++;
#pragma omp single
    {
      long total = 0;
      taskgroups++;
#pragma omp taskgroup task_reduction(+ : total)
      for (int i = 0; i < 10; i++) {
        tasks_run++;
#pragma omp task in_reduction(+ : total)
        total += i;
      }
      sum += total;
      taskgroups++;
      taskloops++;
      tasks_run += 4;
#pragma omp taskloop num_tasks(4) reduction(+ : total)
      for (int i = 0; i < N; i++) total += i;
      taskwaits++;
#pragma omp taskwait
      for (int i = 0; i < 5; i++) {
        tasks_run++;
#pragma omp task
        {
          tasks_run++;
#pragma omp task
          sum++;
          taskwaits++;
#pragma omp taskwait
        }
      }
    }
  }
}

static void detached(void) {
  regions++;
#pragma omp parallel num_threads(THREADS)
  {
    singles++;
#pragma omp single
    for (int i = 0; i < 5; i++) {
      omp_event_handle_t event;
      tasks_run++;
#pragma omp task detach(event)
      sum++;
      tasks_run++;
#pragma omp task firstprivate(event)
      omp_fulfill_event(event);
    }
  }
}
#endif

static void doacross(void) {
  regions++;
#pragma omp parallel num_threads(THREADS)
  {
    loops++;
#pragma omp for ordered(1) schedule(static)
    for (int i = 1; i < N; i++) {
#pragma omp ordered depend(sink : i - 1)
      sum += i;
#pragma omp ordered depend(source)
    }
  }
}

static void scan(void) {
  int all[N], running = 0;
  regions++;
#pragma omp parallel num_threads(THREADS)
  {
    loops += 2; /* Compilers make two of it. */
#pragma omp for reduction(inscan, + : running)
    for (int i = 0; i < N; i++) {
      running += i;
#pragma omp scan inclusive(running)
      all[i] = running;
    }
  }
  sum += all[N - 1];
}

static void cancelled(void) {
  for (int round = 0; round < 5; round++) {
    regions++;
#pragma omp parallel num_threads(THREADS)
    {
      sections++;
#pragma omp sections
      {
#pragma omp section
        {
#pragma omp cancel sections
        }
#pragma omp section
        {
#pragma omp cancellation point sections
          sum++;
        }
      }
      loops++;
#pragma omp for schedule(static)
      for (int i = 0; i < N; i++) {
#pragma omp cancel for if (i == 3)
      }
      singles++;
#pragma omp single
      {
        taskgroups++;
#pragma omp taskgroup
        for (int i = 0; i < 6; i++) {
#pragma omp task
          {
            tasks_run++;
#pragma omp cancel taskgroup if (i == 2)
          }
        }
      }
    }
  }
}

int main(int argc, char **argv) {
  void (*const groups[])(void) = {loops_of_all_kinds, worksharing, nested, doacross, cancelled, scan,
#ifndef OPENMP_45
                                  tasks, detached,
#endif
  };
  if (argc < 2) return (int)(sizeof groups / sizeof *groups);
  groups[argv[1][0] - '0']();
#define SHOW(what) printf(#what " %ld\n", (long)what)
  SHOW(regions);
  SHOW(loops);
  SHOW(sections);
  SHOW(singles);
  SHOW(masked);
  SHOW(criticals);
  SHOW(ordered);
  SHOW(taskgroups);
  SHOW(taskloops);
  SHOW(taskwaits);
  SHOW(tasks_run);
  return 0;
}
