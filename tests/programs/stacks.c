/* Asks for a sample at many places, and has libgcc unwind the same stack there: what `unwinds.cpp` does, in C.
 *
 * Each place sends its own thread the signal of the tracer's timers, then prints `stack ADDRESS...`: the return addresses that `backtrace`
 * gives, from the caller of `point` outward. Places are in recursions, tasks, regions, a callback of the C library and a signal handler.
 * Others are in functions that realign their stack, and in one whose caller has any value in the frame pointer. */
#define _GNU_SOURCE
#include <alloca.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RECORDS = 4, DEEPEST = 250 };
#define OWN __attribute__((noinline))

static volatile int zero;

/* The samples of a thread wait in a ring until a thread of the tracer reads it, several times in a second. */
static void pause_for_reader(void) {
  static int points;
  int now;
#pragma omp atomic capture
  now = ++points;
  if (now % 20 == 0)
    usleep(250000);
}

/* The kernel lets a process send itself whatever it likes. The value names the tracer's record of the thread. */
OWN void point(void) {
  siginfo_t information;
  for (volatile long record = 0; record < RECORDS; record = record + 1) {
    memset(&information, 0, sizeof information);
    information.si_code = SI_TIMER;
    information.si_value.sival_ptr = (void *)record;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGRTMAX - 3, &information);
  }
  void *stack[DEEPEST + 50];
  int frames = backtrace(stack, DEEPEST + 50);
#pragma omp critical
  {
    printf("stack");
    for (int frame = 1; frame < frames; frame++)
      printf(" %p", stack[frame]);
    printf("\n");
  }
  pause_for_reader();
}

OWN int recursion(int depth) {
  if (depth <= 0) {
    point();
    return 1;
  }
  return recursion(depth - 1) + zero;
}

/* Realigns its stack, whose size the compiler does not know. */
OWN void realigned(int size) {
  double aligned[8] __attribute__((aligned(64)));
  char *moved = alloca(size % 64 + 1);
  __asm__ volatile("" ::"r"(aligned), "r"(moved) : "memory");
  point();
  __asm__ volatile("" ::"r"(aligned), "r"(moved) : "memory");
}

/* Larger than instructions have numbers for. */
OWN void large(int size) {
  char bytes[3 << 20];
  __asm__ volatile("" ::"r"(bytes) : "memory");
  realigned(size);
  __asm__ volatile("" ::"r"(bytes) : "memory");
}

/* More values than registers that a callee may change: where there is no frame pointer, its register has one of them. */
OWN long many(int depth) {
  long value[12];
  for (int each = 0; each < 12; each++)
    value[each] = zero;
  for (int round = 0; round < 2; round++) {
    if (depth > 0)
      value[round] += many(depth - 1);
    else
      realigned(round);
    for (int each = 0; each < 12; each++) {
      value[each] += round;
      __asm__ volatile("" : "+r"(value[each]));
    }
  }
  long sum = 0;
  for (int each = 0; each < 12; each++)
    sum += value[each];
  return sum;
}

static void handle(int signal) { recursion(signal % 3); }

static int compares;
static int compare(const void *one, const void *other) {
  if (++compares % 4 == 0)
    point();
  return *(const int *)one - *(const int *)other;
}

OWN void tasks(int depth) {
  if (depth == 0) {
    point();
    return;
  }
#pragma omp task
  tasks(depth - 1);
#pragma omp taskwait
  __asm__ volatile("");
}

OWN void everything(int seed) {
  int depths[] = {0, 1, 5, 20 + seed};
  for (int each = 0; each < 4; each++)
    recursion(depths[each]);
  for (int size = 0; size < 3; size++)
    realigned(size * 17 + seed);
  large(seed);
  many(2);
  raise(SIGUSR1);
}

int main(void) {
  /* What `backtrace` loads for itself. */
  void *stack[1];
  backtrace(stack, 1);
  signal(SIGUSR1, handle);
#pragma omp parallel num_threads(2)
  zero = 0;
  everything(0);
  recursion(200);
  int numbers[40];
  for (int number = 0; number < 40; number++)
    numbers[number] = number * 7919 % 101;
  qsort(numbers, 40, sizeof numbers[0], compare);
#pragma omp parallel num_threads(2)
  everything(1);
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int depth = 1; depth < 6; depth++)
    tasks(depth);
  return 0;
}
