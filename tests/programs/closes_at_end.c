/* A program without OpenMP that loads a library with OpenMP, calls it, and loads a library whose destructor, at the end of
 * the process, closes another library: at that time the destructor of libgomp has already run.
 *
 *     closes_at_end OPENMP_LIBRARY LIBRARY
 *
 * OPENMP_LIBRARY is built from openmp_library.c, LIBRARY from this file with -DLIBRARY. parallel_begin: 1. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef LIBRARY

static void *handle;

__attribute__((constructor)) static void open_other(void) { handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL); }

__attribute__((destructor)) static void close_other(void) {
  printf("closed %d\n", dlclose(handle));
  fflush(stdout);
}

#else

int main(int count, char **arguments) {
  void *library = count > 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  long (*count_threads)(int) = library ? (long (*)(int))dlsym(library, "count_threads") : NULL;
  if (!count_threads)
    return 2;
  printf("checksum %ld\n", count_threads(2));
  return dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL) ? 0 : 2;
}

#endif
