/* Nested parallelism: two halves of a matrix product, each with a team of its own.
 *
 *     clang -g -O2 -fopenmp nested.c -o nested
 *     omptrace record -o nested.omptrace -- ./nested
 *     omptrace convert nested.omptrace --to chrome -o nested.json.gz       open it at https://ui.perfetto.dev
 *
 * What to look for
 *
 *   The outer region has two threads; each of them begins a region of two more, so that an inner
 *   "!$omp parallel" lies inside the outer one's slice, and threads that were idle before join it.
 *   Between the rounds, the inner teams dissolve, while the outer threads go on.
 *
 *   On a machine with fewer than four cores, the four threads share them: the barriers grow with
 *   every thread that has to wait for a core. Then try OMP_MAX_ACTIVE_LEVELS=1: the inner regions
 *   have one thread each, and are gone from the timeline of all but two threads.
 *
 * ./nested [SIZE 960] [ROUNDS 8] */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int size;
static float *a, *b, *c;

static void multiply_row(int i) {
  float *result = c + (size_t)i * size;
  for (int k = 0; k < size; k++) {
    float factor = a[(size_t)i * size + k];
    for (int j = 0; j < size; j++)
      result[j] += factor * b[(size_t)k * size + j];
  }
}

static void multiply_half(int half) {
  int middle = size / 2, first = half ? middle : 0, end = half ? size : middle;
#pragma omp parallel for num_threads(2) schedule(guided)
  for (int i = first; i < end; i++)
    multiply_row(i);
}

int main(int argc, char **argv) {
  size = argc > 1 ? atoi(argv[1]) : 960;
  int rounds = argc > 2 ? atoi(argv[2]) : 8;
  size_t cells = (size_t)size * size;
  a = malloc(cells * sizeof *a);
  b = malloc(cells * sizeof *b);
  c = calloc(cells, sizeof *c);
  if (!a || !b || !c)
    return EXIT_FAILURE;
  for (size_t i = 0; i < cells; i++) {
    a[i] = (float)(i % 7);
    b[i] = (float)(i % 5);
  }
  if (!getenv("OMP_MAX_ACTIVE_LEVELS"))
    omp_set_max_active_levels(2);

  for (int round = 0; round < rounds; round++) {
#pragma omp parallel num_threads(2)
    multiply_half(omp_get_thread_num());
  }

  double trace = 0;
  for (int i = 0; i < size; i++)
    trace += c[(size_t)i * size + i];
  printf("trace %.0f\n", trace);
  free(a);
  free(b);
  free(c);
}
