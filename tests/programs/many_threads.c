/* Many threads; each sets and unsets a lock of its own N times.
 *
 *     many_threads at_once [THREADS 1000] [N 1000]      one team
 *     many_threads in_turn [THREADS 10000] [N 1000]     threads of the program's own, one after the other
 *     many_threads nested [TEAMS 64] [N 1000]           as many teams of four, one in each thread of a team
 *     many_threads deep [LEVELS 64] [N 1000]            teams of two, each within the one before; the last one works
 *
 * parallel_begin: 1, THREADS, TEAMS + 1, LEVELS. mutex_acquired: N times THREADS, THREADS, 4 TEAMS, 2. Prints
 * `checksum` and the latter number, then `peak` and the most memory that it had, in KiB: it is a child
 * that does all this, so that its parent can ask when the child has ended. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int n;
static long sum;

static void work(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  for (int i = 0; i < n; i++) {
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
  }
  omp_destroy_lock(&lock);
  __atomic_fetch_add(&sum, n, __ATOMIC_RELAXED);
}

static void at_once(int threads) {
#pragma omp parallel num_threads(threads)
  work();
}

static void *alone(void *unused) {
#pragma omp parallel num_threads(1)
  work();
  return unused;
}

static void in_turn(int threads) {
  for (int i = 0; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, alone, NULL))
      abort();
    pthread_join(thread, NULL);
  }
}

static void nested(int teams) {
#pragma omp parallel num_threads(teams)
  at_once(4);
}

static void deep(int levels) {
  if (levels == 1)
    at_once(2);
  else {
#pragma omp parallel num_threads(2)
#pragma omp master
    deep(levels - 1);
  }
}

static const struct {
  const char *name;
  void (*run)(int);
  int threads;
} ways[] = {{"at_once", at_once, 1000}, {"in_turn", in_turn, 10000}, {"nested", nested, 64}, {"deep", deep, 64}};

int main(int argc, char **argv) {
  for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
    if (argc > 1 && !strcmp(argv[1], ways[way].name)) {
      pid_t child = fork();
      if (!child) {
        n = argc > 3 ? atoi(argv[3]) : 1000;
        omp_set_dynamic(0);
        omp_set_max_active_levels(100);
        ways[way].run(argc > 2 ? atoi(argv[2]) : ways[way].threads);
        printf("checksum %ld\n", sum);
        exit(0);
      }
      int status;
      struct rusage usage;
      if (wait4(child, &status, 0, &usage) != child || status)
        return 1;
      printf("peak %ld\n", usage.ru_maxrss);
      return 0;
    }
  return 2;
}
