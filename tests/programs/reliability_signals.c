/* Signal handlers that use OpenMP, while their threads are in the middle of callbacks.
 *
 *     reliability_signals [THREADS 2] [SIGNALS 20000]
 *
 * A timer of 1 kHz, and a thread that sends a signal to one of the team as soon as the one before
 * was handled. The handler tests a lock of its own and flushes. Prints `handled N`, how often it ran,
 * and `mutexes N`: the callbacks mutex_acquire, mutex_acquired and mutex_released that were made, by
 * handlers (three each at most) and by the team.
 *
 * The team's rounds are limited, since the test looks at each of their events: on a very busy machine,
 * where signals take long, there are fewer of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static omp_lock_t handlers;
static atomic_long mutexes, handled;
static atomic_int done, stop, changed_errno;
static pthread_t team[16];
static int threads = 2, signals = 20000;

enum { MOST_ROUNDS = 10000 };

static void handle(int unused) {
  (void)unused;
  errno = 4711;
  if (omp_test_lock(&handlers)) {
    omp_unset_lock(&handlers);
    mutexes += 2;
  }
  mutexes++;
#pragma omp flush
  if (errno != 4711)
    changed_errno++;
  handled++;
}

/* Signals as fast as they are handled: nearly every callback is interrupted now and then. */
static void *send(void *unused) {
  for (int i = 0; i < signals && !stop; i++) {
    long before = handled;
    if (pthread_kill(team[i % threads], SIGUSR1) != 0)
      break;
    while (handled == before)
      sched_yield();
  }
  done = 1;
  return unused;
}

int main(int argc, char **argv) {
  if (argc > 1)
    threads = atoi(argv[1]);
  if (argc > 2)
    signals = atoi(argv[2]);
  omp_init_lock(&handlers);
#pragma omp parallel num_threads(threads)
  team[omp_get_thread_num()] = pthread_self();

  struct sigaction action = {.sa_handler = handle};
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  /* The sender has no business in a handler. */
  pthread_sigmask(SIG_BLOCK, &alarms, NULL);
  pthread_t sender;
  pthread_create(&sender, NULL, send, NULL);
  pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  struct itimerval every_ms = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every_ms, NULL);

  long sum = 0, rounds = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
  while (!done && rounds < MOST_ROUNDS) {
    rounds++;
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < 20; i++) {
      omp_set_lock(&lock);
      sum++;
      omp_unset_lock(&lock);
#pragma omp task
      {
      }
    }
  }
  stop = 1;
  setitimer(ITIMER_REAL, &never, NULL);
  pthread_join(sender, NULL);
  mutexes += 3 * 20 * threads * rounds;
  printf("handled %ld\nmutexes %ld\n", handled, mutexes);
  if (changed_errno)
    fprintf(stderr, "errno changed %d times\n", changed_errno);
  return changed_errno != 0 || sum != 20 * threads * rounds;
}
