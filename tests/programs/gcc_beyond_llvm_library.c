// A library that a program loads while it runs: it calls what LLVM's runtime lacks.
#include <omp.h>

int work(void) {
    int threads = 0;
    omp_set_num_teams(3);
    #pragma omp parallel num_threads(2) reduction(+: threads)
    threads++;
    return threads;
}
