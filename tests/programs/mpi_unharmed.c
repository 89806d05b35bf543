/* Calls MPI in ways that a tool may disturb.
 *
 *     mpi_unharmed FOLDER HOW
 *
 * Before it ends, each rank writes the number of calls that a trace should have of it to FOLDER/rankN. For HOW see `main`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 200
#define WORLD MPI_COMM_WORLD

#ifdef SANITIZED
/* What libraries never free is no fault, and what they do is not seen. */
const char *__asan_default_options(void) { return "detect_leaks=0"; }
const char *__tsan_default_options(void) { return "ignore_noninstrumented_modules=1"; }
#endif

static const char *folder = "";
static int rank, size;
static _Atomic int calls;

/* A call that is recorded. */
#define CALL(call) (calls++, (call))

static void note(const char *what) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s%d", folder, what, rank);
  FILE *file = fopen(path, "w");
  fprintf(file, "%d\n", calls);
  fclose(file);
}

static void ask_place(void) {
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &size);
}

/* Messages of this rank to itself. */
static int to_self(int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; i++) {
    int out = i, in = 0;
    MPI_Request request;
    CALL(MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
    CALL(MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    sum += in;
  }
  return sum;
}

static int communicate(MPI_Comm communicator, int rounds) {
  int sum = 0, all = 0;
  for (int i = 0; i < rounds; i++) {
    int out = i, in = 0;
    CALL(MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 2, &in, 1, MPI_INT, (rank + size - 1) % size, 2, communicator,
                      MPI_STATUS_IGNORE));
    sum += in;
    if (i % 8 == 0) CALL(MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, communicator));
  }
  return all;
}

static void print(const char *what, long number) {
  printf("%s %ld\n", what, number);
  fflush(stdout);
}

/* Until all ranks have noted their calls: a launcher may end them when one of them has ended. */
static void wait_for_notes(void) {
  for (int other = 0; other < size; other++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/rank%d", folder, other);
    while (access(path, R_OK)) usleep(1000);
  }
}

/* --- MPI before main, and behind it. */

static const char *how_in_constructor(int count, char **arguments) {
  return count > 2 && !strncmp(arguments[2], "constructor", 11) ? arguments[2] : NULL;
}

__attribute__((constructor)) static void before_main(int count, char **arguments) {
  if (!how_in_constructor(count, arguments)) return;
  folder = arguments[1];
  CALL(MPI_Init(NULL, NULL));
  ask_place();
  print("before main", communicate(WORLD, ROUNDS));
}

__attribute__((destructor)) static void behind_main(void) {
  int initialized = 0, finalized = 1;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized) return;
  print("behind main", communicate(WORLD, ROUNDS));
  CALL(MPI_Finalize());
  note("rank");
}

/* --- Threads. */

static void *on_thread(void *communicator) {
  return (void *)(long)(communicator ? communicate(*(MPI_Comm *)communicator, ROUNDS) : to_self(ROUNDS));
}

static void small_stack(int more) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + more);
  pthread_t thread;
  void *sum = NULL;
  if (pthread_create(&thread, &attributes, on_thread, NULL) == 0) pthread_join(thread, &sum);
  print("on a small stack", (long)sum);
}

static void threads(void) {
  enum { THREADS = 4 };
  pthread_t all[THREADS];
  MPI_Comm copies[THREADS];
  for (int i = 0; i < THREADS; i++) CALL(MPI_Comm_dup(WORLD, &copies[i]));
  for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, on_thread, &copies[i]);
  long sum = 0;
  for (int i = 0; i < THREADS; i++) {
    void *one;
    pthread_join(all[i], &one);
    sum += (long)one;
  }
  for (int i = 0; i < THREADS; i++) CALL(MPI_Comm_free(&copies[i]));
  print("on threads", sum);
}

/* --- Processes. */

