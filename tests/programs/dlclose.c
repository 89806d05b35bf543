/* Loads a library that uses OpenMP, uses it, unloads it; and once more. The program itself is built
 * without OpenMP, so some runtimes are unloaded too, finalize the tool, and start it anew the
 * second time; others stay.
 *
 *     dlclose LIBRARY [THREADS 2] [TIMES 2]
 *
 * LIBRARY is built from openmp_library.c. parallel_begin: TIMES, over all sessions. Prints
 * `checksum TIMES * T`. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  int threads = argc > 2 ? atoi(argv[2]) : 2;
  int times = argc > 3 ? atoi(argv[3]) : 2;
  long sum = 0;
  for (int i = 0; i < times; i++) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    long (*count_threads)(int) = (long (*)(int))dlsym(library, "count_threads");
    if (!count_threads)
      return 2;
    sum += count_threads(threads);
    dlclose(library);
  }
  printf("checksum %ld\n", sum);
  return sum != (long)times * threads;
}
