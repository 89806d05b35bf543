// Faults of MPI programs, each with its repair. The MPI call of each fault is in a function that has the fault's name. Rank 0 prints how
// long the ranks took, in seconds.
//
//     mpi_faults FOLDER FAULT faulty|repaired
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAULT __attribute__((noinline)) static void

enum { ROUNDS = 3 };

static int rank, size, is_repaired;
static const double UNIT = 0.08;

static void work(double units) {
    double seconds = units * UNIT;
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static inline __attribute__((always_inline)) void send(int to, int tag) {
    MPI_Send(&tag, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
}

#define RECV(from, tag)                                                           \
    do {                                                                          \
        int got;                                                                  \
        MPI_Recv(&got, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); \
    } while (0)

// Rank 1 has more work than the others.
FAULT unequal_ranks(void) {
    for (int round = 0; round < ROUNDS; round++) {
        int sum;
        work(is_repaired ? 2 : rank == 1 ? 3 : 1);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

// The same, because of a region of rank 1.
__attribute__((noinline)) static void solve(double units) {
#pragma omp parallel num_threads(2)
    work(units);
}

FAULT unequal_regions(void) {
    for (int round = 0; round < ROUNDS; round++) {
        solve(is_repaired ? 2 : rank == 1 ? 3 : 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Rank 0 sends only after work that does not change the message.
FAULT late_message(void) {
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0) {
            if (is_repaired)
                send(1, 1);
            work(2);
            if (!is_repaired)
                send(1, 1);
            RECV(1, 2);
        } else {
            RECV(0, 1);
            work(2);
            send(0, 2);
        }
    }
}

// Rank 0 receives the second message first, but works on the first one.
FAULT wrong_order(void) {
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 1) {
            send(0, 3);
            work(2);
            send(0, 4);
            RECV(0, 5);
        } else {
            if (!is_repaired)
                RECV(1, 4);
            RECV(1, 3);
            work(2);
            if (is_repaired)
                RECV(1, 4);
            send(1, 5);
        }
    }
}

// Rank 0 sends many numbers, one by one.
FAULT one_by_one(void) {
    enum { NUMBERS = 5000, REPEATS = 80 };
    static double numbers[NUMBERS];
    int at_once = is_repaired ? NUMBERS : 1;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        for (int first = 0; first < NUMBERS; first += at_once) {
            if (rank == 0)
                MPI_Send(numbers + first, at_once, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD);
            else
                MPI_Recv(numbers + first, at_once, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (rank == 0)
            RECV(1, 7);
        else
            send(0, 7);
    }
}

// Each rank sends to the next one after it has received from the one before.
FAULT one_after_another(void) {
    for (int round = 0; round < ROUNDS; round++) {
        if (is_repaired && rank + 1 < size)
            send(rank + 1, 8);
        if (rank > 0)
            RECV(rank - 1, 8);
        work(1);
        if (!is_repaired && rank + 1 < size)
            send(rank + 1, 8);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Each rank receives only when the next one has received from it.
FAULT one_before_another(void) {
    for (int round = 0; round < ROUNDS; round++) {
        int tag = 9, got;
        MPI_Request request = MPI_REQUEST_NULL;
        if (is_repaired && rank > 0)
            MPI_Irecv(&got, 1, MPI_INT, rank - 1, tag, MPI_COMM_WORLD, &request);
        if (rank + 1 < size && is_repaired)
            send(rank + 1, tag);
        else if (rank + 1 < size)
            MPI_Ssend(&tag, 1, MPI_INT, rank + 1, tag, MPI_COMM_WORLD);
        work(1);
        if (!is_repaired && rank > 0)
            RECV(rank - 1, tag);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void start(int *values, MPI_Request *requests) {
    MPI_Irecv(values, 1, MPI_INT, !rank, 10, MPI_COMM_WORLD, requests);
    MPI_Isend(values + 1, 1, MPI_INT, !rank, 10, MPI_COMM_WORLD, requests + 1);
}

// Two ranks that are slow in turn exchange data, and wait for it before they go on.
FAULT wait_at_once(void) {
    for (int round = 0; round < 2 * ROUNDS; round++) {
        int values[2] = {0, rank};
        MPI_Request requests[2];
        start(values, requests);
        if (!is_repaired)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        work(round % 2 == rank ? 3 : 1);
        if (is_repaired)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

// Rank 0 waits for a message of rank 1, and then does work that does not need it.
FAULT wait_before_work(void) {
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 1) {
            work(2);
            send(0, 11);
            RECV(0, 12);
        } else {
            int got;
            MPI_Request request;
            MPI_Irecv(&got, 1, MPI_INT, 1, 11, MPI_COMM_WORLD, &request);
            if (is_repaired)
                work(2);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (!is_repaired)
                work(2);
            send(1, 12);
        }
    }
}

// Rank 0 probes for a message until it is there, and then does work that does not need it.
FAULT probes_only(void) {
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 1) {
            work(2);
            send(0, 15);
            RECV(0, 16);
        } else {
            if (is_repaired)
                work(2);
            for (int is_there = 0; !is_there;)
                MPI_Iprobe(1, 15, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
            RECV(1, 15);
            if (!is_repaired)
                work(2);
            send(1, 16);
        }
    }
}

// Two threads of rank 0 ask two threads of rank 1, which answer after a while.
static void ask(int tag) {
    send(1, tag);
    RECV(1, tag);
}

FAULT in_critical(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(static, 1)
        for (int thread = 0; thread < 2; thread++) {
            int tag = 17 + thread;
            for (int round = 0; round < ROUNDS; round++) {
                if (rank == 1) {
                    RECV(0, tag);
                    work(1);
                    send(0, tag);
                } else if (is_repaired) {
                    ask(tag);
                } else {
#pragma omp critical
                    ask(tag);
                }
            }
        }
    }
}

// The network takes a while. The message is not needed for most of the work behind it.
static void *network(void *unused) {
    work(2);
    send(!rank, 20);
    return unused;
}

FAULT idle_threads(void) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        pthread_create(&thread, NULL, network, NULL);
        if (!is_repaired)
            RECV(!rank, 20);
#pragma omp parallel num_threads(2)
        {
            if (is_repaired) {
#pragma omp master
                RECV(!rank, 20);
            }
#pragma omp for schedule(dynamic)
            for (int part = 0; part < 8; part++)
                work(0.5);
        }
        pthread_join(thread, NULL);
    }
}

// All ranks run on the first CPU that they may use, whatever the launcher has bound them to.
static void use_one_cpu(void) {
    int cpu = 0, result;
    do {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        result = sched_setaffinity(0, sizeof one, &one);
    } while (result && ++cpu < CPU_SETSIZE);
}

static double cpu_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

// The work takes this much time on a CPU.
FAULT oversubscribed_host(void) {
    double end = cpu_time() + 3 * ROUNDS * UNIT;
    while (cpu_time() < end)
        ;
}

static const struct {
    const char *name;
    void (*run)(void);
} FAULTS[] = {
    {"unequal_ranks", unequal_ranks},
    {"unequal_regions", unequal_regions},
    {"late_message", late_message},
    {"wrong_order", wrong_order},
    {"one_by_one", one_by_one},
    {"one_after_another", one_after_another},
    {"one_before_another", one_before_another},
    {"wait_at_once", wait_at_once},
    {"wait_before_work", wait_before_work},
    {"probes_only", probes_only},
    {"in_critical", in_critical},
    {"idle_threads", idle_threads},
    {"oversubscribed_host", oversubscribed_host},
};

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    is_repaired = !strcmp(argv[3], "repaired");
    // Ranks that share a CPU also need longer until MPI is initialised.
    int shares_cpu = !strcmp(argv[2], "oversubscribed_host");
    double begin = now();
    if (shares_cpu && !is_repaired)
        use_one_cpu();
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (unsigned fault = 0; fault < sizeof FAULTS / sizeof FAULTS[0]; fault++) {
        if (strcmp(argv[2], FAULTS[fault].name))
            continue;
        MPI_Barrier(MPI_COMM_WORLD);
        if (!shares_cpu)
            begin = now();
        FAULTS[fault].run();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            printf("%.6f\n", now() - begin);
    }
    MPI_Finalize();
    return 0;
}
