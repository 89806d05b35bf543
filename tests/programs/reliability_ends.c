/* Uses OpenMP, then ends in the way that it is told.
 *
 *     reliability_ends HOW [THREADS 2] [ROUNDS 1000]
 *
 * HOW: segv, abort, _exit, quick_exit, exec (of /bin/true), pthread_exit (of main, while another
 * thread lives: the process stays); the same with `_in_region` end inside one more region, on its
 * last thread.
 *
 * parallel_begin: ROUNDS, and 1 for `_in_region`; parallel_end: ROUNDS; mutex_released: ROUNDS *
 * THREADS. Prints `checksum ROUNDS*THREADS` before it ends. */
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *stay(void *unused) {
  for (;;)
    pause();
  return unused;
}

static void end(const char *how) {
  if (strncmp(how, "segv", 4) == 0)
    *(volatile int *)8 = 1;
  if (strncmp(how, "abort", 5) == 0)
    abort();
  if (strncmp(how, "_exit", 5) == 0)
    _exit(0);
  if (strncmp(how, "quick_exit", 10) == 0)
    quick_exit(0);
  if (strncmp(how, "exec", 4) == 0)
    execl("/bin/true", "true", (char *)NULL);
  if (strncmp(how, "pthread_exit", 12) == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, stay, NULL);
    pthread_exit(NULL);
  }
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  const char *how = argv[1];
  int threads = argc > 2 ? atoi(argv[2]) : 2;
  int rounds = argc > 3 ? atoi(argv[3]) : 1000;
  long sum = 0;
  for (int i = 0; i < rounds; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp critical
    sum++;
  }
  printf("checksum %ld\n", sum);
  fflush(stdout);
  if (strstr(how, "_in_region")) {
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() == threads - 1)
      end(how);
  }
  end(how);
  return 3;
}
