/* What one construct takes in nanoseconds, on `THREADS` threads: one line each, the least of nine runs. For GCC, whose code
 * calls libgomp for each of these: gcc THREADS. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20000, RUNS = 9 };

static long shared;
static omp_lock_t lock;

static void parallel(void) {
  for (int i = 0; i < COUNT / 10; i++) {
#pragma omp parallel
    __asm__ volatile("" ::: "memory");
  }
}

static void barrier(void) {
#pragma omp parallel
  for (int i = 0; i < COUNT / 10; i++) {
#pragma omp barrier
  }
}

static void chunk(void) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int i = 0; i < COUNT; i++)
    __asm__ volatile("" ::: "memory");
}

static void single(void) {
#pragma omp parallel
  for (int i = 0; i < COUNT; i++) {
#pragma omp single nowait
    shared++;
  }
}

static void critical(void) {
#pragma omp parallel
  for (int i = 0; i < COUNT; i++) {
#pragma omp critical
    shared++;
  }
}

static void lock_(void) {
#pragma omp parallel
  for (int i = 0; i < COUNT; i++) {
    omp_set_lock(&lock);
    shared++;
    omp_unset_lock(&lock);
  }
}

static void task(void) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < COUNT; i++) {
#pragma omp task firstprivate(i)
    __asm__ volatile("" ::"r"(i) : "memory");
    if (i % 32 == 31) {
#pragma omp taskwait
    }
  }
}

static void undeferred(void) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < COUNT; i++) {
#pragma omp task firstprivate(i) if (0)
    __asm__ volatile("" ::"r"(i) : "memory");
  }
}

static void ordered(void) {
#pragma omp parallel for ordered schedule(dynamic, 1)
  for (int i = 0; i < COUNT; i++) {
#pragma omp ordered
    shared++;
  }
}

/* The constructs, and how many of them a thread encounters. */
static const struct {
  const char *name;
  void (*run)(void);
  int count;
} constructs[] = {
    {"parallel", parallel, COUNT / 10}, {"barrier", barrier, COUNT / 10}, {"chunk", chunk, COUNT},
    {"single-nowait", single, COUNT},   {"critical", critical, COUNT},    {"lock", lock_, COUNT},
    {"task", task, COUNT},              {"task-if(0)", undeferred, COUNT}, {"ordered", ordered, COUNT},
};

int main(int count, char **arguments) {
  omp_set_num_threads(count > 1 ? atoi(arguments[1]) : 1);
  omp_init_lock(&lock);
  for (unsigned i = 0; i < sizeof constructs / sizeof *constructs; i++) {
    double least = 1e9;
    for (int run = 0; run < RUNS; run++) {
      double begin = omp_get_wtime();
      constructs[i].run();
      double time = omp_get_wtime() - begin;
      if (time < least)
        least = time;
    }
    printf("%s %.2f\n", constructs[i].name, 1e9 * least / constructs[i].count);
  }
}
