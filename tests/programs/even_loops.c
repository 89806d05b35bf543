/* ROUNDS parallel loops whose threads have the same to do, without a pause: they want their processors all the time. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 100;
  double sum = 0;
  for (int round = 0; round < rounds; round++) {
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 50)
    for (int i = 0; i < 2000; i++)
      for (int j = 0; j < 300; j++)
        sum += 1.0 / (1 + i + j);
  }
  printf("%g\n", sum);
  return 0;
}
