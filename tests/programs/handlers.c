/* An OpenMP runtime that interrupts the tool: it sets the processor's trap flag, so that the kernel sends SIGTRAP after each
 * instruction of a callback, and the handler of the signal acts after instruction N. Once for each N, until the callback
 * has fewer instructions.
 *
 *     handlers LIBRARY CALLBACK ACTION [STRIDE]
 *
 * prints a line per N: `step N main ID handler COUNT`. ID names the event that was interrupted; the handler's events have
 * wait ids N << 16 and up. Then `instructions LENGTH`, of a callback that nothing interrupts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

typedef void (*function_t)(void);
typedef union { uint64_t value; void *ptr; } data_t;
typedef struct {
  int (*initialize)(function_t (*lookup)(const char *), int device, data_t *tool);
  void (*finalize)(data_t *tool);
  data_t tool;
} start_result_t;

enum { THREAD_BEGIN = 1, THREAD_END = 2, TASK_CREATE = 5, CONTROL = 11, ACQUIRED = 27, DISPATCH = 32, ERROR = 37, ALL = 40 };
static function_t callbacks[ALL];
static start_result_t *(*start_tool)(unsigned, const char *);
static start_result_t *tool;
static const char *kind, *action;

static int set_callback(int number, function_t function) {
  if (number > 0 && number < ALL)
    callbacks[number] = function;
  return 5;
}

static function_t lookup(const char *name) {
  return strcmp(name, "ompt_set_callback") ? NULL : (function_t)set_callback;
}

/* Events. */

static void thread_begin(void) {
  static data_t thread;
  ((void (*)(int, data_t *))callbacks[THREAD_BEGIN])(1, &thread);
}

static void thread_end(void) {
  static data_t thread;
  ((void (*)(data_t *))callbacks[THREAD_END])(&thread);
}

static void acquired_at(uint64_t id, void *code) {
  ((void (*)(int, uint64_t, void *))callbacks[ACQUIRED])(1, id, code);
}

static void acquired(uint64_t id) { acquired_at(id, (void *)(uintptr_t)lookup); }

static void control(uint64_t command) {
  ((int (*)(uint64_t, uint64_t, void *, void *))callbacks[CONTROL])(command, 0, NULL, NULL);
}

/* A large event: sixty-odd fill a chunk. Its text is named before. */
typedef char text_t[4000];

static void name_text(text_t text, uint64_t id) {
  memset(text, '.', sizeof(text_t) - 1);
  text[snprintf(text, 32, "%#lx", (unsigned long)id)] = '.';
}

static void large_of(const char *text) {
  ((void (*)(int, const char *, size_t, void *))callbacks[ERROR])(1, text, sizeof(text_t) - 1, (void *)(uintptr_t)lookup);
}

static void large(uint64_t id) {
  static text_t text;
  name_text(text, id);
  large_of(text);
}

static void begin_session(void) {
  tool = start_tool(202111, "a runtime that interrupts");
  if (!tool || !tool->initialize(lookup, 0, &tool->tool))
    abort();
}

static void begin(void) {
  begin_session();
  thread_begin();
}

static void end(void) {
  tool->finalize(&tool->tool);
}

static text_t interrupted_text;

/* The callback that is interrupted; returns what names its event. */
static uint64_t interrupted(uint64_t id) {
  if (!strcmp(kind, "create")) {
    static data_t task;
    data_t new = {0};
    ((void (*)(data_t *, void *, data_t *, int, int, void *))callbacks[TASK_CREATE])(
        &task, NULL, &new, 4, 0, (void *)(uintptr_t)lookup);
    return new.value;
  }
  if (!strcmp(kind, "dispatch")) {
    static data_t task;
    ((void (*)(data_t *, data_t *, int, data_t))callbacks[DISPATCH])(&task, &task, 1, (data_t){id});
    return id;
  }
  if (!strcmp(kind, "large"))
    large_of(interrupted_text);
  else
    acquired(id);
  return id;
}

/* The same, without interruption. */
static void as_usual(uint64_t id) {
  name_text(interrupted_text, id);
  interrupted(id);
}

/* Handlers. */

static volatile long step, target, step_count, handled;
static int go_on[2], child;
static sem_t parked, free_again;

static uint64_t next(void) { return (uint64_t)step << 16 | handled++; }

/* Another thread forks, while the thread that does so in the handler is past the tracer's preparation. */
static void *fork_too(void *unused) {
  pid_t other = fork();
  if (other == 0)
    _exit(0);
  if (waitpid(other, NULL, 0) != other)
    abort();
  return unused;
}

static void before_fork(void) {
  static volatile int forks;
  pthread_t thread;
  if (strcmp(action, "forks") || forks)
    return;
  forks = 1;
  if (pthread_create(&thread, NULL, fork_too, NULL) || pthread_join(thread, NULL))
    abort();
  forks = 0;
}

