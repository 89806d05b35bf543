/* Uses OpenMP in many ways while the loader is locked: in a constructor of a library (`-DLIBRARY`) that waits for the threads which
 * do so. With `ITERATES` it is a function that `dl_iterate_phdr` calls, which holds the loader's other lock. Prints a checksum. */
#define _GNU_SOURCE
#ifdef LIBRARY
void held(void);
__attribute__((constructor)) static void begin(void) { held(); }
#else
#include <dlfcn.h>
#include <link.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 3000 };
static long sum;
static omp_lock_t lock;

static void sum_more(void) { __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED); }

/* Many places in the code, most of them new to each thread. */
#define ONE omp_set_lock(&lock); sum_more(); omp_unset_lock(&lock);
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static long spun(long turns) {
  volatile long made = 0;
  for (long i = 0; i < turns; i++)
    made += i & 1;
  return made;
}

static void regions(int threads) {
  for (int round = 0; round < 20; round++) {
#pragma omp parallel num_threads(threads)
    {
      HUNDRED
#pragma omp for schedule(dynamic, 7)
      for (int i = 0; i < 100; i++)
        sum_more();
#pragma omp single
      for (int i = 0; i < 10; i++) {
#pragma omp task
        {
#pragma omp critical(task)
          sum_more();
        }
      }
    }
  }
}

static void *thread(void *unused) {
#pragma omp parallel num_threads(2)
  {
    TEN
  }
  return unused;
}

static void *work(void *unused) {
  /* Streams that grow beyond their chunks. */
#pragma omp parallel num_threads(2)
  for (int i = 0; i < ROUNDS; i++) {
    TEN
  }
  /* Threads that begin, and end. */
  regions(2);
  regions(4);
  for (int i = 0; i < 8; i++) {
    pthread_t threads[2];
    for (int j = 0; j < 2; j++)
      pthread_create(&threads[j], NULL, thread, NULL);
    for (int j = 0; j < 2; j++)
      pthread_join(threads[j], NULL);
  }
#ifdef CONTROL
  /* Pause, go on, write down. */
  for (int i = 0; i < 3; i++) {
    omp_control_tool(omp_control_tool_pause, 0, NULL);
    regions(2);
    omp_control_tool(omp_control_tool_start, 0, NULL);
    omp_control_tool(omp_control_tool_flush, 0, NULL);
    regions(3);
  }
#endif
  /* Enough for samples. */
#pragma omp parallel num_threads(2)
  spun(20000000);
  /* A child without OpenMP. */
  pid_t child = fork();
  if (child == 0)
    _exit(5);
  int status = 0;
  waitpid(child, &status, 0);
  sum += WEXITSTATUS(status);
  regions(2);
  return unused;
}

void held(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
}

/* Threads neither begin nor end here: the C library itself asks the loader then. */
static int visit(struct dl_phdr_info *info, size_t size, void *unused) {
  regions(2);
  return 1;
}

int main(int count, char **arguments) {
  omp_init_lock(&lock);
  /* The runtime itself asks the loader at its start. */
#pragma omp parallel num_threads(1)
  sum_more();
  if (getenv("ITERATES"))
#pragma omp parallel num_threads(2)
    spun(1);
  if (getenv("ITERATES"))
    dl_iterate_phdr(visit, NULL);
  else if (!dlopen(arguments[1], RTLD_NOW))
    return puts(dlerror()), 1;
  printf("%ld\n", sum);
  return 6;
}
#endif
