/* Everything that arrows lead from and to: tasks, dependences, locks of each kind. Threads sleep in what they hold, so
   that others wait for it however many processors there are.

   usage: arrows THREADS ROUNDS */
#include <omp.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOLD_US = 300, PAUSE_US = 30 };

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 3;
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    int cells[4] = {0};
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(threads)
    {
        for (int round = 0; round < rounds; round++) {
#pragma omp critical
            usleep(HOLD_US);
            usleep(PAUSE_US);
            omp_set_lock(&lock);
            usleep(HOLD_US);
            omp_unset_lock(&lock);
            usleep(PAUSE_US);
            omp_set_nest_lock(&nest);
            omp_set_nest_lock(&nest);
            usleep(HOLD_US);
            omp_unset_nest_lock(&nest);
            omp_unset_nest_lock(&nest);
            while (!omp_test_lock(&lock)) usleep(PAUSE_US);
            usleep(PAUSE_US);
            omp_unset_lock(&lock);
        }
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < rounds * threads; i++) {
#pragma omp ordered
            usleep(HOLD_US);
        }
#pragma omp single
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < 4; i++) {
#pragma omp critical(other)
                cells[i]++;
#pragma omp task depend(inout : cells[i])
                usleep(PAUSE_US);
            }
            for (int i = 1; i < 4; i++) {
#pragma omp task depend(in : cells[i - 1]) depend(inout : cells[i])
                {
                    usleep(PAUSE_US);
#pragma omp critical
                    usleep(PAUSE_US);
                }
            }
#pragma omp taskwait depend(in : cells[3])
        }
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    return 0;
}
