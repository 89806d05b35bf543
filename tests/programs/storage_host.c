/* Uses OpenMP, and then loads the libraries that it is given; prints how many of them could be loaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int loaded = 0;
  long n = 0;
#pragma omp parallel num_threads(2) reduction(+ : n)
  n++;
  for (int i = 1; i < argc; i++) {
    void *library = dlopen(argv[i], RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    loaded += library != NULL;
  }
#pragma omp parallel num_threads(2) reduction(+ : n)
  n++;
  printf("loaded %d\n", loaded);
  return n != 4;
}
