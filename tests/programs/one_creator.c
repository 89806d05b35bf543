/* One thread creates a million tasks, which all threads run; prints how much memory the process had at most, in KiB.
 *
 * task_create: 1000000 */
#include <stdio.h>
#include <sys/resource.h>

int main(void) {
  static long ran;
#pragma omp parallel num_threads(4)
#pragma omp single
  for (int i = 0; i < 1000000; i++) {
#pragma omp task
    {
      for (volatile int k = 0; k < 50; k++)
        ;
#pragma omp atomic
      ran++;
    }
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%ld\n", usage.ru_maxrss);
  return ran != 1000000;
}
