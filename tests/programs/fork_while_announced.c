/* Forks while another thread is in the tool's callback for a new device; the child uses the device. The tool is the program's own.
 * Where nobody asks for it, it forks behind the other thread's construct.
 *
 * Prints `child 4950`. */
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t may_fork, has_forked;
static pid_t parent;

/* The interface, as far as it is needed: GCC has no `omp-tools.h`. */
typedef void (*function_t)(void);
enum { DEVICE_INITIALIZE = 12 };

static void announced(int device, const char *type, void *handle, void *lookup, const char *documentation) {
  (void)device, (void)type, (void)handle, (void)lookup, (void)documentation;
  if (getpid() != parent)
    return;
  sem_post(&may_fork);
  sem_wait(&has_forked);
}

static int initialize(function_t (*lookup)(const char *), int device, void *data) {
  (void)device, (void)data;
  ((int (*)(int, function_t))lookup("ompt_set_callback"))(DEVICE_INITIALIZE, (function_t)announced);
  return 1;
}

static void finalize(void *data) { (void)data; }

void *ompt_start_tool(unsigned version, const char *runtime) {
  static struct {
    int (*initialize)(function_t (*)(const char *), int, void *);
    void (*finalize)(void *);
    unsigned long data;
  } result = {initialize, finalize, 0};
  (void)version, (void)runtime;
  return &result;
}

/* Takes numbers to the device and back. */
static int sum(void) {
  int numbers[100], sum = 0;
  for (int i = 0; i < 100; i++)
    numbers[i] = i;
#pragma omp target enter data map(to : numbers)
  memset(numbers, 0, sizeof numbers);
#pragma omp target exit data map(from : numbers)
  for (int i = 0; i < 100; i++)
    sum += numbers[i];
  return sum;
}

static void *first(void *unused) {
  sum();
  sem_post(&may_fork);
  return unused;
}

int main(void) {
  pthread_t thread;
  int result[2], status = 0, from_child = 0;
  parent = getpid();
  sem_init(&may_fork, 0, 0);
  sem_init(&has_forked, 0, 0);
  if (omp_get_num_devices() < 1 || pipe(result) || pthread_create(&thread, NULL, first, NULL))
    return 2;
  sem_wait(&may_fork);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int found = sum();
    _exit(write(result[1], &found, sizeof found) != sizeof found);
  }
  sem_post(&has_forked);
  if (child < 0 || waitpid(child, &status, 0) != child)
    return 2;
  pthread_join(thread, NULL);
  if (WIFSIGNALED(status))
    printf("child killed by %d\n", WTERMSIG(status));
  else if (status == 0 && read(result[0], &from_child, sizeof from_child) == sizeof from_child)
    printf("child %d\n", from_child);
  return 0;
}
