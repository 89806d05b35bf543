// Code of GCC's, without a libgomp of its own.
#include <stdio.h>

void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);

static void body(void *count) {
    ++*(int *)count;
}

int main(void) {
    int count = 0;
    GOMP_parallel(body, &count, 2, 0);
    printf("%d\n", count);
    return 0;
}
