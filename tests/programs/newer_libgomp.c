// What libgomp has had since GCC 13, beside an older libgomp: a task that does nothing.
#include <stdbool.h>
#include <stddef.h>

void GOMP_task(void (*)(void *), void *, void (*)(void *, void *), long, long, bool, unsigned, void **, int, void *);

static void nothing(void *data) {
    (void)data;
}

void GOMP_taskwait_depend_nowait(void **depend) {
    GOMP_task(nothing, "", NULL, 0, 1, true, 8, depend, 0, NULL);
}
