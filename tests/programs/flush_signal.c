/* A signal that the tracer may use, too, and what becomes of it.
 *
 *     flush_signal child    forks: the child finds SIGUSR2 as every program does, uses OpenMP, is sent
 *                           SIGUSR2 and lives. parallel_begin: 1 in each process.
 *     flush_signal own      takes SIGUSR2 after a region, and has it still when the runtime has ended
 *                           the tool. parallel_begin: 1
 *
 * Prints `handled N`, how often the program's own handler ran. */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handle(int number) {
  (void)number;
  handled++;
}

__attribute__((noinline)) static void region(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
  ;
}

static int child(void) {
  struct sigaction action;
  if (sigaction(SIGUSR2, NULL, &action) || action.sa_handler != SIG_DFL)
    return 3;
  region();
  raise(SIGUSR2);
  return 0;
}

int main(int argc, char **argv) {
  region();
  int status = 0;
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    pid_t forked = fork();
    if (forked == 0)
      return child();
    if (waitpid(forked, &status, 0) != forked)
      return 2;
  } else {
    signal(SIGUSR2, handle);
    omp_pause_resource_all(omp_pause_hard);
    raise(SIGUSR2);
  }
  printf("handled %d\n", (int)handled);
  return status != 0;
}
