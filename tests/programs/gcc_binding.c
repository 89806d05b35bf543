// What a program sees of processors, places and threads, and where its threads may run. On libgomp its constructor
// binds the first thread.
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int processors(void) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
}

int main(int argc, char **argv) {
    printf("at first %d; ", processors());
    if (argc > 1 && !strcmp(argv[1], "narrow")) {
        // A program may bind itself.
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(1, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    printf("procs %d, threads %d; ", omp_get_num_procs(), omp_get_max_threads());
    if (omp_get_proc_bind() != omp_proc_bind_false) printf("places %d; ", omp_get_num_places());
    #pragma omp parallel num_threads(2)
    {
        #pragma omp for ordered
        for (int i = 0; i < 2; i++) {
            #pragma omp ordered
            printf("thread %d on %d; ", omp_get_thread_num(), processors());
        }
    }
    puts("");
    if (argc > 1 && !strcmp(argv[1], "child")) {
        fflush(stdout);
        return system(argv[2]) != 0;
    }
    return 0;
}
