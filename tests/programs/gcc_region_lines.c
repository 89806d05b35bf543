/* Parallel regions whose calls of libgomp GCC gives the line of another statement, or merges: those of choose() are jumps at -O2. Each
   region is at the line of its directive: 17, 20, 23 and 32. */
#include <stdio.h>
#include <stdlib.h>

static long sums[64];

static void rest(int i) {
  for (volatile int k = 0; k < 1000; k++)
    sums[i] += k;
}

__attribute__((noinline)) static void choose(int kind) {
  if (kind == 1) {
    int unused = kind;
    (void)unused;
#pragma omp parallel num_threads(2)
    rest(1);
  } else if (kind == 2) {
#pragma omp parallel num_threads(2)
    rest(2);
  } else {
#pragma omp parallel num_threads(2)
    rest(3);
  }
}

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 1;
  for (int step = 0; step < steps; step++) {
    puts("begin");
#pragma omp parallel for schedule(static) num_threads(2)
    for (int i = 0; i < 4; i++)
      rest(i);
    puts("end");
    for (int kind = 1; kind <= 3; kind++)
      choose(kind);
  }
  return 0;
}
