/* Opens the library of its argument, and closes it. With `BEFORE` it runs a region of two threads first, with `DEEPBIND` it opens
 * the library so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  int threads = 1;
  if (getenv("BEFORE")) {
#pragma omp parallel num_threads(2)
#pragma omp single
    threads = omp_get_num_threads();
  }
  void *library = dlopen(arguments[1], RTLD_NOW | (getenv("DEEPBIND") ? RTLD_DEEPBIND : 0));
  if (!library)
    return puts(dlerror()), 1;
  dlclose(library);
  printf("%d\n", threads);
  return 6;
}
