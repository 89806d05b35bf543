/* Waits for what is not OpenMP's, and says how long each kind took by its own clock: in a region on two threads, and in serial
   code. The first argument is the milliseconds of each wait. "none" waits for nothing, "sleep" only sleeps, on both threads; "cancel"
   also cancels threads that wait, "fork" also waits in a child. */
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER, lost = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int is_ready;
static long ms;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void rest(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

/* Works without waiting. */
static void work(double seconds)
{
    for (double end = now() + seconds; now() < end;)
        ;
}

static void *sleeper(void *argument)
{
    rest(ms);
    return argument;
}

static void *waits_for_ever(void *argument)
{
    pthread_mutex_lock(&lost);
    for (;;)
        pthread_cond_wait(&condition, &lost);
    return argument;
}

static void unlocks(void *lock)
{
    pthread_mutex_unlock(lock);
}

static void *waits_in_region(void *argument)
{
#pragma omp parallel num_threads(1)
    work(0.001);
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlocks, &mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    return argument;
}

static void says(const char *what, double since)
{
    printf("%s %.6f\n", what, now() - since);
}

int main(int argc, char **argv)
{
    ms = argc > 1 ? atol(argv[1]) : 50;
    const char *also = argc > 2 ? argv[2] : "";
    int fds[2];
    char letter = 'x';
    if (pipe(fds) != 0 || sem_init(&semaphore, 0, 0) != 0)
        return 1;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(2)
    work(0.001);

    if (strcmp(also, "none") == 0) {
#pragma omp parallel num_threads(2)
        for (int i = 0; i < 1000; i++) {
            pthread_mutex_t *own = omp_get_thread_num() == 0 ? &mutex : &other;
            pthread_mutex_lock(own);
            pthread_mutex_unlock(own);
        }
        puts("done");
        return 0;
    }
    if (strcmp(also, "sleep") == 0) {
#pragma omp parallel num_threads(2)
        rest(ms);
        puts("done");
        return 0;
    }
    if (strcmp(also, "cancel") == 0) {
        void *(*bodies[])(void *) = {waits_for_ever, waits_in_region};
        for (int i = 1; i >= 0; i--) {
            pthread_t thread;
            void *result;
            pthread_create(&thread, NULL, bodies[i], NULL);
            rest(ms);
            pthread_cancel(thread);
            pthread_join(thread, &result);
            puts(result == PTHREAD_CANCELED ? "cancelled" : "ended");
        }
    }
    if (strcmp(also, "fork") == 0) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            double since = now();
            rest(ms);
            says("child", since);
            fflush(stdout);
            _exit(3);
        }
        int status;
        waitpid(child, &status, 0);
        printf("status %d\n", WEXITSTATUS(status));
    }

    /* One thread has the mutex, and works; the other waits for it. */
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            pthread_mutex_lock(&other);
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            work(ms * 1e-3);
            pthread_mutex_unlock(&other);
        } else {
            double since = now();
            pthread_mutex_lock(&other);
            says("mutex", since);
            pthread_mutex_unlock(&other);
        }
    }

    /* Each of the others lets the second thread go on after it has worked. */
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            work(ms * 1e-3);
            pthread_mutex_lock(&mutex);
            is_ready = 1;
            pthread_cond_signal(&condition);
            pthread_mutex_unlock(&mutex);
            work(ms * 1e-3);
            sem_post(&semaphore);
            work(ms * 1e-3);
            if (write(fds[1], &letter, 1) != 1)
                abort();
        } else {
            double since = now();
            pthread_mutex_lock(&mutex);
            while (!is_ready)
                pthread_cond_wait(&condition, &mutex);
            pthread_mutex_unlock(&mutex);
            says("condition", since);
            since = now();
            sem_wait(&semaphore);
            says("semaphore", since);
            since = now();
            if (read(fds[0], &letter, 1) != 1)
                abort();
            says("read", since);
            since = now();
            rest(ms);
            says("sleep", since);
        }
    }

    pthread_t thread;
    double since = now();
    pthread_create(&thread, NULL, sleeper, NULL);
    pthread_join(thread, NULL);
    says("join", since);
    return 0;
}
