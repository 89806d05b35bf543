/* Forks while another thread is in the program's own `ompt_start_tool`; the child uses OpenMP. Where nobody looks for a tool, it
 * forks behind the other thread's region.
 *
 * Prints `child 1`. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t may_fork, has_forked;

void *ompt_start_tool(unsigned version, const char *runtime) {
  (void)version;
  (void)runtime;
  sem_post(&may_fork);
  sem_wait(&has_forked);
  return NULL;
}

static int region(void) {
  int sum = 0;
#pragma omp parallel num_threads(1) reduction(+ : sum)
  sum += 1;
  return sum;
}

static void *first(void *unused) {
  (void)unused;
  region();
  sem_post(&may_fork);
  return NULL;
}

int main(void) {
  pthread_t thread;
  sem_init(&may_fork, 0, 0);
  sem_init(&has_forked, 0, 0);
  if (pthread_create(&thread, NULL, first, NULL))
    return 2;
  sem_wait(&may_fork);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(region());
  }
  sem_post(&has_forked);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return 2;
  pthread_join(thread, NULL);
  if (WIFSIGNALED(status))
    printf("child killed by %d\n", WTERMSIG(status));
  else
    printf("child %d\n", WEXITSTATUS(status));
  return 0;
}
