// Finds libgomp's functions by their names, as code generators do.
#include <dlfcn.h>
#include <stdio.h>

static void body(void *count) {
    __atomic_fetch_add((int *)count, 1, __ATOMIC_RELAXED);
}

int main(void) {
    void *libgomp = dlopen("libgomp.so.1", RTLD_NOW);
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned) =
        (void (*)(void (*)(void *), void *, unsigned, unsigned))dlsym(libgomp, "GOMP_parallel");
    if (!parallel) return 1;
    int count = 0;
    parallel(body, &count, 2, 0);
    printf("%d\n", count);
    return 0;
}
