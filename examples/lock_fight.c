/* Threads that fight for a lock: a histogram, first with one lock for all of it, then with one per
 * part, then with none.
 *
 *     clang -g -O2 -fopenmp lock_fight.c -o lock_fight -lm
 *     omptrace record -o lock_fight.omptrace -- ./lock_fight
 *     omptrace convert lock_fight.omptrace --to chrome -o lock_fight.json.gz   open it at https://ui.perfetto.dev
 *
 * What to look for
 *
 *   Three parallel regions. In the first, the threads spend much of their time in "omp_set_lock",
 *   waiting for the lock, whose own track shows who held it: it goes from hand to hand. In the
 *   second there are sixteen locks, and the waits are short and rare. In the third each thread
 *   counts for itself, and there is one short critical section per thread at the end.
 *
 * ./lock_fight [SAMPLES 60000] */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 256, PARTS = 16 };

static long histogram[BINS];

/* Some work that ends in a bin. */
static int sample(int i) {
  double x = i;
  for (int round = 0; round < 20; round++)
    x = sin(x) + i;
  return (int)(fabs(x) * 1e4) % BINS;
}

/* What has to be done while nobody else changes the bin. */
static void add(int bin) {
  double x = bin;
  for (int round = 0; round < 120; round++)
    x = cos(x);
  histogram[bin] += x > -2;
}

static void one_lock(int samples) {
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel for
  for (int i = 0; i < samples; i++) {
    int bin = sample(i);
    omp_set_lock(&lock);
    add(bin);
    omp_unset_lock(&lock);
  }
  omp_destroy_lock(&lock);
}

static void many_locks(int samples) {
  omp_lock_t locks[PARTS];
  for (int part = 0; part < PARTS; part++)
    omp_init_lock(&locks[part]);
#pragma omp parallel for
  for (int i = 0; i < samples; i++) {
    int bin = sample(i);
    omp_set_lock(&locks[bin % PARTS]);
    add(bin);
    omp_unset_lock(&locks[bin % PARTS]);
  }
  for (int part = 0; part < PARTS; part++)
    omp_destroy_lock(&locks[part]);
}

static void no_lock(int samples) {
#pragma omp parallel
  {
    long mine[BINS] = {0};
#pragma omp for nowait
    for (int i = 0; i < samples; i++)
      mine[sample(i)]++;
#pragma omp critical(merge)
    for (int bin = 0; bin < BINS; bin++)
      histogram[bin] += mine[bin];
  }
}

int main(int argc, char **argv) {
  int samples = argc > 1 ? atoi(argv[1]) : 60000;
  one_lock(samples);
  many_locks(samples);
  no_lock(samples);
  long total = 0;
  for (int bin = 0; bin < BINS; bin++)
    total += histogram[bin];
  printf("%ld samples in %d bins\n", total, BINS);
}
