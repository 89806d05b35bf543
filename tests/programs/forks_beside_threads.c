/* Forks 40 times while two threads use OpenMP at many places, which are new to each thread. Each child uses OpenMP, too. Prints the
 * number of children that ended well. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int done;
static atomic_long sum;

/* A lock could be held by a thread that a child does not have. */
#define ONE _Pragma("omp parallel num_threads(1)") sum++;
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE

static void *thread(void *unused) {
  while (!done) {
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, thread, NULL);
  int well = 0;
  for (int i = 0; i < 40; i++) {
    pid_t child = fork();
    if (child == 0) {
      TEN
      _exit(5);
    }
    int status = 0;
    waitpid(child, &status, 0);
    well += WIFEXITED(status) && WEXITSTATUS(status) == 5;
  }
  done = 1;
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  printf("%d children\n", well);
  return 0;
}