/* A child of fork has no business with MPI, but it may look for its rank, make types, and call what its parent's handlers call. */
static void forks(const char *how) {
  int before = calls;
  pid_t child = fork();
  if (child == 0) {
    int own = -1;
    MPI_Comm_rank(WORLD, &own);
    MPI_Datatype pairs;
    MPI_Type_contiguous(2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Type_free(&pairs);
    calls = 0;
    if (strstr(how, "calls")) {
      MPI_Request request;
      CALL(MPI_Isend(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, WORLD, &request));
      CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    note("child");
    if (strstr(how, "exec")) execl("/bin/true", "true", (char *)NULL);
    _exit(own == rank ? 7 : 8);
  }
  calls = before;
  int status = 0;
  print("the parent goes on", communicate(WORLD, ROUNDS));
  waitpid(child, &status, 0);
  print("child", WEXITSTATUS(status));
}

static void spawn(char **arguments) {
  MPI_Comm parent, other;
  CALL(MPI_Comm_get_parent(&parent));
  int number = 5, sum = 0;
  if (parent == MPI_COMM_NULL) {
    char *words[] = {arguments[1], arguments[2], NULL};
    CALL(MPI_Comm_spawn(arguments[0], words, 2, MPI_INFO_NULL, 0, WORLD, &other, MPI_ERRCODES_IGNORE));
    if (rank < 2) CALL(MPI_Send(&number, 1, MPI_INT, rank, 9, other));
  } else {
    other = parent;
    CALL(MPI_Recv(&number, 1, MPI_INT, rank, 9, other, MPI_STATUS_IGNORE));
  }
  CALL(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, other));
  if (rank == 0) print(parent == MPI_COMM_NULL ? "parents" : "children", sum);
  CALL(MPI_Comm_disconnect(&other));
  CALL(MPI_Finalize());
  note(parent == MPI_COMM_NULL ? "rank" : "spawned");
}

/* --- Errors. */

static jmp_buf back;

static void leave(MPI_Comm *communicator, int *code, ...) {
  (void)communicator, (void)code;
  longjmp(back, 1);
}

static void errors(void) {
  volatile int failed = 0, left = 0;
  int number = 0;
  MPI_Errhandler handler;
  MPI_Comm copy;
  CALL(MPI_Comm_dup(WORLD, &copy));
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  for (int i = 0; i < 10; i++) failed += CALL(MPI_Send(&number, 1, MPI_INT, size + 5, 0, copy)) != MPI_SUCCESS;
  MPI_Comm_create_errhandler(leave, &handler);
  MPI_Comm_set_errhandler(copy, handler);
  for (volatile int i = 0; i < 10; i++) {
    if (setjmp(back) == 0)
      CALL(MPI_Send(&number, 1, MPI_INT, size + 5, 0, copy));
    else
      left++;
  }
  print("failed", failed);
  print("left", left);
  MPI_Errhandler_free(&handler);
  print("after errors", communicate(copy, ROUNDS));
  CALL(MPI_Comm_free(&copy));
}

static void crash(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)in, (void)length, (void)type;
  wait_for_notes();
  if (rank == 0) *(volatile int *)8 = 1;
  *(int *)inout += 1;
}

static void collective_crash(void) {
  MPI_Op operation;
  int sum;
  MPI_Op_create(crash, 1, &operation);
  calls++;
  note("rank");
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, operation, WORLD);
  for (;;) pause();
}

#ifdef PLUGIN
#define main plugin_main
#endif

int main(int count, char **arguments) {
  if (count < 3) return 2;
  const char *how = arguments[2];
  if (!how_in_constructor(count, arguments)) {
    int provided;
    folder = arguments[1];
    /* MPICH holds a lock when it calls an error handler, where threads may be in it. */
    int level = !strcmp(how, "errors") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
    CALL(MPI_Init_thread(&count, &arguments, level, &provided));
    ask_place();
  }
  if (!strcmp(how, "spawn")) {
    spawn(arguments);
    return 0;
  }
  print("communicates", communicate(WORLD, ROUNDS));
  if (!strncmp(how, "stack", 5)) small_stack(atoi(how + 5));
  if (!strcmp(how, "threads")) threads();
  if (!strncmp(how, "fork", 4)) forks(how);
  if (!strcmp(how, "errors")) errors();
  if (!strcmp(how, "crash")) collective_crash();
  if (!strcmp(how, "kill")) {
    note("rank");
    wait_for_notes();
    if (rank == 1) kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  if (!strcmp(how, "_exit")) {
    note("rank");
    wait_for_notes();
    _exit(0);
  }
  if (!strcmp(how, "no_finalize")) {
    note("rank");
    wait_for_notes();
    /* The destructor must not finalize. */
    quick_exit(0);
  }
#ifdef PLUGIN
  /* Libraries that were opened later are closed later. */
  behind_main();
#endif
  /* The destructor finalizes. */
  return 0;
}
