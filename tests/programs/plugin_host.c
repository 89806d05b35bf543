/* Loads the library of its second argument as the first one says, and calls its `count_threads`:
 * `plain`, `deepbind`, `dlmopen`, or `closed`, which is `deepbind` and unloads the library again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
  if (count < 3)
    return 2;
  int deep = !strcmp(arguments[1], "deepbind") || !strcmp(arguments[1], "closed");
  void *library = !strcmp(arguments[1], "dlmopen")
                      ? dlmopen(LM_ID_NEWLM, arguments[2], RTLD_NOW)
                      : dlopen(arguments[2], RTLD_NOW | (deep ? RTLD_DEEPBIND : 0));
  if (!library) {
    puts(dlerror());
    return 1;
  }
  long (*count_threads)(int) = (long (*)(int))dlsym(library, "count_threads");
  printf("%ld\n", count_threads(2));
  if (!strcmp(arguments[1], "closed")) {
    /* Its threads wait in libgomp's code, and would crash if that went away, too. */
    dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    dlclose(library);
  }
  return 0;
}
