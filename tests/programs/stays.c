/* Runs ROUNDS parallel regions, says `ready`, and stays until it is killed.
 *
 *     stays HOW
 *
 * What it does before it says so may cost it a lock on a file:
 *
 *     plain   nothing
 *     close   closes every descriptor that it did not open
 *     fork    forks a child, which stays too and uses no OpenMP; writes its process id
 *     daemon  as daemon(3): the child goes on, and its parent ends without the end of its session
 *     exec    executes sleep(1)
 *
 * One that goes on runs another ROUNDS regions before it stays. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 100 };

static void work(void) {
  for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(2)
    {
    }
  }
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "plain";
  pid_t child = 0;
  work();
  if (strcmp(how, "close") == 0) {
    for (int file = 3; file < 5000; file++)
      close(file);
  } else if (strcmp(how, "fork") == 0) {
    child = fork();
    if (child == 0)
      for (;;)
        pause();
  } else if (strcmp(how, "daemon") == 0) {
    if (fork() != 0)
      _exit(0);
    setsid();
  } else if (strcmp(how, "exec") == 0) {
    puts("ready 0");
    fflush(stdout);
    execlp("sleep", "sleep", "1000", (char *)NULL);
    return 1;
  }
  work();
  printf("ready %d\n", (int)child);
  fflush(stdout);
  for (;;)
    pause();
}
