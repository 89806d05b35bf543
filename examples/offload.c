/* Offloading, and what it costs to carry data to and fro: waves run along a string on a device.
 *
 *     clang -g -O2 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu offload.c -o offload
 *     omptrace record -o offload.omptrace -- ./offload
 *     omptrace view offload.omptrace
 *
 * Any target of your compiler does. LLVM's x86_64 is a device that uses the host's own cores: it
 * needs no GPU, and its kernels run inside "!$omp target submit" on the thread that submits them.
 *
 * What to look for
 *
 *   Below the threads, "device 0" has tracks of its own: kernels, transfers to and from the device,
 *   and memory, and arrows lead there from the host. In the first half of the run each step carries
 *   the whole string to the device and back: two transfers around each kernel, and memory in use goes
 *   up and down with each step. In the second half, "!$omp target enter data" leaves it there, and
 *   nothing but kernels is left until the end.
 *
 *   Tracks marked (host-observed) belong to a device that gives no trace records: they show from when
 *   to when the host was busy with it. On a runtime that traces its devices they are the device's own.
 *
 * ./offload [POINTS 100000] [STEPS 20]: points of the string, and the steps of each half. */
#include <stdio.h>
#include <stdlib.h>

/* One step in time, on the device: `next` from the last two states. */
static void step(int points, const float *before, const float *now, float *next) {
#pragma omp target teams distribute parallel for map(to : before[0 : points], now[0 : points])     \
    map(from : next[0 : points])
  for (int i = 0; i < points; i++)
    next[i] = i == 0 || i == points - 1
                  ? 0
                  : now[i] + now[i] - before[i] + 0.25f * (now[i - 1] - 2 * now[i] + now[i + 1]);
}

int main(int argc, char **argv) {
  int points = argc > 1 ? atoi(argv[1]) : 100000;
  int steps = argc > 2 ? atoi(argv[2]) : 20;
  float *states[3];
  for (int i = 0; i < 3; i++) {
    states[i] = calloc(points < 3 ? 3 : points, sizeof(float));
    if (!states[i] || points < 3)
      return EXIT_FAILURE;
  }
  /* It is plucked in the middle. */
  states[0][points / 2] = states[1][points / 2] = 1;

  for (int i = 0; i < steps; i++)
    step(points, states[i % 3], states[(i + 1) % 3], states[(i + 2) % 3]);

  float *a = states[0], *b = states[1], *c = states[2];
#pragma omp target enter data map(to : a[0 : points], b[0 : points], c[0 : points])
  for (int i = steps; i < 2 * steps; i++)
    step(points, states[i % 3], states[(i + 1) % 3], states[(i + 2) % 3]);
#pragma omp target exit data map(from : a[0 : points], b[0 : points], c[0 : points])

  double sum = 0;
  for (int i = 0; i < points; i++)
    sum += states[(2 * steps + 1) % 3][i];
  printf("wave %.6f\n", sum);
  for (int i = 0; i < 3; i++)
    free(states[i]);
  return EXIT_SUCCESS;
}
