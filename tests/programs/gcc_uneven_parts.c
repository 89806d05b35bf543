/* A region of two parts with a barrier between. Threads differ in the first part only. */
#include <omp.h>
#include <stdio.h>

static double work(double ms)
{
  double end = omp_get_wtime() + ms / 1e3, sum = 0;
  while (omp_get_wtime() < end) sum += 1;
  return sum;
}

int main(void)
{
  double all = 0;
#pragma omp parallel reduction(+ : all)
  {
    all += work(omp_get_thread_num() == 0 ? 200 : 20);
#pragma omp barrier /* between */
    all += work(20);
  }
  printf("%d\n", all > 0);
  return 0;
}
