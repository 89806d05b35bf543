/* Three parallel regions on the runtime collector_runtime.c or tr2_runtime.c: linked to it, or, given its path, loading it.
 * With ON_SMALLEST_STACK in the environment, a thread with such a stack runs them. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef void region_t(void (*body)(void));
__attribute__((weak)) region_t old_region;

static region_t *region;
static int sum;
static void body(void) { sum++; }

static void *regions(void *unused) {
  for (int i = 0; i < 3; i++)
    region(body);
  return unused;
}

int main(int argc, char **argv) {
  region = old_region;
  if (argc > 1) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      puts(dlerror());
      return 1;
    }
    region = (region_t *)dlsym(library, "old_region");
  }
  if (getenv("ON_SMALLEST_STACK")) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0 ||
        pthread_create(&thread, &attributes, regions, NULL) != 0)
      return 2;
    pthread_join(thread, NULL);
  } else {
    regions(NULL);
  }
  printf("sum %d\n", sum);
  return 0;
}
