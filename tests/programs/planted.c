/* One planted fault per run: planted FAULT [faulty|repaired] [SCALE 1]. Work is sleep, so that any number of threads fits any
 * machine. Prints the seconds that it took. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int repaired;
static double scale = 1;

static void work(double ms) {
  ms *= scale;
  struct timespec left = {(long)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
  while (nanosleep(&left, &left)) {
  }
}

static void imbalance(int n) {
  for (int step = 0; step < 5; step++)
    if (repaired)
#pragma omp parallel for schedule(static, 1)
      for (int i = 0; i < n; i++) work(4 * n);
    else
#pragma omp parallel for schedule(static, 1)
      for (int i = 0; i < n; i++) work(4 * (1 + 2 * i)); /* imbalance: n * n units in all */
}

static void serial(int n) {
  for (int step = 0; step < 5; step++) {
    if (!repaired) work(20);
#pragma omp parallel /* serial */
    {
      if (repaired) work(20.0 / n);
      work(20);
    }
  }
}

static void critical(int n) {
  (void)n;
#pragma omp parallel
  for (int i = 0; i < 10; i++)
    if (repaired)
      work(5);
    else
#pragma omp critical /* critical */
      work(5);
}

static void lock(int n) {
  (void)n;
  static omp_lock_t one;
  omp_init_lock(&one);
#pragma omp parallel
  for (int i = 0; i < 10; i++) {
    if (!repaired) omp_set_lock(&one); /* lock */
    work(5);
    if (!repaired) omp_unset_lock(&one);
    work(2);
  }
  omp_destroy_lock(&one);
}

static void ordered(int n) {
#pragma omp parallel
  if (repaired)
#pragma omp for schedule(static, 1)
    for (int i = 0; i < 8 * n; i++) work(5);
  else
#pragma omp for schedule(static, 1) ordered
    for (int i = 0; i < 8 * n; i++)
#pragma omp ordered /* ordered */
      work(5);
}

static void single(int n) {
#pragma omp parallel
  for (int step = 0; step < 5; step++) {
    if (repaired)
      work(20.0 / n);
    else {
#pragma omp single nowait /* single */
      work(20);
    }
#pragma omp barrier
    work(10);
#pragma omp barrier
  }
}

static void narrow(int n) {
  for (int step = 0; step < 5; step++) {
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < n; i++) work(10);
#pragma omp parallel for num_threads(repaired ? n : n / 2) schedule(static, 1) /* narrow */
    for (int i = 0; i < n; i++) work(20);
  }
}

static void tasks(int n) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < (repaired ? 8 * n : 2); i++)
#pragma omp task /* tasks */
    work(repaired ? 10 : 40.0 * n);
}

static void taskwait(int n) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 6 * n; i++) {
#pragma omp task /* taskwait */
    work(10);
    if (!repaired) {
#pragma omp taskwait
    }
  }
}

static void nested(int n) {
  omp_set_max_active_levels(2);
  if (repaired) {
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < n; i++) work(200.0 / n);
    return;
  }
#pragma omp parallel
#pragma omp single
  {
#pragma omp parallel for num_threads(2) schedule(static, 1) /* nested */
    for (int i = 0; i < 2; i++) work(100);
  }
}

/* Tasks that depend on each other, in a chain. */
static void depends(int n) {
  char data[2 * 64];
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 2 * n; i++) {
    int at = repaired ? i % 128 : 0;
#pragma omp task depend(inout : data[at]) /* depends */
    work(20);
  }
}

/* The creator waits for one long task, and creates short ones behind it. */
static void long_task(int n) {
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < (repaired ? n : 1); i++) {
#pragma omp task /* long_task */
      work(repaired ? 200.0 / n : 200);
    }
#pragma omp taskwait
    for (int i = 0; i < n; i++) {
#pragma omp task
      work(10);
    }
  }
}

/* Tasks whose work is mostly critical. */
static void in_tasks(int n) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 2 * n; i++) {
#pragma omp task
    {
      work(4);
      if (repaired) {
        work(20);
      } else {
#pragma omp critical /* in_tasks */
        work(20);
      }
    }
  }
}

/* Two critical regions, each for half of the threads. */
static void two_mutexes(int n) {
#pragma omp parallel
  for (int i = 0; i < 4; i++) {
    int thread = omp_get_thread_num();
    if (repaired) {
      work(thread % 2 ? 12 : 10);
    } else if (thread % 2) {
#pragma omp critical(odd) /* two_mutexes */
      work(12);
    } else {
#pragma omp critical(even)
      work(10);
    }
    work(4);
  }
}

/* One of the regions inside takes three times as long. */
static void inside(int n) {
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
  {
    int is_second = omp_get_thread_num();
#pragma omp parallel num_threads(n / 2) /* inside */
    work(repaired ? 100 : is_second ? 150 : 50);
  }
}

static void clean(int n) {
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < 4 * n; i++) work(250);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(int);
  } faults[] = {{"imbalance", imbalance}, {"serial", serial},     {"critical", critical},   {"lock", lock},
                {"ordered", ordered},     {"single", single},     {"narrow", narrow},       {"tasks", tasks},
                {"taskwait", taskwait},   {"nested", nested},     {"depends", depends},     {"long_task", long_task},
                {"in_tasks", in_tasks},   {"two_mutexes", two_mutexes},
                {"inside", inside},       {"clean", clean}};
  repaired = argc > 2 && strcmp(argv[2], "repaired") == 0;
  if (argc > 3) scale = atof(argv[3]);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (argc > 1 && strcmp(argv[1], faults[i].name) == 0) {
      double begin = omp_get_wtime();
      faults[i].run(omp_get_max_threads());
      printf("%.6f\n", omp_get_wtime() - begin);
      return 0;
    }
  return 2;
}
