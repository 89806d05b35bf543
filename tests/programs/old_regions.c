/* Three parallel regions on the runtime collector_runtime.c or tr2_runtime.c: linked to it, or, given its path, loading it. */
#include <dlfcn.h>
#include <stdio.h>

typedef void region_t(void (*body)(void));
__attribute__((weak)) region_t old_region;

static int sum;
static void body(void) { sum++; }

int main(int argc, char **argv) {
  region_t *region = old_region;
  if (argc > 1) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      puts(dlerror());
      return 1;
    }
    region = (region_t *)dlsym(library, "old_region");
  }
  for (int i = 0; i < 3; i++)
    region(body);
  printf("sum %d\n", sum);
  return 0;
}
