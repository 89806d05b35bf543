/* Loads each library that it is given, calls its `count`, and unloads it, so that one takes the place of the other.
 *
 *     names_host LIBRARY...
 *
 * Libraries are built from names_library.c. parallel_begin: 1 each. Prints the address of each `count`, then
 * `checksum 2 * LIBRARIES`. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int sum = 0;
  for (int i = 1; i < argc; i++) {
    void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    int (*count)(void) = (int (*)(void))dlsym(library, "count");
    if (!count)
      return 2;
    sum += count();
    printf("%p\n", (void *)count);
    dlclose(library);
  }
  printf("checksum %d\n", sum);
  return 0;
}
