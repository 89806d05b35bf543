/* Signals as the tracer's timers send them, in great numbers, while a program does what signal handlers
 * must survive.
 *
 *     samples_storm WHAT [ROUNDS 200] [SIGNALS 20000]
 *
 * WHAT is
 *   self     sends each to itself, as fast as it can: more than a ring holds
 *   malloc   allocates and frees
 *   fork     forks; each child runs a region and exits
 *   dlopen   opens and closes libm
 *   threads  starts threads that run a region of their own
 *   tiny     runs with an alternate stack of 8 KiB of its own
 *   exit     exits in a region
 *   own      has a handler of SIGPROF with a timer of its own, and sleeps
 *
 * All but `self` and `own` have a thread that sends them to all threads of the process, and have further
 * rounds until it has sent enough. The kernel lets a process send itself whatever it likes. The value names the tracer's record of the thread, of
 * which a thread has one at most: all small numbers are tried. Prints `sent N` and what WHAT says. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RECORDS = 4 };

static volatile int stop;
static volatile long sent;
static volatile double sink;

static void send_to(pid_t thread, int record) {
  siginfo_t information;
  memset(&information, 0, sizeof information);
  information.si_code = SI_TIMER;
  information.si_value.sival_ptr = (void *)(long)record;
  if (syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, SIGRTMAX - 3, &information) == 0)
    sent = sent + 1;
}

/* Whether the thread is the tracer's, which keeps all signals off: they would wait for ever, and all processes of
 * a user together may have only so many. */
static int is_of_tracer(const char *thread) {
  char path[64], name[16] = "";
  snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread);
  FILE *file = fopen(path, "r");
  if (!file)
    return 1;
  int read = fgets(name, sizeof name, file) != NULL;
  fclose(file);
  return !read || !strncmp(name, "omptrace", 8);
}

static void *send_all(void *unused) {
  pid_t own = syscall(SYS_gettid);
  while (!stop) {
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;
    while (threads && (entry = readdir(threads))) {
      pid_t thread = atoi(entry->d_name);
      if (thread > 0 && thread != own && !is_of_tracer(entry->d_name))
        for (int record = 0; record < RECORDS; record++)
          send_to(thread, record);
    }
    if (threads)
      closedir(threads);
    sched_yield();
  }
  return unused;
}

static void region(void) {
#pragma omp parallel num_threads(2)
  for (int i = 0; i < 100; i++)
    sink += i;
}

static void *run_region(void *unused) {
  region();
  return unused;
}

static volatile sig_atomic_t ticks;
static void tick(int unused) { (void)unused, ticks++; }

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "self";
  int rounds = argc > 2 ? atoi(argv[2]) : 200, done = 0;
  long signals = argc > 3 ? atol(argv[3]) : 20000;
  pthread_t sender;
  region();
  int has_sender = strcmp(what, "self") && strcmp(what, "own");
  if (has_sender) {
    /* Not one of the receivers: what it sends is for others. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_create(&sender, NULL, send_all, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  if (!strcmp(what, "self")) {
    for (int i = 0; i < rounds; i++)
      send_to(syscall(SYS_gettid), 0);
  } else if (!strcmp(what, "malloc")) {
    for (int i = 0; sent < signals || i < rounds; i++) {
      char *memory = malloc(1 + i % 5000);
      memory[0] = (char)i;
      sink += memory[0];
      free(memory);
    }
  } else if (!strcmp(what, "fork")) {
    int good = 0, status;
    for (; sent < signals || done < rounds; done++) {
      pid_t child = fork();
      if (child == 0) {
        region();
        _exit(7);
      }
      if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7)
        good++;
    }
    printf("failed %d\n", done - good);
  } else if (!strcmp(what, "dlopen")) {
    int good = 0;
    for (; sent < signals || done < rounds; done++) {
      void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
      double (*function)(double) = library ? (double (*)(double))dlsym(library, "cbrt") : NULL;
      if (function && function(27) > 2.9)
        good++;
      if (library)
        dlclose(library);
    }
    printf("failed %d\n", done - good);
  } else if (!strcmp(what, "threads")) {
    int good = 0;
    for (; sent < signals || done < rounds; done++) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, run_region, NULL) == 0 && pthread_join(thread, NULL) == 0)
        good++;
    }
    printf("failed %d\n", done - good);
  } else if (!strcmp(what, "tiny")) {
    stack_t stack = {.ss_sp = malloc(8192), .ss_size = 8192};
    memset(stack.ss_sp, 0x5a, 8192);
    sigaltstack(&stack, NULL);
    for (; sent < signals || done < rounds; done++)
      region();
  } else if (!strcmp(what, "exit")) {
#pragma omp parallel num_threads(2)
    {
      while (sent < signals)
        sink += 1;
      if (omp_get_thread_num() == 1)
        exit(7);
      for (;;)
        sink += 1;
    }
  } else if (!strcmp(what, "own")) {
    struct sigaction action = {.sa_handler = tick};
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    struct timespec begin, now, nap = {0, 1000000};
    int interrupted = 0, naps = 0;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
    /* Until its own timer has come, and then without it. */
    while (ticks < 10)
      region();
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &timer, NULL);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
      region();
      naps++;
      if (nanosleep(&nap, NULL) != 0)
        interrupted++;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < rounds);
    printf("ticks %d\ninterrupted %d\nnaps %d\n", ticks >= 10, interrupted, naps);
  }
  stop = 1;
  if (has_sender)
    pthread_join(sender, NULL);
  printf("sent %ld\n", sent);
}
