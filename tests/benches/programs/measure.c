/* main() of all programs: ./PROGRAM COUNT runs work(COUNT), and tells as one JSON object
 *
 *   start_ns    from main() to the end of the first parallel region: runtime, tool and threads start
 *   wall_ns     work's wall time
 *   threads_ns  CPU time of the program's own threads in work; a thread of the tool does not count
 *   peak_kib    most memory in use so far (VmHWM)
 *   end_ns      the monotonic clock when main() was about to return
 */
#include "program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* CPU time that the team's threads have used, ever. The runtime keeps its threads from one region
 * to the next, so that two calls tell what they used between. */
static int64_t threads_ns(void) {
  int64_t sum = 0;
#pragma omp parallel reduction(+ : sum)
  sum += now_ns(CLOCK_THREAD_CPUTIME_ID);
  return sum;
}

static long peak_kib(void) {
  long peak = 0;
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    sscanf(line, "VmHWM: %ld", &peak);
  if (status)
    fclose(status);
  return peak;
}

int main(int argc, char **argv) {
  int64_t begin = now_ns(CLOCK_MONOTONIC);
  if (argc != 2) {
    fprintf(stderr, "usage: %s COUNT\n", argv[0]);
    return EXIT_FAILURE;
  }
  int64_t threads_before = threads_ns();
  int64_t before = now_ns(CLOCK_MONOTONIC);
  work(atol(argv[1]));
  int64_t after = now_ns(CLOCK_MONOTONIC);
  int64_t threads_after = threads_ns();
  long peak = peak_kib();
  printf("{\"start_ns\":%ld,\"wall_ns\":%ld,\"threads_ns\":%ld,\"peak_kib\":%ld,\"end_ns\":%ld}\n",
         before - begin, after - before, threads_after - threads_before, peak,
         now_ns(CLOCK_MONOTONIC));
  return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
