/* Two threads on one processor, and what they count.
 *
 *     counters [MILLISECONDS 100] [PAGES 1000]
 *
 * Both threads work in a region, each for so much processor time, from when both have begun. So the one that
 * ends last has waited as long for its processor as the other one worked. Then one thread touches the pages, in
 * a region of one. Prints `worked NANOSECONDS` of each thread. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static long cpu(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static volatile int begun;
static long worked[2];

int main(int argc, char **argv) {
  long ns = (argc > 1 ? atol(argv[1]) : 100) * 1000000L;
  long pages = argc > 2 ? atol(argv[2]) : 1000;
  cpu_set_t one;
  sched_getaffinity(0, sizeof one, &one);
  for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &one) && found++)
      CPU_CLR(i, &one);
  sched_setaffinity(0, sizeof one, &one);

#pragma omp parallel num_threads(2)
  {
    __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
    while (begun < 2)
      ;
    long begin = cpu(), end;
    do
      end = cpu();
    while (end - begin < ns);
    worked[omp_get_thread_num()] = end - begin;
  }
  printf("worked %ld\nworked %ld\n", worked[0], worked[1]);

  long size = sysconf(_SC_PAGESIZE);
  char *memory = mmap(NULL, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 1;
  madvise(memory, pages * size, MADV_NOHUGEPAGE);
#pragma omp parallel num_threads(1)
  for (long i = 0; i < pages; i++)
    memory[i * size] = 1;
  return 0;
}
