/* Makes calls of the tracer fail; a library for LD_PRELOAD. OMPTRACE_TEST_FAIL says which:
 *
 *     CALL:ERRNO:N    the Nth call and all after it, of pwritev, posix_fallocate or pthread_create
 *     btrfs           files seem to be on a file system that copies on write
 *     secure          the process looks like one of a setuid program */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/statfs.h>
#include <sys/uio.h>

/* The error of this call, 0 where it shall go on. */
static int fails(const char *name, atomic_int *calls) {
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  char call[32];
  int error, n;
  if (!what || sscanf(what, "%31[^:]:%d:%d", call, &error, &n) != 3 || strcmp(call, name) != 0)
    return 0;
  return ++*calls >= n ? error : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
  static atomic_int calls;
  int error = fails("pwritev", &calls);
  if (error) {
    errno = error;
    return -1;
  }
  return REAL(pwritev)(file, parts, count, offset);
}

int posix_fallocate(int file, off_t offset, off_t len) {
  static atomic_int calls;
  int error = fails("posix_fallocate", &calls);
  return error ? error : REAL(posix_fallocate)(file, offset, len);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
  static atomic_int calls;
  int error = fails("pthread_create", &calls);
  return error ? error : REAL(pthread_create)(thread, attributes, run, argument);
}

int fstatfs(int file, struct statfs *found) {
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  int result = REAL(fstatfs)(file, found);
  if (what && strcmp(what, "btrfs") == 0)
    found->f_type = 0x9123683e;
  return result;
}

unsigned long getauxval(unsigned long type) {
  const char *what = getenv("OMPTRACE_TEST_FAIL");
  if (type == AT_SECURE && what && strcmp(what, "secure") == 0)
    return 1;
  return REAL(getauxval)(type);
}
