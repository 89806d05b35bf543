/* Functions that end by a construct, so that compilers jump to the runtime: it finds the return address of the caller. */
#include <omp.h>

static omp_lock_t lock;
static volatile int sum;

static __attribute__((noinline)) void region(void) {
#pragma omp parallel num_threads(2)
  sum++;
}

static __attribute__((noinline)) void chain(void) {
  sum++;
  region();
}

__attribute__((noinline)) void exported(void) {
  sum++;
#pragma omp parallel num_threads(2)
  sum++;
}

static __attribute__((noinline)) void set(void) {
  sum++;
  omp_set_lock(&lock);
}

int main(void) {
  omp_init_lock(&lock);
  region(); /* one */
  sum++;
  chain(); /* two */
  sum++;
  exported(); /* three */
  sum++;
  set(); /* four */
  omp_unset_lock(&lock);
#pragma omp parallel num_threads(2)
  sum++;
  omp_destroy_lock(&lock); /* destroyed */
  return 0;
}
