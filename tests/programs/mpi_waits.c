// Rank 0 waits for a message of each other rank, which work for some time first; then a team works, and all ranks meet. Each rank
// writes a line to a file of its own: how many calls it made, and the seconds that it was in those that communicate and in others.
//
//     mpi_waits FOLDER [abort]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds[2];
static int calls;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

#define CALL(kind, call)                  \
    do {                                  \
        double begin = now();             \
        call;                             \
        seconds[kind] += now() - begin;   \
        calls++;                          \
    } while (0)
enum { COMMUNICATES, OTHER };

static void work(double duration) {
    double end = now() + duration;
    while (now() < end) {
    }
}

int main(int argc, char **argv) {
    int rank, size, sum;
    CALL(OTHER, MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm copy;
    CALL(OTHER, MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    if (rank == 0) {
        for (int from = 1; from < size; from++) {
            int message[10];
            CALL(COMMUNICATES, MPI_Recv(message, 10, MPI_INT, MPI_ANY_SOURCE, 7, copy, MPI_STATUS_IGNORE));
        }
    } else {
        int message[10] = {rank};
        MPI_Request request;
        work(0.1);
        CALL(COMMUNICATES, MPI_Isend(message, 10, MPI_INT, 0, 7, copy, &request));
        CALL(COMMUNICATES, MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
#ifdef _OPENMP
#pragma omp parallel num_threads(2)
#endif
    work(0.02);
    CALL(COMMUNICATES, MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy));
    CALL(OTHER, MPI_Comm_free(&copy));

    char name[4096];
    snprintf(name, sizeof name, "%s/rank%d", argv[1], rank);
    FILE *file = fopen(name, "w");
    if (!file)
        return 1;
    fprintf(file, "%d %.9f %.9f\n", calls, seconds[COMMUNICATES], seconds[OTHER]);
    fclose(file);
    if (rank == 0)
        printf("sum %d\n", sum);
    fflush(stdout);
    if (argc > 2 && strcmp(argv[2], "abort") == 0) {
        // All files are written.
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
