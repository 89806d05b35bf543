/* One thread reads what the others wait for: gcc_copyprivate ROUNDS. Prints what all threads got. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 10;
  long sum = 0;
#pragma omp parallel reduction(+ : sum)
  for (int round = 0; round < rounds; round++) {
    int value;
#pragma omp single copyprivate(value)
    {
      struct timespec time = {0, 10 * 1000 * 1000};
      nanosleep(&time, NULL);
      value = round;
    }
    sum += value;
  }
  printf("%ld\n", sum);
  return 0;
}
