/* Processor time in code that the program makes while it runs, of which it writes a perf map as compilers at run time do.
 *
 *     samples_made [MILLISECONDS 100]
 *
 * Each of two threads is in `counts_down`, a loop on x86-64, for this time. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* dec %rdi; jnz to the begin; ret */
static const unsigned char CODE[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int argc, char **argv) {
  long ns = (argc > 1 ? atol(argv[1]) : 100) * 1000000L;
  void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED)
    return 1;
  memcpy(code, CODE, sizeof CODE);
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  FILE *map = fopen(path, "w");
  if (!map)
    return 1;
  fprintf(map, "%lx %zx counts_down\n", (unsigned long)code, sizeof CODE);
  fclose(map);
  void (*counts_down)(long) = (void (*)(long))code;
#pragma omp parallel num_threads(2)
  for (long end = now() + ns; now() < end;)
    counts_down(1000000);
  printf("%s\n", path);
  return 0;
}
