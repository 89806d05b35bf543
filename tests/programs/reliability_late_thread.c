/* The thread that is created as the Nth, N being OMPTRACE_TEST_LATE, gets no processor for half a second; a library for
 * LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct thread {
  void *(*run)(void *);
  void *argument;
};

static void *run_late(void *argument) {
  struct thread thread = *(struct thread *)argument;
  free(argument);
  usleep(500000);
  return thread.run(thread.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
  static atomic_int created;
  __typeof__(&pthread_create) real = (__typeof__(&pthread_create))dlsym(RTLD_NEXT, "pthread_create");
  if (++created != atoi(getenv("OMPTRACE_TEST_LATE")))
    return real(thread, attributes, run, argument);
  struct thread *late = malloc(sizeof *late);
  *late = (struct thread){run, argument};
  return real(thread, attributes, run_late, late);
}
