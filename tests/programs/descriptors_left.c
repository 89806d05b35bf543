/* Opens files before it uses OpenMP, and then as many as it may, and prints their numbers: `A` the first, `B` the others, a line
 * each. `dlerror` is asked too: what it says is a line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int more(char which, int most) {
  int count = 0;
  for (; count < most; count++) {
    int file = open("/dev/null", O_RDONLY);
    if (file < 0)
      break;
    printf("%c %d\n", which, file);
  }
  return count;
}

int main(void) {
  more('A', 1);
  int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
  threads++;
  printf("threads %d\n", threads);
  more('B', 1 << 20);
#pragma omp parallel num_threads(2) reduction(+ : threads)
  threads++;
  printf("threads %d\n", threads);
  return 3;
}
