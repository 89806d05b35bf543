/* Without a race, unless built with -DRACE. ThreadSanitizer knows by Archer alone what orders the accesses. Prints `5 2`. */
#include <stdio.h>

int main(void) {
  int first = 0, second = 0, members = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    {
#pragma omp task depend(out : first) shared(first)
      first = 5;
#pragma omp task depend(in : first) shared(first, second)
      second = first;
    }
#ifndef RACE
#pragma omp critical
#endif
    members++;
  }
  printf("%d %d\n", second, members);
  return 0;
}
