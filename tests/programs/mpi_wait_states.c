// Ranks that wait for each other for a known time, once in each wait state. Each state has a function of its own, in which a rank comes
// late by DELAY seconds.
//
//     mpi_wait_states FOLDER DELAY
#include <mpi.h>
#include <omp.h>
#include <stdlib.h>
#include <time.h>

static int rank;
static double delay;

static void late(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

// All ranks begin together.
__attribute__((noinline)) static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

static inline __attribute__((always_inline)) void send(int to, int tag) { MPI_Send(&tag, 1, MPI_INT, to, tag, MPI_COMM_WORLD); }

#define RECV(from, tag)                                                              \
    do {                                                                             \
        int got;                                                                     \
        MPI_Recv(&got, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);    \
    } while (0)

__attribute__((noinline)) static void late_sender(void) {
    if (rank == 1) {
        late(delay);
        send(0, 1);
    } else if (rank == 0) {
        RECV(1, 1);
    }
}

__attribute__((noinline)) static void late_receiver(void) {
    if (rank == 1) {
        late(delay);
        RECV(0, 2);
    } else if (rank == 0) {
        int tag = 2;
        MPI_Ssend(&tag, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    }
}

__attribute__((noinline)) static void wrong_order(void) {
    if (rank == 1) {
        send(0, 3);
        late(delay);
        send(0, 4);
    } else if (rank == 0) {
        RECV(1, 4);
        RECV(1, 3);
    }
}

// The same with messages of two ranks.
__attribute__((noinline)) static void wrong_source(void) {
    if (rank == 1) {
        late(delay);
        send(0, 8);
    } else if (rank == 2) {
        send(0, 8);
    } else {
        RECV(1, 8);
        RECV(2, 8);
    }
}

__attribute__((noinline)) static void wait_at_barrier(void) {
    if (rank == 1)
        late(delay);
    MPI_Barrier(MPI_COMM_WORLD);
}

__attribute__((noinline)) static void wait_at_nxn(void) {
    int sum;
    if (rank == 1)
        late(delay);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void late_broadcast(void) {
    int number = 7;
    if (rank == 1)
        late(delay);
    MPI_Bcast(&number, 1, MPI_INT, 1, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void early_reduce(void) {
    int sum;
    if (rank != 0)
        late(delay);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void early_scan(void) {
    int sum;
    if (rank == 1)
        late(delay);
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void completion(void) {
    if (rank == 0) {
        int got[2];
        MPI_Request requests[2];
        MPI_Irecv(&got[0], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&got[1], 1, MPI_INT, 2, 5, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        late(rank == 1 ? delay : delay / 2);
        send(0, 5);
    }
}

// Rank 1 sends late since a thread of its team is late.
__attribute__((noinline)) static void hybrid(void) {
    if (rank == 1) {
        int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
        {
            threads += 1;
            if (omp_get_thread_num() == 1)
                late(delay);
        }
        send(0, threads);
    } else if (rank == 0) {
        RECV(1, 2);
    }
}

// Rank 1 sends late since it waits for rank 2.
__attribute__((noinline)) static void passed_on(void) {
    if (rank == 2) {
        late(delay);
        send(1, 6);
    } else if (rank == 1) {
        RECV(2, 6);
        send(0, 7);
    } else {
        RECV(1, 7);
    }
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    delay = argc > 2 ? atof(argv[2]) : 0.2;
    void (*states[])(void) = {late_sender,    late_receiver, wrong_order, wait_at_barrier, wait_at_nxn, late_broadcast,
                              early_reduce,   early_scan,    completion,  hybrid,          passed_on,   wrong_source};
    for (unsigned state = 0; state < sizeof states / sizeof states[0]; state++) {
        meet();
        states[state]();
    }
    meet();
    MPI_Finalize();
    return 0;
}
