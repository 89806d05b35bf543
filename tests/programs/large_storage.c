/* A library with much thread-local storage that must be there from the start, as jemalloc's. */
static __thread char storage[2600] __attribute__((tls_model("initial-exec")));

char *large_storage(void) { return storage; }
