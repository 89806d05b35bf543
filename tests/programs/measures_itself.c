/* Loses time by each cause, and measures how much: measures_itself THREADS UNIT_MS. Work is sleep, so that any number of threads
 * fits any machine. Prints thread-nanoseconds between the begin of the first parallel region and the end of the last:
 * `useful 123`, `imbalance 45` and so on. `tasks` is what threads wait for tasks, at barriers and in taskwaits. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_THREADS = 64, STEPS = 3 };

static int n;
static double unit_ms;
static omp_lock_t lock;

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void work(double units) {
  double ms = units * unit_ms;
  struct timespec left = {(long)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
  while (nanosleep(&left, &left)) {
  }
}

/* Sums of all threads. */
static long useful, serial, narrow_team, imbalance, critical, locks, ordered, tasks;

/* Of each thread: since when it works, and when it came to a barrier inside its region, and to the region's end. */
enum { INSIDE, AT_END };
static struct {
  long since, arrived[2], in_tasks;
  char apart[96];
} threads[MAX_THREADS];

static void add(long *sum, long ns) {
#pragma omp atomic
  *sum += ns;
}

static int me(void) { return omp_get_thread_num(); }

static void begins(void) { threads[me()].since = now(); }

static void arrives(int where) {
  long time = now();
  threads[me()].arrived[where] = time;
  add(&useful, time - threads[me()].since);
}

/* The thread asks for what another one has, and has it then. */
static long asks(void) {
  long time = now();
  add(&useful, time - threads[me()].since);
  return time;
}

static void gets(long *sum, long asked) {
  long time = now();
  add(sum, time - asked);
  threads[me()].since = time;
}

/* All have arrived: each of `size` threads has waited for the last one. */
static void meet(int size, int where) {
  long last = 0;
  for (int i = 0; i < size; i++)
    if (threads[i].arrived[where] > last) last = threads[i].arrived[where];
  for (int i = 0; i < size; i++) imbalance += last - threads[i].arrived[where];
}

static void unequal(void) {
#pragma omp parallel num_threads(n)
  {
    begins();
    work(1 + me());
    arrives(INSIDE);
#pragma omp barrier
    begins();
    work(1);
    arrives(AT_END);
  }
  meet(n, INSIDE);
  meet(n, AT_END);
}

static void in_critical(void) {
#pragma omp parallel num_threads(n)
  {
    begins();
    long asked = asks();
#pragma omp critical
    {
      gets(&critical, asked);
      work(1);
    }
    work(1);
    arrives(AT_END);
  }
  meet(n, AT_END);
}

static void with_lock(void) {
#pragma omp parallel num_threads(n)
  {
    begins();
    long asked = asks();
    omp_set_lock(&lock);
    gets(&locks, asked);
    work(1);
    omp_unset_lock(&lock);
    arrives(AT_END);
  }
  meet(n, AT_END);
}

static void in_order(void) {
#pragma omp parallel num_threads(n)
  {
    begins();
#pragma omp for ordered schedule(dynamic, 1) nowait
    for (int i = 0; i < n; i++) {
      long asked = asks();
#pragma omp ordered
      {
        gets(&ordered, asked);
        work(1);
      }
    }
    arrives(AT_END);
  }
  meet(n, AT_END);
}

static void in_narrow_team(void) {
  int size = n / 2;
  long begin = now();
#pragma omp parallel num_threads(size)
  {
    begins();
    work(2);
    arrives(AT_END);
  }
  meet(size, AT_END);
  narrow_team += (now() - begin) * (n - size);
}

/* Two long tasks for all threads. */
static void with_tasks(void) {
  long first[MAX_THREADS];
  long last = 0;
  for (int i = 0; i < n; i++) threads[i].in_tasks = 0;
#pragma omp parallel num_threads(n)
  {
    first[me()] = now();
#pragma omp single nowait
    for (int i = 0; i < 2; i++) {
#pragma omp task firstprivate(i)
      {
        long begin = now();
        work(2 + 2 * i);
        long end = now();
        threads[me()].in_tasks += end - begin;
#pragma omp critical(latest)
        if (end > last) last = end;
      }
    }
  }
  for (int i = 0; i < n; i++) {
    useful += threads[i].in_tasks;
    tasks += last - first[i] - threads[i].in_tasks;
  }
}

int main(int argc, char **argv) {
  n = argc > 1 ? atoi(argv[1]) : 4;
  unit_ms = argc > 2 ? atof(argv[2]) : 20;
  if (n < 2 || n > MAX_THREADS) return 2;
  omp_set_dynamic(0);
  omp_init_lock(&lock);
  void (*const parts[])(void) = {unequal, in_critical, with_lock, in_order, in_narrow_team, with_tasks};
  enum { PARTS = sizeof parts / sizeof *parts };
  long begin = now(), end = begin;
  for (int i = 0; i < STEPS * PARTS; i++) {
    if (i > 0) {
      long from = end;
      if (i % PARTS == 0) work(2);
      long to = now();
      useful += to - from;
      serial += (to - from) * (n - 1);
    }
    parts[i % PARTS]();
    end = now();
  }
  omp_destroy_lock(&lock);
  printf("useful %ld\nserial %ld\nnarrow_team %ld\nimbalance %ld\ncritical %ld\nlock %ld\nordered %ld\ntasks %ld\n", useful,
         serial, narrow_team, imbalance, critical, locks, ordered, tasks);
  printf("total %ld\n", (end - begin) * n);
  return 0;
}
