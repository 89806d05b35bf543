/* Leaves functions of its own by exceptions, longjmp and pthread_exit, within what OpenMP allows, and beyond.
 *
 *     gcc_unwinding HOW [THREADS 2] [ROUNDS 20]
 *
 * HOW:
 *
 *     catch         exceptions thrown and caught in a region, a task, an undeferred task, a task of a taskloop, a chunk
 *                   of a loop, a critical region, a nested region
 *     longjmp       the same places, by longjmp to where the construct's body began
 *     pthread_exit  threads of the program lead regions and tasks, then leave by pthread_exit out of a nested call
 *     leave_region, leave_task, leave_undeferred
 *                   after the rounds of `catch`, an exception leaves the body: the program is terminated
 *
 * Each but pthread_exit: parallel_begin ROUNDS + ROUNDS * THREADS, task_create ROUNDS * (2 * THREADS + 8), and 1 each for
 * leave_region and the two others; mutex_released 2 * ROUNDS * THREADS.
 * pthread_exit: parallel_begin ROUNDS * THREADS, thread_begin of THREADS + 1 initial threads.
 * Prints `left N, unwound N`. */
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <pthread.h>

static std::atomic<long> left, unwound;

/* Its destructor runs where an exception, or a thread's end, passes. */
struct Passed {
  ~Passed() { unwound++; }
};

static bool jumps;
static thread_local jmp_buf *back;

__attribute__((noinline)) static void leave(int depth) {
  if (depth > 0) {
    leave(depth - 1);
    left += 0; /* no tail call */
    return;
  }
  if (jumps)
    longjmp(*back, 1);
  throw 42;
}

/* Calls a function that does not return here. Nothing has a destructor where longjmp passes. */
__attribute__((noinline)) static void leave_and_come_back() {
  if (jumps) {
    jmp_buf here, *outer = back;
    back = &here;
    if (setjmp(here) == 0)
      leave(3);
    back = outer;
    left++;
    return;
  }
  try {
    Passed passed;
    leave(3);
  } catch (int) {
    left++;
  }
}

static void rounds(int threads, int n) {
  static omp_lock_t lock;
  omp_init_lock(&lock);
  for (int i = 0; i < n; i++) {
#pragma omp parallel num_threads(threads)
    {
      leave_and_come_back();
#pragma omp task
      leave_and_come_back();
#pragma omp task if (0)
      leave_and_come_back();
#pragma omp critical
      leave_and_come_back();
      omp_set_lock(&lock);
      leave_and_come_back();
      omp_unset_lock(&lock);
#pragma omp for schedule(dynamic, 1)
      for (int k = 0; k < 8; k++)
        leave_and_come_back();
#pragma omp single
#pragma omp taskloop num_tasks(8)
      for (int k = 0; k < 8; k++)
        leave_and_come_back();
#pragma omp parallel num_threads(2)
      leave_and_come_back();
      leave_and_come_back();
    }
  }
}

static int regions_of_thread;

__attribute__((noinline)) static void exit_thread(int depth) {
  Passed passed;
  if (depth > 0)
    exit_thread(depth - 1);
  else
    pthread_exit(NULL);
}

static void *lead(void *) {
  for (int i = 0; i < regions_of_thread; i++) {
#pragma omp parallel num_threads(2)
    {
#pragma omp task
      left++;
    }
  }
  exit_thread(3);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  const char *how = argv[1];
  int threads = argc > 2 ? atoi(argv[2]) : 2;
  int n = argc > 3 ? atoi(argv[3]) : 20;
  omp_set_max_active_levels(2);
  omp_set_dynamic(0);
  jumps = strcmp(how, "longjmp") == 0;
  if (strcmp(how, "pthread_exit") == 0) {
    /* libgomp knows main, too. */
    omp_lock_t lock;
    omp_init_lock(&lock);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    regions_of_thread = n;
    pthread_t ids[16];
    if (threads > 16)
      return 2;
    for (int i = 0; i < threads; i++)
      pthread_create(&ids[i], NULL, lead, NULL);
    for (int i = 0; i < threads; i++)
      pthread_join(ids[i], NULL);
  } else {
    rounds(threads, n);
  }
  printf("left %ld, unwound %ld\n", left.load(), unwound.load());
  fflush(stdout);
  if (strcmp(how, "leave_region") == 0) {
#pragma omp parallel num_threads(threads)
    {
      if (omp_get_thread_num() == threads - 1)
        leave(3);
    }
  }
  if (strncmp(how, "leave_", 6) == 0) {
    bool is_deferred = strcmp(how, "leave_task") == 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma omp task if (is_deferred)
      leave(3);
#pragma omp taskwait
    }
  }
  return 0;
}
