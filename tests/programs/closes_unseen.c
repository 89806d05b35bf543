/* Opens libraries in turn, calls `count_threads` of each, and closes it by a function that nothing preloaded sees. Something else comes
 * to lie where its libgomp was, so that the next library may lie where the one before was, and its libgomp does not.
 *
 *     closes_unseen LIBRARY... */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(int count, char **arguments) {
  void *libc = dlopen("libc.so.6", RTLD_NOW);
  int (*close)(void *) = (int (*)(void *))dlsym(libc, "dlclose");
  for (int round = 0; round < 6; round++)
    for (int i = 1; i < count; i++) {
      void *library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
      if (!library)
        return puts(dlerror()), 1;
      long (*count_threads)(int) = (long (*)(int))dlsym(library, "count_threads");
      printf("%ld\n", count_threads(1));
      fflush(stdout);
      /* A library's own name goes with it. */
      close(library);
      size_t bytes = (round + 1) * (256 << 10);
      void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      memset(memory, 0xcc, bytes);
    }
  /* One that is seen. */
  void *library = dlopen("libm.so.6", RTLD_NOW);
  dlclose(library);
  return 7;
}
