/* So many tiny tasks that their analysis takes longer than they do. */
#include <stdlib.h>

int main(int argc, char **argv) {
  long tasks = argc > 1 ? atol(argv[1]) : 1000;
  long sum = 0;
#pragma omp parallel
#pragma omp single
  for (long i = 0; i < tasks; i++) {
#pragma omp task firstprivate(i) shared(sum)
#pragma omp atomic
    sum += i & 1;
  }
  return sum != tasks / 2;
}
