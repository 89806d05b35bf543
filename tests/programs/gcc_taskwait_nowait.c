// A taskwait with depend and nowait, as GCC from 13 on calls it.
#include <stdio.h>
#include <unistd.h>

void GOMP_taskwait_depend_nowait(void **);

int main(void) {
    static int x, y;
    #pragma omp parallel num_threads(2)
    #pragma omp single
    for (int i = 0; i < 5; i++) {
        #pragma omp task depend(out: x)
        {
            usleep(1000);
            x++;
        }
        // `taskwait depend(inout: x, y) nowait`
        void *depend[] = {(void *)2, (void *)2, &x, &y};
        GOMP_taskwait_depend_nowait(depend);
        #pragma omp task depend(in: y)
        y += x;
        #pragma omp taskwait
    }
    printf("x %d, y %d\n", x, y);
    return 0;
}
