/* A library with much thread-local storage that must be there from the start, as jemalloc's. */
#ifndef BYTES
#define BYTES 2600
#endif
static __thread char storage[BYTES] __attribute__((tls_model("initial-exec")));

char *large_storage(void) { return storage; }
