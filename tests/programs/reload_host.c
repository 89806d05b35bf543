/* Loads each library among its arguments, calls its `count_threads`, and unloads it again, twenty times over: the next
 * may lie where the one before lay. libgomp stays loaded, since its threads wait in its code. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
  if (!dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL))
    return 1;
  for (int round = 0; round < 20; round++) {
    for (int i = 1; i < count; i++) {
      void *library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
      if (!library) {
        puts(dlerror());
        return 1;
      }
      long (*count_threads)(int) = (long (*)(int))dlsym(library, "count_threads");
      printf("%ld\n", count_threads(2));
      dlclose(library);
    }
  }
  return 0;
}
