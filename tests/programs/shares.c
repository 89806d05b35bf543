/* Divides the processor time of each thread among three functions: 60, 30 and 10 %.
 *
 *     shares [THREADS 2] [MILLISECONDS 1000]
 *
 * Each thread calls the function that lags most behind its share, until it has had so much processor time, and reads its clock before and
 * after each call. Prints `NAME NANOSECONDS` for each function: the sum of all threads. `sixty` makes no call. `thirty` realigns its stack,
 * and has an array whose length the compiler does not know: `inner` works for it. `ten` calls itself. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FUNCTIONS = 3, STEPS = 20000, DEPTH = 5 };
#define OWN __attribute__((noinline))

/* By chance, so that no rhythm of the calls meets that of the samples. */
static int steps(unsigned value) { return STEPS + value % STEPS; }

static unsigned long cpu(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

OWN unsigned sixty(unsigned value) {
  for (int left = steps(value); left > 0; left--)
    value = value * 1664525u + 1013904223u + (value >> 7);
  return value;
}

OWN unsigned inner(const volatile unsigned *array, unsigned value) {
  for (int left = steps(value); left > 0; left--)
    value = value * 1664525u + array[left & 7];
  return value;
}

OWN unsigned thirty(unsigned value) {
  unsigned aligned[16] __attribute__((aligned(64)));
  unsigned length = 8 + value % 8, array[length];
  __asm__ volatile("" ::"r"(aligned), "r"(array) : "memory");
  for (unsigned index = 0; index < length; index++)
    array[index] = aligned[index] = value + index;
  value = inner(array, value) + aligned[value % 8];
  __asm__ volatile("" ::"r"(aligned), "r"(array) : "memory");
  return value;
}

OWN unsigned down(unsigned value, int depth) {
  if (depth > 0) {
    value = down(value, depth - 1);
    /* Keeps the call from being the function's last act, a jump. */
    __asm__ volatile("");
    return value + depth;
  }
  for (int left = steps(value); left > 0; left--)
    value = value * 22695477u + 1u + (value >> 9);
  return value;
}

OWN unsigned ten(unsigned value) {
  value = down(value, DEPTH);
  __asm__ volatile("");
  return value + 1;
}

static const struct {
  const char *name;
  unsigned (*function)(unsigned);
  unsigned long share;
} shares[FUNCTIONS] = {{"sixty", sixty, 60}, {"thirty", thirty, 30}, {"ten", ten, 10}};

static unsigned long worked[FUNCTIONS];
static volatile unsigned sink;

OWN void work(unsigned long ns) {
  unsigned long had[FUNCTIONS] = {0}, all = 0, before = cpu();
  while (all < ns) {
    int next = 0;
    for (int other = 1; other < FUNCTIONS; other++)
      if (had[other] * shares[next].share < had[next] * shares[other].share)
        next = other;
    sink = shares[next].function(sink);
    unsigned long after = cpu();
    had[next] += after - before;
    all += after - before;
    before = after;
  }
  for (int each = 0; each < FUNCTIONS; each++) {
#pragma omp atomic
    worked[each] += had[each];
  }
}

int main(int count, char **words) {
  int threads = count > 1 ? atoi(words[1]) : 2;
  unsigned long ns = (count > 2 ? atol(words[2]) : 1000) * 1000000L;
#pragma omp parallel num_threads(threads)
  work(ns);
  for (int each = 0; each < FUNCTIONS; each++)
    printf("%s %lu\n", shares[each].name, worked[each]);
  return 0;
}
