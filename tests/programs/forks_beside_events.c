/* Forks 1000 times while two threads fulfill events of detachable tasks; so does each child.
 *
 * Prints `children that did not end: 0`. */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int is_over;

static void detached(void) {
#pragma omp parallel num_threads(1)
  {
    omp_event_handle_t event;
#pragma omp task detach(event)
    omp_fulfill_event(event);
#pragma omp taskwait
  }
}

static void *run(void *unused) {
  while (!is_over)
    detached();
  return unused;
}

int main(void) {
  int killed = 0;
  pthread_t threads[2];
  detached();
  for (int i = 0; i < 2; i++)
    if (pthread_create(&threads[i], NULL, run, NULL))
      return 2;
  for (int i = 0; i < 1000 && killed == 0; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      detached();
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
      return 3;
    killed += status != 0;
  }
  is_over = 1;
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  printf("children that did not end: %d\n", killed);
  return 0;
}
