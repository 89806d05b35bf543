/* Ends by exit(7) while 4 other threads offload.
 *
 *     offload_exit MODE
 *
 * Built by clang-22 -fopenmp-targets=x86_64-pc-linux-gnu. MODE is one of:
 *
 *     regions  target regions that map a variable
 *     data     target enter, update and exit data
 *     memcpy   omp_target_memcpy: data operations without a target region
 *     joined   target regions, and exit joins the threads, each of which offloads once more
 *
 * LLVM's runtime has a race there: a run may crash, with a tool or without. `joined` never does. */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ENOUGH = 1000 };

static const char *mode;
static atomic_int done, ends;
static pthread_t threads[THREADS];

static void regions(void) {
  int numbers[8] = {0};
#pragma omp target map(tofrom : numbers)
  numbers[0]++;
}

static void data(void) {
  int numbers[8] = {0};
#pragma omp target enter data map(to : numbers)
#pragma omp target update from(numbers)
#pragma omp target exit data map(release : numbers)
}

static void copies(void *there) {
  int numbers[8] = {0};
  omp_target_memcpy(there, numbers, sizeof numbers, 0, 0, 0, omp_get_initial_device());
}

static void *work(void *unused) {
  void *there = omp_target_alloc(64, 0);
  while (!ends) {
    if (!strcmp(mode, "data"))
      data();
    else if (!strcmp(mode, "memcpy"))
      copies(there);
    else
      regions();
    done++;
  }
  regions();
  return unused;
}

static void join_all(void) {
  ends = 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  puts("joined");
  fflush(stdout);
}

int main(int argc, char **argv) {
  mode = argc > 1 ? argv[1] : "regions";
  if (!strcmp(mode, "joined"))
    atexit(join_all);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, NULL);
  while (done < ENOUGH)
    usleep(100);
  exit(7);
}
