/* The realistic program: heat spreads over a square plate, one parallel loop of 100 us and more per
 * step. What a tool costs must disappear in it. */
#include "program.h"

enum { SIDE = 512 };

static double plates[2][SIDE][SIDE];

static void spread(double (*restrict from)[SIDE], double (*restrict to)[SIDE]) {
#pragma omp parallel for schedule(static)
  for (int i = 1; i < SIDE - 1; i++)
    for (int j = 1; j < SIDE - 1; j++)
      to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
}

void work(long count) {
  for (int j = 0; j < SIDE; j++)
    plates[0][0][j] = plates[1][0][j] = 100.0;
  for (long i = 0; i < count; i++)
    spread(plates[i % 2], plates[(i + 1) % 2]);
}
