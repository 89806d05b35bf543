/* Prints what `dlerror` says, which is nothing, and how many devices there are: before OpenMP is used, after that, and after each of
 * the libraries among the arguments was opened, its `count_threads` called, and a call of the loader failed. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef _OPENMP
#include <omp.h>
#else
/* Only the libraries use OpenMP. */
static int omp_get_num_devices(void) { return 0; }
#endif

static void ask(const char *when) {
  const char *error = dlerror();
  printf("%s: %s\n", when, error ? error : "no error");
}

int main(int count, char **arguments) {
  ask("at first");
  printf("%d devices\n", omp_get_num_devices());
  ask("devices");
  int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
  threads++;
  ask("region");
  printf("%d threads, %d devices\n", threads, omp_get_num_devices());
  for (int i = 1; i < count; i++) {
    void *library = dlopen(arguments[i], RTLD_NOW);
    ask("opened");
    if (!library)
      continue;
    long (*count_threads)(int) = (long (*)(int))dlsym(library, "count_threads");
    ask("found");
    printf("%ld\n", count_threads(2));
    ask("called");
    /* Its error stays for whoever asks. */
    dlsym(library, "no_such_function");
#pragma omp parallel num_threads(2) reduction(+ : threads)
    threads++;
    printf("%s\n", dlerror() ? "an error" : "no error");
    ask("asked");
#ifdef _OPENMP
    /* Else a libgomp would go with it, while its threads wait in its code. */
    dlclose(library);
#endif
    ask("closed");
  }
  printf("%d devices\n", omp_get_num_devices());
  ask("at last");
  return 4;
}
