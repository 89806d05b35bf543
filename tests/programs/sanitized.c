/* What sanitizers look at: begins and ends of OpenMP, and one mistake of the program's own.
 *
 *     sanitized well|leak|overrun|uninitialized|overflow|within */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shared;

static int work(void) {
  int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
  {
    threads++;
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 8; i++)
      threads += 0;
#pragma omp critical
    shared++;
#pragma omp single
    {
#pragma omp task
      shared += 0;
    }
  }
  return threads;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "well";
  int threads = 0;
  for (int i = 0; i < 500; i++)
    threads += work();
  printf("threads %d\n", threads);
  fflush(stdout);
  if (strcmp(how, "leak") == 0) {
    char *volatile lost = malloc(77);
    lost[0] = 1;
    lost = NULL;
  }
  if (strcmp(how, "overrun") == 0) {
    char *volatile text = malloc(8);
    text[7 + argc - 1] = 1;
    free(text);
  }
  if (strcmp(how, "uninitialized") == 0) {
    int *volatile numbers = malloc(8);
    if (numbers[1] == 77)
      fprintf(stderr, "by luck\n");
    free(numbers);
  }
  if (strcmp(how, "overflow") == 0) {
    int most = 0x7fffffff;
    most += argc;
    printf("%d\n", most);
  }
  if (strcmp(how, "within") == 0) {
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
#pragma omp master
      exit(6);
#pragma omp barrier
    }
  }
  return 5;
}
