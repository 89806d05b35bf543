/* The same number of critical regions at few and at very many places. Each place has two call sites. Prints the processor time of each
 * in milliseconds: `few N`, `many N`. The time of many is the least of several tries, as the other one. */
#include <stdio.h>
#include <time.h>

#define FEW 10
#define MANY 20000
#define REGIONS 600000

/* Calls without what the compiler makes of a region: it would take minutes for so many. The stack is aligned for them. */
#define CALLS(n)                                                                                                                \
  __asm__ volatile("movq %%rsp, %%rbx\n\tandq $-16, %%rsp\n\t.rept " #n                                                         \
                   "\n\tcall GOMP_critical_start@PLT\n\tcall GOMP_critical_end@PLT\n\t.endr\n\tmovq %%rbx, %%rsp" ::             \
                       : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc")
#define CALLS_AT(n) CALLS(n)

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

__attribute__((noinline)) static void few(void) {
  for (int i = 0; i < REGIONS / FEW; i++)
    CALLS_AT(FEW);
}

__attribute__((noinline)) static void many(void) {
  for (int i = 0; i < REGIONS / MANY; i++)
    CALLS_AT(MANY);
}

int main(void) {
  double least[2] = {1e9, 1e9};
  for (int try = 0; try < 3; try++) {
    for (int which = 0; which < 2; which++) {
      double before = milliseconds();
      which ? many() : few();
      double took = milliseconds() - before;
      if (took < least[which])
        least[which] = took;
    }
  }
  printf("few %.0f\nmany %.0f\n", least[0], least[1]);
  return 0;
}