static void act(void) {
  acquired(next());
  if (!strcmp(action, "fill") || !strcmp(action, "drop")) {
    for (int i = 0; i < (strcmp(action, "drop") ? 70 : 350); i++)
      large(next());
    /* What comes next may find no chunk. */
    return;
  } else if (!strcmp(action, "flush")) {
    control(3);
    return;
  } else if (!strcmp(action, "code")) {
    acquired_at(next(), (char *)(uintptr_t)lookup + step);
    acquired_at(next(), (void *)(uintptr_t)dlsym);
  } else if (!strcmp(action, "pause")) {
    control(2);
    acquired(-1);
    control(1);
  } else if (!strcmp(action, "paused")) {
    control(2);
    acquired(-1);
    return;
  } else if (!strcmp(action, "nested")) {
    control(77);
    large(next());
  } else if (!strcmp(action, "end")) {
    end();
    return;
  } else if (!strcmp(action, "restart")) {
    end();
    begin_session();
  } else if (!strcmp(action, "off")) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
    control(3);
    return;
  } else if (!strncmp(action, "fork", 4)) {
    if (pipe(go_on))
      abort();
    child = fork();
    char byte;
    if (child == 0 && read(go_on[0], &byte, 1) != 1)
      abort();
    if (child == 0)
      return;
  } else if (!strcmp(action, "thread")) {
    /* As a thread that ends here, and unwinds nothing. */
    thread_end();
    sem_post(&parked);
    for (;;)
      pause();
  } else if (!strcmp(action, "park")) {
    sem_post(&parked);
    while (sem_wait(&free_again))
      ;
    return;
  }
  acquired(next());
}

static void on_step(int signal, siginfo_t *info, void *context) {
  if (++step_count != target)
    return;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
  act();
}

__attribute__((naked, noinline)) static void trap_flag_on(void) {
  __asm__("pushfq; orq $0x100, (%rsp); popfq; ret");
}

__attribute__((naked, noinline)) static void trap_flag_off(void) {
  __asm__("pushfq; andq $~0x100, (%rsp); popfq; ret");
}

/* Instructions of the callback, as far as it was followed. */
static long interrupt_at(long instruction, uint64_t id, uint64_t *name) {
  handled = 0;
  step_count = 0;
  target = instruction;
  name_text(interrupted_text, id);
  trap_flag_on();
  *name = interrupted(id);
  trap_flag_off();
  return step_count;
}

static volatile int is_past_end;

/* A thread whose event is interrupted, and what names the event. */
static void *in_thread(void *name) {
  thread_begin();
  if (!strcmp(action, "park"))
    /* The next one needs another chunk. */
    for (int i = 0; i < 64; i++)
      large(step << 16 | (0xe000 + i));
  as_usual(step << 16 | 0xf000);
  if (interrupt_at(step, step << 16 | 0xf800, name) < step) {
    is_past_end = 1;
    sem_post(&parked);
  }
  as_usual(step << 16 | 0xff00);
  thread_end();
  return NULL;
}

static void one_step(void) {
  uint64_t name = 0;
  int has_session = strcmp(action, "end") && strcmp(action, "off") && strcmp(action, "park");
  int in_a_thread = !strcmp(action, "thread") || !strcmp(action, "park");
  if (!has_session)
    begin();
  if (in_a_thread) {
    /* Of a thread that does not come back. */
    static uint64_t never;
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, strcmp(action, "park") ? &never : &name);
    while (sem_wait(&parked))
      ;
    if (!strcmp(action, "park")) {
      end();
      sem_post(&free_again);
      pthread_join(thread, NULL);
    }
  } else {
    /* Predictors know the callback. */
    for (int i = 0; i < 3; i++)
      as_usual(step << 16 | (0xf000 + i));
    child = -1;
    interrupt_at(step, step << 16 | 0xf800, &name);
    if (child == 0) {
      as_usual(1);
      end();
      _exit(0);
    }
    for (int i = 0; i < 3; i++)
      as_usual(step << 16 | (0xff00 + i));
    if (child > 0) {
      int status = 0;
      if (write(go_on[1], "", 1) != 1 || waitpid(child, &status, 0) != child || status)
        printf("the child ended with %#x\n", status);
      close(go_on[0]);
      close(go_on[1]);
      for (int i = 3; i < 6; i++)
        as_usual(step << 16 | (0xff00 + i));
    }
    if (!strcmp(action, "paused"))
      control(1);
    if (!strcmp(action, "off")) {
      struct rlimit limit;
      getrlimit(RLIMIT_FSIZE, &limit);
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_FSIZE, &limit);
      end();
    }
  }
  printf("step %ld main %#lx handler %ld\n", step, (unsigned long)name, handled);
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  kind = argv[2];
  action = argv[3];
  int stride = argc > 4 ? atoi(argv[4]) : 1;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  start_tool = library ? (start_result_t * (*)(unsigned, const char *)) dlsym(library, "ompt_start_tool") : NULL;
  if (!start_tool)
    return 2;
  sem_init(&parked, 0, 0);
  sem_init(&free_again, 0, 0);
  struct sigaction handler = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGTRAP, &handler, NULL);

  /* The last one that is registered runs first, which is the tracer's. */
  pthread_atfork(before_fork, NULL, NULL);
  begin();
  uint64_t name = 0;
  long length = 0;
  for (int i = 0; i < 5; i++)
    length = interrupt_at(-1, i, &name);
  printf("instructions %ld\n", length);
  int sessions = !strcmp(action, "end") || !strcmp(action, "off") || !strcmp(action, "park");
  if (sessions)
    end();
  /* What a thread does the first time takes longer. */
  if (!strcmp(action, "park"))
    length = LONG_MAX;
  for (step = 1; step <= length && !is_past_end; step += stride)
    one_step();
  if (!sessions)
    end();
  return 0;
}
