/* Asks for a sample at many places, and has libgcc unwind the same stack there.
 *
 * Each place sends its own thread the signal of the tracer's timers, then prints `stack ADDRESS...`: the return addresses that
 * `backtrace` gives, from the caller of `point` outward. Places are in recursions, tasks, regions, callbacks of the C library
 * and handlers of exceptions. Others are in functions that realign their stack, in lambdas and in virtual functions. */
#include <alloca.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <functional>
#include <map>
#include <stdexcept>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

enum { RECORDS = 4, DEEPEST = 250 };

/* The samples of a thread wait in a ring until a thread of the tracer reads it, several times in a second. */
static void pause_for_reader() {
  static int points;
  int now;
#pragma omp atomic capture
  now = ++points;
  if (now % 20 == 0)
    usleep(250000);
}

/* The kernel lets a process send itself whatever it likes. The value names the tracer's record of the thread. */
extern "C" __attribute__((noinline)) void point() {
  siginfo_t information;
  for (volatile long record = 0; record < RECORDS; record = record + 1) {
    memset(&information, 0, sizeof information);
    information.si_code = SI_TIMER;
    information.si_value.sival_ptr = reinterpret_cast<void *>(record);
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

static volatile int zero;

__attribute__((noinline)) static int recursion(int depth) {
  if (depth <= 0) {
    point();
    return 1;
  }
  return recursion(depth - 1) + zero;
}

/* Realigns its stack, whose size the compiler does not know. */
__attribute__((noinline)) static void realigned(int size) {
  double aligned[8] __attribute__((aligned(64)));
  char *moved = static_cast<char *>(alloca(size % 64 + 1));
  __asm__ volatile("" ::"r"(aligned), "r"(moved) : "memory");
  point();
  __asm__ volatile("" ::"r"(aligned), "r"(moved) : "memory");
}

struct Base {
  virtual ~Base() = default;
  virtual int run(int depth) const = 0;
};

template <int N> struct Derived : Base {
  int run(int depth) const override {
    if constexpr (N > 0)
      return Derived<N - 1>().run(depth) + zero;
    return recursion(depth) + zero;
  }
};

static int compares;
static int compare(const void *one, const void *other) {
  if (++compares % 4 == 0)
    point();
  return *static_cast<const int *>(one) - *static_cast<const int *>(other);
}

__attribute__((noinline)) static void throws(int depth) {
  if (depth == 0)
    throw std::runtime_error("planted");
  throws(depth - 1);
  __asm__ volatile("");
}

__attribute__((noinline)) static void tasks(int depth) {
  if (depth == 0) {
    point();
    return;
  }
#pragma omp task
  tasks(depth - 1);
#pragma omp taskwait
  __asm__ volatile("");
}

__attribute__((noinline)) static void everything(int seed) {
  for (int depth : {0, 1, 5, 20 + seed})
    recursion(depth);
  for (int size = 0; size < 3; size++)
    realigned(size * 17 + seed);
  Derived<6>().run(seed);
  std::function<int(int)> nested = [&](int depth) {
    return depth > 0 ? nested(depth - 1) + zero : recursion(seed);
  };
  nested(4);
  std::map<int, int> map;
  for (int key = 0; key < 4; key++)
    map[key] = recursion(key);
  try {
    throws(3 + seed);
  } catch (const std::exception &) {
    point();
  }
}

int main() {
  /* What `backtrace` loads for itself. */
  void *stack[1];
  backtrace(stack, 1);
#pragma omp parallel num_threads(2)
  zero = 0;
  everything(0);
  recursion(200);
  std::vector<int> numbers;
  for (int number = 0; number < 40; number++)
    numbers.push_back(number * 7919 % 101);
  qsort(numbers.data(), numbers.size(), sizeof numbers[0], compare);
#pragma omp parallel num_threads(2)
  everything(1);
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int depth = 1; depth < 6; depth++)
    tasks(depth);
  return 0;
}
