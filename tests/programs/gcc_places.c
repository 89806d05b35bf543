/* Constructs whose calls of libgomp GCC gives the line of another statement. Each directive that is to have a row of its own at its line
   says which: `@construct`. */
#include "gcc_places.h"

#include <stdio.h>

static long sums[64];
static volatile int zero;

__attribute__((noinline)) static void add(int at, int value) {
#pragma omp atomic
  sums[at] += value;
}

/* Regions in branches, whose calls are one or a jump at -O2. */
__attribute__((noinline)) static void branches(int kind) {
  if (kind == 1) {
#pragma omp parallel num_threads(2) /* @parallel */
    add(1, kind);
  } else if (kind == 2) {
#pragma omp parallel num_threads(2) /* @parallel */
    add(2, kind);
  } else {
#pragma omp parallel num_threads(2) /* @parallel */
    add(3, kind);
  }
}

__attribute__((noinline)) static void worksharing(int n) {
#pragma omp parallel num_threads(2) /* @parallel */
  {
    add(4, 1);

#pragma omp single /* @single */
    {
      add(5, n);
    }

    add(6, 2);
#pragma omp for schedule(dynamic) /* @for */
    for (int i = 0; i < n; i++)
      add(7, i);

#pragma omp sections /* @sections */
    {
#pragma omp section
      add(8, 3);
#pragma omp section
      add(9, 4);
    }
    add(10, 5);

#pragma omp single nowait /* @single */
    add(11, n);
#pragma omp for schedule(guided) nowait /* @for */
    for (int i = 0; i < n; i++)
      add(12, i);
    /* Static: no call. */
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++)
      add(13, i);
  }
}

__attribute__((noinline)) static void loops(int n) {
  add(14, n);
#pragma omp parallel for num_threads(2) schedule(dynamic, 2) /* @parallel @for */
  for (int i = 0; i < n; i++)
    add(15, i);
  add(16, n);
#pragma omp parallel num_threads(2) /* @parallel */
  for (int step = 0; step < 2; step++) {
#pragma omp for schedule(runtime) /* @for */
    for (int i = 0; i < n; i++)
      add(17, i);
  }
}

__attribute__((noinline)) static void tasks(int n) {
#pragma omp parallel num_threads(2) /* @parallel */
#pragma omp single /* @single */
  {
    for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i) /* @task */
      {
        add(18, i);
      }
    }
    if (n == zero) {
      add(19, n);
    } else {
#pragma omp task /* @task */
      add(20, n);
    }
#pragma omp task if (zero) /* @task */
    add(21, n);
#pragma omp taskwait
#pragma omp taskloop num_tasks(2) /* @taskloop @task */
    for (int i = 0; i < n; i++)
      add(22, i);
  }
}

__attribute__((noinline)) static void nested(int n) {
#pragma omp parallel num_threads(2) /* @parallel */
  {
    add(23, n);
#pragma omp parallel num_threads(2) /* @parallel */
    {
      add(24, n);
    }
  }
}

int main(void) {
  for (int kind = 1; kind <= 3; kind++)
    branches(kind);
  puts("worksharing");
  worksharing(8);
  puts("loops");
  loops(8);
  tasks(4);
  nested(4);
  puts("inlined");
#pragma omp parallel num_threads(2) /* @parallel */
  {
    in_header(&sums[25]);
#pragma omp single /* @single */
    add(26, 1);
    in_header(&sums[25]);
  }
  return sums[26] == 1 ? 0 : 1;
}
