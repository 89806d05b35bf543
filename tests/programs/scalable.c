/* The same work on any number of threads: scalable KIND. Work is sleep. Prints the seconds that it took. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void work(double ms) {
  struct timespec left = {(long)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
  while (nanosleep(&left, &left)) {
  }
}

static void tasks(void) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 64; i++)
#pragma omp task
    work(10 + 2 * (i % 16));
}

static void eight(void) {
#pragma omp parallel
#pragma omp single
  for (int i = 1; i <= 8; i++)
#pragma omp task
    work(50 * i);
}

static void chain(void) {
  static int cells[3];
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 48; i++)
#pragma omp task depend(inout : cells[i % 3])
    work(25);
}

static void tree(int depth) {
  if (depth == 0) {
    work(25);
    return;
  }
#pragma omp task
  tree(depth - 1);
#pragma omp task
  tree(depth - 1);
#pragma omp taskwait
}

static void recursion(void) {
#pragma omp parallel
#pragma omp single
  tree(6);
}

static void dynamic(void) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < 64; i++) work(10 + i / 2);
}

static void blocks(void) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < 64; i++) work(10 + i / 2);
}

static void turns(void) {
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < 60; i++) work(25);
}

static void serial(void) {
  for (int step = 0; step < 4; step++) {
    work(50);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 16; i++) work(20);
  }
}

static void critical(void) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < 64; i++) {
    work(15);
#pragma omp critical
    work(5);
  }
}

/* What each thread does depends on its number: no schedule says what others would do. */
static void numbers(void) {
#pragma omp parallel
  work(400.0 * (1 + omp_get_thread_num()) / omp_get_num_threads());
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } kinds[] = {{"tasks", tasks},   {"eight", eight},   {"chain", chain},   {"recursion", recursion}, {"dynamic", dynamic},
               {"blocks", blocks}, {"turns", turns},   {"serial", serial}, {"critical", critical},   {"numbers", numbers}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (argc > 1 && strcmp(argv[1], kinds[i].name) == 0) {
      double begin = omp_get_wtime();
      kinds[i].run();
      printf("%.6f\n", omp_get_wtime() - begin);
      return 0;
    }
  return 2;
}
