/* Target constructs, run on the host by clang-22 -fopenmp-targets=x86_64-pc-linux-gnu.
 *
 *     target [N 1000] [ROUNDS 3]
 *
 * Per round R: target_emi 6 begin, 6 end (enter data, update to, target, update from, exit data,
 * and a target with a map of its own); target_submit_emi 2 begin, 2 end. Prints `checksum R * N *
 * (N + 1) / 2 + R`. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  int rounds = argc > 2 ? atoi(argv[2]) : 3;
  long *numbers = malloc(n * sizeof *numbers);
  if (!numbers)
    return 2;
  long sum = 0, sentinels = 0;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < n; i++)
      numbers[i] = i;
#pragma omp target enter data map(alloc : numbers[0 : n])
#pragma omp target update to(numbers[0 : n])
#pragma omp target
    for (int i = 0; i < n; i++)
      numbers[i] += 1;
#pragma omp target update from(numbers[0 : n])
#pragma omp target exit data map(delete : numbers[0 : n])
    for (int i = 0; i < n; i++)
      sum += numbers[i];
#pragma omp target map(tofrom : sentinels)
    sentinels += 1;
  }
  free(numbers);
  sum += sentinels;
  printf("checksum %ld\n", sum);
  return sum != rounds * ((long)n * (n + 1) / 2 + 1);
}
