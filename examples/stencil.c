/* A 2D stencil with a load imbalance: heat spreads over a plate, and cells beyond the plate's edge
 * cost nothing.
 *
 *     clang -g -O2 -fopenmp stencil.c -o stencil
 *     omptrace record -o stencil.omptrace -- ./stencil
 *     omptrace convert stencil.omptrace --to chrome -o stencil.json.gz      open it at https://ui.perfetto.dev
 *
 * What to look for
 *
 *   The plate is a triangle: row i has i cells. With schedule(static) the thread that has the lower
 *   rows works longest, and the others wait for it: in each step "!$omp for" ends early on the
 *   first threads, and a long "!$omp implicit barrier" follows. The second half of the run does the
 *   same work with schedule(dynamic): the barriers nearly vanish, and marks below each loop show
 *   the chunks that its thread took.
 *
 *   Try ./stencil 4800 20 with OMP_NUM_THREADS=4, and look how much of the first half is barrier.
 *
 * ./stencil [SIZE 2400] [STEPS 80]: the plate's side in cells, and the steps of each half. */
#include <stdio.h>
#include <stdlib.h>

static int size;

static double *row(double *plate, int i) { return plate + (size_t)i * size; }

static void spread(double *from, double *to, int i) {
  double *above = row(from, i - 1), *here = row(from, i), *below = row(from, i + 1),
         *next = row(to, i);
  for (int j = 1; j < i; j++)
    next[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
}

/* Not inlined: the compiler would make one call of both, and one place in the timeline. */
__attribute__((noinline)) static void step_static(double *from, double *to) {
#pragma omp parallel for schedule(static)
  for (int i = 1; i < size - 1; i++)
    spread(from, to, i);
}

__attribute__((noinline)) static void step_dynamic(double *from, double *to) {
#pragma omp parallel for schedule(dynamic, 32)
  for (int i = 1; i < size - 1; i++)
    spread(from, to, i);
}

int main(int argc, char **argv) {
  size = argc > 1 ? atoi(argv[1]) : 2400;
  int steps = argc > 2 ? atoi(argv[2]) : 80;
  double *plate = calloc((size_t)size * size, sizeof *plate);
  double *other = calloc((size_t)size * size, sizeof *other);
  if (size < 3 || !plate || !other)
    return EXIT_FAILURE;
  /* The lower edge is hot, and stays so. */
  for (int j = 0; j < size; j++)
    row(plate, size - 1)[j] = row(other, size - 1)[j] = 100.0;

  for (int step = 0; step < 2 * steps; step++) {
    if (step < steps)
      step_static(plate, other);
    else
      step_dynamic(plate, other);
    double *swap = plate;
    plate = other;
    other = swap;
  }

  double heat = 0;
#pragma omp parallel for reduction(+ : heat)
  for (int i = 1; i < size - 1; i++)
    for (int j = 1; j < i; j++)
      heat += row(plate, i)[j];
  printf("heat %.6f\n", heat);
  free(plate);
  free(other);
}
