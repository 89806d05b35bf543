/* Target constructs and device memory routines on several devices from several host threads.
 *
 *     offload MODE [ROUNDS 3]
 *
 * Built by clang-22 -fopenmp-targets=x86_64-pc-linux-gnu, which offers 4 devices on the host's own
 * cores. MODE is one of:
 *
 *     constructs  target, target data, update, enter and exit data, teams, on each device
 *     threads     2 host threads, each with a device of its own
 *     nowait      target tasks, run by hidden helper threads
 *     memcpy      omp_target_memcpy only: data operations without a target region
 *
 * Prints `checksum C`, with C in closed form below. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 256 };

static long sum(const int *numbers) {
  long sum = 0;
  for (int i = 0; i < N; i++)
    sum += numbers[i];
  return sum;
}

static void fill(int *numbers, int value) {
  for (int i = 0; i < N; i++)
    numbers[i] = value;
}

/* 3 kernels; the sum is 3 * N. */
static long constructs(int device) {
  int numbers[N], enlarged = 0;
  fill(numbers, 0);
#pragma omp target enter data map(to : numbers[0 : N]) device(device)
#pragma omp target update to(numbers[0 : N]) device(device)
#pragma omp target data map(tofrom : enlarged) device(device)
  {
#pragma omp target device(device)
    for (int i = 0; i < N; i++)
      numbers[i] += 1;
#pragma omp target teams distribute parallel for num_teams(2) num_threads(2) device(device)
    for (int i = 0; i < N; i++)
      numbers[i] += 1;
  }
#pragma omp target map(tofrom : numbers[0 : N]) device(device)
  for (int i = 0; i < N; i++)
    numbers[i] += 1;
#pragma omp target update from(numbers[0 : N]) device(device)
#pragma omp target exit data map(release : numbers[0 : N]) device(device)
  return sum(numbers) + enlarged;
}

static long threads(int rounds) {
  long total = 0;
#pragma omp parallel num_threads(2) reduction(+ : total)
  for (int round = 0; round < rounds; round++)
    total += constructs(omp_get_thread_num());
  return total;
}

/* 4 kernels; the sum is 4 * N. */
static long nowait(void) {
  int numbers[4][N];
  for (int i = 0; i < 4; i++)
    fill(numbers[i], 0);
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int device = 0; device < 4; device++) {
#pragma omp target map(tofrom : numbers[device][0 : N]) device(device) nowait
    for (int i = 0; i < N; i++)
      numbers[device][i] += 1;
  }
  long total = 0;
  for (int i = 0; i < 4; i++)
    total += sum(numbers[i]);
  return total;
}

/* The sum is N. */
static long copy(void) {
  int numbers[N], host = omp_get_initial_device();
  fill(numbers, 1);
  int *there = omp_target_alloc(sizeof numbers, 0);
  if (!there)
    return -1;
  omp_target_memcpy(there, numbers, sizeof numbers, 0, 0, 0, host);
  fill(numbers, 0);
  omp_target_memcpy(numbers, there, sizeof numbers, 0, 0, host, 0);
  omp_target_free(there, 0);
  return sum(numbers);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "constructs";
  int rounds = argc > 2 ? atoi(argv[2]) : 3;
  long total = 0, expected = 0;
  if (!strcmp(mode, "threads")) {
    total = threads(rounds);
    expected = 2L * rounds * 3 * N;
  }
  for (int round = 0; round < rounds; round++) {
    if (!strcmp(mode, "constructs"))
      for (int device = 0; device < 4; device++, expected += 3 * N)
        total += constructs(device);
    if (!strcmp(mode, "nowait")) {
      total += nowait();
      expected += 4 * N;
    }
    if (!strcmp(mode, "memcpy")) {
      total += copy();
      expected += N;
    }
  }
  printf("checksum %ld\n", total);
  return total != expected || !expected;
}
