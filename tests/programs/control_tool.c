/* Speaks to the tool.
 *
 *     control_tool [THREADS 2] [N 10]
 *
 * N regions are recorded; N are not, between pause and start; a phase named "solve" (commands 64
 * and 65) holds N; a command of the user's (100, modifier 42); flush; N more; end; and N that come
 * too late. So of 5N regions a tracer records 3N. Prints what each omp_control_tool returned, one
 * line each with its command, then `checksum 5NT`.
 *
 * Return values (OpenMP 5.2, 18.14): -2 no tool, -1 no callback, 0 success, 1 ignored. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int threads, n;
static long sum;

static void regions(void) {
  for (int i = 0; i < n; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp atomic
    sum++;
  }
}

static void tell(int command, int modifier, void *argument) {
  printf("%d %d\n", command, omp_control_tool(command, modifier, argument));
}

int main(int argc, char **argv) {
  enum { begin_phase = 64, end_phase = 65, our_own = 100 };
  threads = argc > 1 ? atoi(argv[1]) : 2;
  n = argc > 2 ? atoi(argv[2]) : 10;
  char phase[] = "solve";
  regions();
  tell(omp_control_tool_pause, 0, NULL);
  regions();
  tell(omp_control_tool_start, 0, NULL);
  tell(begin_phase, 0, phase);
  regions();
  tell(end_phase, 0, phase);
  tell(our_own, 42, NULL);
  tell(omp_control_tool_flush, 0, NULL);
  regions();
  tell(omp_control_tool_end, 0, NULL);
  regions();
  printf("checksum %ld\n", sum);
  return sum != 5L * n * threads;
}
