/* Goes on until it is killed: rounds of a loop whose second thread has more to do, and of a lock that both want.
 *
 *     goes_on
 *
 * It says `ready` when some rounds are over. */
#include <omp.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS_BEFORE = 20 };

static volatile double sink;

static void work(int amount) {
  for (int i = 0; i < amount; i++)
    sink += i;
}

int main(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  for (long round = 0;; round++) {
#pragma omp parallel num_threads(2)
    {
      work(20000 * (1 + omp_get_thread_num()));
#pragma omp barrier
      omp_set_lock(&lock);
      work(20000);
      omp_unset_lock(&lock);
    }
    if (round == ROUNDS_BEFORE) {
      puts("ready");
      fflush(stdout);
    }
    /* The machine has other work to do. */
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
}
